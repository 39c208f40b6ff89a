/* The planted backend: serves identity, refuses a configuration that its engine does not fit, has faults on demand.
 *
 * Only the functions below are exported. There is no state beyond models, their instances, and the counts in tally.c.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "instance.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
                                                                TRITONBACKEND_Request **requests,
                                                                const uint32_t request_count);

static TRITONSERVER_Error *check_version(void)
{
    uint32_t major = 0, minor = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_ApiVersion(&major, &minor);
    if (error || major == PLANTED_API_VERSION_MAJOR)
        return error;
    struct message why;
    message_clear(&why);
    message_add(&why, "planted: this server has TRITONBACKEND API %" PRIu32 ".%" PRIu32 ", the planted backend knows %d",
                major, minor, PLANTED_API_VERSION_MAJOR);
    return TRITONSERVER_ErrorNew(ERROR_UNSUPPORTED, why.text);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    (void)backend;
    TRITONSERVER_Error *error = check_version();
    /* No model and so no config.pbtxt is known here. */
    const char *text = getenv("TRITONCHAOS_PLANT");
    if (error || !text)
        return error;
    struct message why;
    struct plants plants = {0};
    struct visit visit = {.place = BACKEND_INITIALIZE, .model = "", .gpu = -1};
    message_clear(&why);
    if (!plants_read(&plants, "", text, &why))
        error = TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, why.text);
    error = carry_out(&plants, &visit, error);
    plants_free(&plants);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle)
{
    struct model *model = calloc(1, sizeof *model);
    if (!model)
        return TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: out of memory");
    TRITONSERVER_Error *error = model_open(model, handle);
    struct visit visit = {.place = MODEL_INITIALIZE, .model = model->name, .gpu = -1};
    if (!error)
        error = carry_out(&model->plants, &visit, NULL);
    if (!error)
        error = TRITONBACKEND_ModelSetState(handle, model);
    if (error)
        model_free(model);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle)
{
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelState(handle, &state);
    /* Triton finalizes a model whose initialisation failed, too; it has no state. */
    if (error || !state)
        return error;
    struct model *model = state;
    struct visit visit = {.place = MODEL_FINALIZE, .model = model->name, .gpu = -1, .has_failed = model->has_failed};
    error = carry_out(&model->plants, &visit, NULL);
    model_free(model);
    return error;
}

static TRITONSERVER_Error *find_model(TRITONBACKEND_ModelInstance *handle, TRITONBACKEND_Model **model_handle,
                                      struct model **model)
{
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceModel(handle, model_handle);
    if (!error)
        error = TRITONBACKEND_ModelState(*model_handle, &state);
    if (!error && !state)
        error = TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: the model was never initialised");
    *model = state;
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle)
{
    TRITONBACKEND_Model *model_handle = NULL;
    struct model *model = NULL;
    TRITONSERVER_Error *error = find_model(handle, &model_handle, &model);
    if (error)
        return error;
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: out of memory");
    instance->model = model;
    error = instance_open(instance, handle, model_handle);
    if (!error)
        error = TRITONBACKEND_ModelInstanceSetState(handle, instance);
    if (error) {
        model->has_failed = true;
        instance_free(instance);
    }
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle)
{
    TRITONBACKEND_Model *model_handle = NULL;
    struct model *model = NULL;
    void *state = NULL;
    TRITONSERVER_Error *error = find_model(handle, &model_handle, &model);
    if (!error)
        error = TRITONBACKEND_ModelInstanceState(handle, &state);
    if (error)
        return error;
    /* Triton finalizes an instance whose initialisation failed, too; it has no state. */
    struct instance *instance = state, none = {.model = model, .gpu = -1};
    struct visit visit = instance_visit(instance ? instance : &none, INSTANCE_FINALIZE);
    visit.has_failed = !instance;
    error = carry_out(&model->plants, &visit, NULL);
    if (instance)
        instance_free(instance);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
                                                       TRITONBACKEND_Request **requests, const uint32_t request_count)
{
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(handle, &state);
    if (!error && !state)
        error = TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: the instance was never initialised");
    if (!error)
        instance_execute(state, handle, requests, request_count);
    return error;
}
