#define _DEFAULT_SOURCE
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "instance.h"

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void forget(TRITONSERVER_Error *error)
{
    if (error)
        TRITONSERVER_ErrorDelete(error);
}

struct request_input {
    TRITONBACKEND_Input *handle;
    int datatype;
    const int64_t *shape;
    uint32_t dims_count, buffer_count;
    uint64_t byte_size;
};

static TRITONSERVER_Error *find_input(TRITONBACKEND_Request *request, const char *name, struct request_input *input)
{
    const char *found = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestInput(request, name, &input->handle);
    if (!error)
        error = TRITONBACKEND_InputProperties(input->handle, &found, &input->datatype, &input->shape,
                                              &input->dims_count, &input->byte_size, &input->buffer_count);
    return error;
}

/* The configuration may leave open (-1) what the engine has fixed; the engine then refuses the request. */
static TRITONSERVER_Error *check_shape(const struct tensor *engine, const struct request_input *input, bool batching)
{
    struct message why;
    message_clear(&why);
    if (input->dims_count != engine->dim_count + batching)
        message_add(&why, "model expected %zu dimensions but received %" PRIu32 " dimensions",
                    engine->dim_count + batching, input->dims_count);
    for (size_t i = 0; !why.used && i < engine->dim_count; i++) {
        int64_t wanted = engine->dims[i], got = input->shape[i + batching];
        if (wanted != -1 && wanted != got)
            message_add(&why, "model expected the shape of dimension %zu to be between %" PRId64 " and %" PRId64
                        " but received %" PRId64, i + batching, wanted, wanted, got);
    }
    return why.used ? TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, why.text) : NULL;
}

static TRITONSERVER_Error *copy_bytes(const struct request_input *input, TRITONBACKEND_Output *output)
{
    char *to = NULL;
    int memory_type = MEMORY_CPU;
    int64_t memory_type_id = 0;
    void *buffer = NULL;
    TRITONSERVER_Error *error =
        TRITONBACKEND_OutputBuffer(output, &buffer, input->byte_size, &memory_type, &memory_type_id);
    if (!error && memory_type == MEMORY_GPU)
        error = TRITONSERVER_ErrorNew(ERROR_UNSUPPORTED, "planted: outputs are written to host memory only");
    to = buffer;
    uint64_t room = input->byte_size;
    for (uint32_t i = 0; !error && i < input->buffer_count; i++) {
        const void *from = NULL;
        uint64_t bytes = 0;
        error = TRITONBACKEND_InputBuffer(input->handle, i, &from, &bytes, &memory_type, &memory_type_id);
        if (!error && memory_type == MEMORY_GPU)
            error = TRITONSERVER_ErrorNew(ERROR_UNSUPPORTED, "planted: inputs are read from host memory only");
        if (error || !bytes)
            continue;
        if (bytes > room)
            return TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: input buffers are larger than the input");
        memcpy(to, from, bytes);
        to += bytes;
        room -= bytes;
    }
    return error;
}

static TRITONSERVER_Error *answer_output(const struct model_io *engine, TRITONBACKEND_Request *request,
                                         TRITONBACKEND_Response *response, const char *name)
{
    const struct tensor *output = find_tensor(&engine->outputs, name);
    if (!output)
        return TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, "planted: the engine has no such output");
    struct request_input input = {0};
    TRITONBACKEND_Output *handle = NULL;
    TRITONSERVER_Error *error = find_input(request, output->copies, &input);
    if (!error)
        error = check_shape(find_tensor(&engine->inputs, output->copies), &input, engine->max_batch_size > 0);
    if (!error)
        error = TRITONBACKEND_ResponseOutput(response, &handle, name, output->datatype, input.shape, input.dims_count);
    return error ? error : copy_bytes(&input, handle);
}

static TRITONSERVER_Error *answer_request(const struct model_io *engine, TRITONBACKEND_Request *request,
                                          TRITONBACKEND_Response *response)
{
    uint32_t count = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestOutputCount(request, &count);
    for (uint32_t i = 0; !error && i < count; i++) {
        const char *name = NULL;
        error = TRITONBACKEND_RequestOutputName(request, i, &name);
        if (!error)
            error = answer_output(engine, request, response, name);
    }
    return error;
}

static uint64_t batch_size(const struct model_io *engine, TRITONBACKEND_Request *request)
{
    struct request_input input = {0};
    if (engine->max_batch_size == 0)
        return 1;
    TRITONSERVER_Error *error = find_input(request, engine->inputs.items[0].name, &input);
    uint64_t size = !error && input.dims_count > 0 ? (uint64_t)input.shape[0] : 1;
    forget(error);
    return size;
}

static uint64_t execute_request(const struct model_io *engine, TRITONBACKEND_ModelInstance *handle,
                                TRITONBACKEND_Request *request)
{
    uint64_t started = now_ns(), size = batch_size(engine, request);
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseNew(&response, request);
    if (!error)
        error = answer_request(engine, request, response);
    uint64_t finished = now_ns();
    bool success = !error;
    if (response)
        forget(TRITONBACKEND_ResponseSend(response, RESPONSE_FINAL, error));
    forget(error);
    forget(TRITONBACKEND_ModelInstanceReportStatistics(handle, request, success, started, started, finished, now_ns()));
    forget(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
    return size;
}

void instance_execute(struct instance *instance, TRITONBACKEND_ModelInstance *handle, TRITONBACKEND_Request **requests,
                      uint32_t request_count)
{
    uint64_t started = now_ns(), total = 0;
    for (uint32_t i = 0; i < request_count; i++)
        total += execute_request(&instance->engine, handle, requests[i]);
    uint64_t finished = now_ns();
    forget(TRITONBACKEND_ModelInstanceReportBatchStatistics(handle, total, started, started, finished, finished));
}
