#include "instance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* More than any engine.json needs; keeps a wrong file from filling memory. */
enum { ENGINE_FILE_BYTES = 64 * 1024 };

/* Read what the configuration says of inputs and outputs; `config_io` is to be freed in either case. */
static TRITONSERVER_Error *read_config(struct model_io *config_io, TRITONBACKEND_Model *model)
{
    struct json config = {0};
    struct message why;
    TRITONSERVER_Message *message = NULL;
    message_clear(&why);
    message_add(&why, "planted: cannot read the model configuration: ");
    TRITONSERVER_Error *error = fetch_config(model, &config, &message);
    if (!error && !model_io_from_config(config_io, &config, &why))
        error = TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, why.text);
    json_free(&config);
    if (message)
        TRITONSERVER_MessageDelete(message);
    return error;
}

static TRITONSERVER_Error *parse_engine(struct model_io *engine, const char *text, size_t length, const char *path)
{
    struct message why;
    message_clear(&why);
    message_add(&why, "unable to load engine '%s': ", path);
    struct json json;
    bool is_engine = json_parse(&json, text, length);
    if (!is_engine)
        message_add(&why, "not JSON");
    is_engine = is_engine && model_io_from_engine(engine, &json, &why);
    json_free(&json);
    return is_engine ? NULL : TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, why.text);
}

static TRITONSERVER_Error *load_engine(struct model_io *engine, const char *path, const char *instance_name)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        struct message why;
        message_clear(&why);
        message_add(&why, "unable to find '%s' for model instance '%s'", path, instance_name);
        return TRITONSERVER_ErrorNew(ERROR_UNAVAILABLE, why.text);
    }
    char *text = malloc(ENGINE_FILE_BYTES);
    size_t length = text ? fread(text, 1, ENGINE_FILE_BYTES, file) : 0;
    fclose(file);
    TRITONSERVER_Error *error = text ? parse_engine(engine, text, length, path)
                                     : TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: out of memory");
    free(text);
    return error;
}

static TRITONSERVER_Error *fetch_engine(struct model_io *engine, TRITONBACKEND_Model *model, const char *instance_name)
{
    int artifact_type = 0;
    const char *folder = "";
    uint64_t version = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelRepository(model, &artifact_type, &folder);
    if (!error)
        error = TRITONBACKEND_ModelVersion(model, &version);
    if (error)
        return error;
    struct message path;
    message_clear(&path);
    message_add(&path, "%s/%" PRIu64 "/engine.json", folder, version);
    return load_engine(engine, path.text, instance_name);
}

static TRITONSERVER_Error *compare(const struct model_io *engine, const struct model_io *config, const char *model_name,
                                   const char *instance_name)
{
    struct message why;
    message_clear(&why);
    bool agrees = agrees_with_engine(engine, config, model_name, instance_name, &why);
    return agrees ? NULL : TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, why.text);
}

/* Which GPU it was put on; -1: on none. */
static TRITONSERVER_Error *find_gpu(TRITONBACKEND_ModelInstance *handle, int64_t *gpu)
{
    int kind = KIND_CPU;
    int32_t device = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (!error)
        error = TRITONBACKEND_ModelInstanceDeviceId(handle, &device);
    *gpu = !error && kind == KIND_GPU ? device : -1;
    return error;
}

static TRITONSERVER_Error *validate(struct instance *instance, TRITONBACKEND_ModelInstance *handle,
                                    TRITONBACKEND_Model *model)
{
    const char *instance_name = "";
    struct model_io config = {0};
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceName(handle, &instance_name);
    if (!error)
        error = read_config(&config, model);
    if (!error)
        error = fetch_engine(&instance->engine, model, instance_name);
    if (!error)
        error = compare(&instance->engine, &config, instance->model->name, instance_name);
    model_io_free(&config);
    return error;
}

TRITONSERVER_Error *instance_open(struct instance *instance, TRITONBACKEND_ModelInstance *handle,
                                  TRITONBACKEND_Model *model)
{
    TRITONSERVER_Error *error = find_gpu(handle, &instance->gpu);
    struct visit before = instance_visit(instance, BEFORE_VALIDATION);
    error = carry_out(&instance->model->plants, &before, error);
    if (!error)
        error = validate(instance, handle, model);
    struct visit after = instance_visit(instance, INSTANCE_INITIALIZE);
    return carry_out(&instance->model->plants, &after, error);
}

struct visit instance_visit(struct instance *instance, enum place place)
{
    return (struct visit){
        .place = place, .model = instance->model->name, .gpu = instance->gpu, .held = &instance->held};
}

void instance_free(struct instance *instance)
{
    give_back_all(instance->held);
    model_io_free(&instance->engine);
    free(instance);
}
