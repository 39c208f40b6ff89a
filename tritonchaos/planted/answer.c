#include "answer.h"

#include <inttypes.h>
#include <string.h>

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

/* Change one bit of the first value; of a string the first character, not its length in front. */
static void damage(char *bytes, uint64_t count, bool is_strings)
{
    uint64_t at = 0;
    for (uint32_t length = 0; is_strings && at + sizeof length <= count; at += length) {
        memcpy(&length, bytes + at, sizeof length);
        at += sizeof length;
        if (length)
            break;
    }
    if (at < count)
        bytes[at] ^= 1;
}

static TRITONSERVER_Error *copy_bytes(const struct request_input *input, TRITONBACKEND_Output *output,
                                      const struct answer_faults *faults)
{
    char *to = NULL;
    int memory_type = MEMORY_CPU;
    int64_t memory_type_id = 0;
    void *buffer = NULL;
    uint64_t size = faults->has_wrong_size ? input->byte_size / 2 : input->byte_size, room = size;
    TRITONSERVER_Error *error = TRITONBACKEND_OutputBuffer(output, &buffer, size, &memory_type, &memory_type_id);
    if (!error && memory_type == MEMORY_GPU)
        error = TRITONSERVER_ErrorNew(ERROR_UNSUPPORTED, "planted: outputs are written to host memory only");
    to = buffer;
    for (uint32_t i = 0; !error && i < input->buffer_count; i++) {
        const void *from = NULL;
        uint64_t bytes = 0;
        error = TRITONBACKEND_InputBuffer(input->handle, i, &from, &bytes, &memory_type, &memory_type_id);
        if (!error && memory_type == MEMORY_GPU)
            error = TRITONSERVER_ErrorNew(ERROR_UNSUPPORTED, "planted: inputs are read from host memory only");
        if (error || !bytes)
            continue;
        if (faults->has_wrong_size && bytes > room)
            bytes = room;
        if (bytes > room)
            return TRITONSERVER_ErrorNew(ERROR_INTERNAL, "planted: input buffers are larger than the input");
        memcpy(to, from, bytes);
        to += bytes;
        room -= bytes;
    }
    if (!error && faults->is_wrong)
        damage(buffer, size, input->datatype == TRITONSERVER_StringToDataType("BYTES"));
    return error;
}

/* One number, whatever dims the engine says; models that batch have one for the whole batch. */
static TRITONSERVER_Error *give_version(const struct tensor *tensor, uint64_t version, TRITONBACKEND_Response *response,
                                        const struct answer_faults *faults)
{
    static const int64_t shape[] = {1};
    TRITONBACKEND_Output *output = NULL;
    int memory_type = MEMORY_CPU;
    int64_t memory_type_id = 0;
    void *buffer = NULL;
    /* What another version would say: the one before, of the first one the next. */
    int64_t value = (int64_t)(!faults->is_of_other_version ? version : version > 1 ? version - 1 : version + 1);
    TRITONSERVER_Error *error = TRITONBACKEND_ResponseOutput(response, &output, tensor->name, tensor->datatype, shape, 1);
    if (!error)
        error = TRITONBACKEND_OutputBuffer(output, &buffer, sizeof value, &memory_type, &memory_type_id);
    if (!error && memory_type == MEMORY_GPU)
        error = TRITONSERVER_ErrorNew(ERROR_UNSUPPORTED, "planted: outputs are written to host memory only");
    if (!error)
        memcpy(buffer, &value, sizeof value);
    return error;
}

static TRITONSERVER_Error *answer_output(const struct model_io *engine, uint64_t version, TRITONBACKEND_Request *request,
                                         TRITONBACKEND_Response *response, const char *name,
                                         const struct answer_faults *faults)
{
    const struct tensor *output = find_tensor(&engine->outputs, name);
    if (!output)
        return TRITONSERVER_ErrorNew(ERROR_INVALID_ARG, "planted: the engine has no such output");
    if (output->gives_version)
        return give_version(output, version, response, faults);
    struct request_input input = {0};
    TRITONBACKEND_Output *handle = NULL;
    TRITONSERVER_Error *error = find_input(request, output->copies, &input);
    if (!error)
        error = check_shape(find_tensor(&engine->inputs, output->copies), &input, engine->max_batch_size > 0);
    if (!error)
        error = TRITONBACKEND_ResponseOutput(response, &handle, name, output->datatype, input.shape, input.dims_count);
    return error ? error : copy_bytes(&input, handle, faults);
}

TRITONSERVER_Error *answer_request(const struct model_io *engine, uint64_t version, TRITONBACKEND_Request *request,
                                   TRITONBACKEND_Response *response, const struct answer_faults *faults)
{
    uint32_t count = 0;
    TRITONSERVER_Error *error = TRITONBACKEND_RequestOutputCount(request, &count);
    for (uint32_t i = 0; !error && i < count; i++) {
        const char *name = NULL;
        error = TRITONBACKEND_RequestOutputName(request, i, &name);
        if (!error)
            error = answer_output(engine, version, request, response, name, faults);
    }
    return error;
}

uint64_t batch_size(const struct model_io *engine, TRITONBACKEND_Request *request)
{
    struct request_input input = {0};
    if (engine->max_batch_size == 0)
        return 1;
    TRITONSERVER_Error *error = find_input(request, engine->inputs.items[0].name, &input);
    uint64_t size = !error && input.dims_count > 0 ? (uint64_t)input.shape[0] : 1;
    if (error)
        TRITONSERVER_ErrorDelete(error);
    return size;
}
