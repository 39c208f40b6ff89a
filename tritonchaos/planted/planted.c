/* The planted backend: serves identity, refuses a configuration that its engine does not fit, has faults on demand.
 *
 * Only the functions below are exported. There is no state beyond the model instances and the counts in faults.c.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "instance.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
                                                                TRITONBACKEND_Request **requests,
                                                                const uint32_t request_count);

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
    (void)backend;
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

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle)
{
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: out of memory");
    TRITONSERVER_Error *error = instance_open(instance, handle);
    plant(&instance->faults, error != NULL);
    if (!error)
        error = TRITONBACKEND_ModelInstanceSetState(handle, instance);
    if (error)
        instance_free(instance);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle)
{
    void *state = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ModelInstanceState(handle, &state);
    /* Triton finalizes an instance whose initialisation failed, too; it has no state. */
    if (!error && state)
        instance_free(state);
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
