/* The planted backend: serves identity, refuses a configuration that its engine does not fit, retains on demand.
 *
 * Only the functions below are exported. There is no state beyond the model instances.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "instance.h"
#include "retain.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle);
EXPORTED TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
                                                                TRITONBACKEND_Request **requests,
                                                                const uint32_t request_count);

static void log_line(int level, int line, const char *text)
{
    TRITONSERVER_Error *error = TRITONSERVER_LogMessage(level, "planted.c", line, text);
    if (error)
        TRITONSERVER_ErrorDelete(error);
}

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

/* Plant what the configuration asks for, and say so in the log: a planted leak must never pass for a real one. */
static void plant(const struct instance *instance, bool failed)
{
    int64_t bytes = failed ? instance->retain_per_failed_load : instance->retain_per_good_load;
    if (!bytes)
        return;
    bool retained = retain_host_bytes(bytes);
    struct message text;
    message_clear(&text);
    message_add(&text, "planted: %s %" PRId64 " host bytes on purpose (%s load)",
                retained ? "retained" : "could not retain", bytes, failed ? "failed" : "good");
    log_line(retained ? LOG_INFO : LOG_WARN, __LINE__, text.text);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle)
{
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: out of memory");
    TRITONSERVER_Error *error = instance_open(instance, handle);
    plant(instance, error != NULL);
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
