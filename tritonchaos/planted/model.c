#include "model.h"

#include <stdlib.h>

#include "shorthand.h"

TRITONSERVER_Error *fetch_config(TRITONBACKEND_Model *handle, struct json *config, TRITONSERVER_Message **message)
{
    const char *text = NULL;
    size_t length = 0;
    *message = NULL;
    *config = (struct json){0};
    TRITONSERVER_Error *error = TRITONBACKEND_ModelConfig(handle, 1, message);
    if (!error)
        error = TRITONSERVER_MessageSerializeToJson(*message, &text, &length);
    if (!error && !json_parse(config, text, length))
        error = TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: the model configuration is not the JSON expected");
    return error;
}

static TRITONSERVER_Error *read_plants(struct model *model, const struct json *config)
{
    struct message why;
    message_clear(&why);
    int parameters = json_member(config, 0, "parameters");
    char *text = json_string(config, json_member(config, json_member(config, parameters, "plant"), "string_value"));
    bool is_read = shorthand_read(&model->plants, config, &why)
        && (!text || plants_read(&model->plants, model->name, text, &why));
    free(text);
    return is_read ? NULL : TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, why.text);
}

TRITONSERVER_Error *model_open(struct model *model, TRITONBACKEND_Model *handle)
{
    struct json config = {0};
    TRITONSERVER_Message *message = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelName(handle, &model->name);
    if (!error)
        error = TRITONBACKEND_ModelVersion(handle, &model->version);
    if (!error)
        error = fetch_config(handle, &config, &message);
    if (!error)
        error = read_plants(model, &config);
    json_free(&config);
    if (message)
        TRITONSERVER_MessageDelete(message);
    return error;
}

void model_free(struct model *model)
{
    plants_free(&model->plants);
    free(model);
}
