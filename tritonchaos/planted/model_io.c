#include "model_io.h"

#include <stdlib.h>
#include <string.h>

#include "triton_api.h"

static int datatype_from_name(const char *name)
{
    if (!strncmp(name, "TYPE_", 5))
        name += 5;
    /* ModelConfig calls it TYPE_STRING, the inference protocol BYTES. */
    return TRITONSERVER_StringToDataType(strcmp(name, "STRING") ? name : "BYTES");
}

static bool read_dims(struct tensor *tensor, const struct json *json, int dims, struct message *why)
{
    for (int dim = json_first(json, dims); dim >= 0; dim = json_next(json, dim))
        tensor->dim_count++;
    tensor->dims = calloc(tensor->dim_count + 1, sizeof *tensor->dims);
    if (!tensor->dims) {
        tensor->dim_count = 0;
        message_add(why, "out of memory");
        return false;
    }
    size_t at = 0;
    for (int dim = json_first(json, dims); dim >= 0; dim = json_next(json, dim)) {
        if (!json_integer(json, dim, &tensor->dims[at++])) {
            message_add(why, "dims of tensor '%s' are not integers", tensor->name);
            return false;
        }
    }
    return true;
}

static bool read_tensor(struct tensor *tensor, const struct json *json, int node, const char *datatype_key,
                        struct message *why)
{
    tensor->name = json_string(json, json_member(json, node, "name"));
    tensor->copies = json_string(json, json_member(json, node, "copies"));
    char *gives = json_string(json, json_member(json, node, "gives"));
    tensor->gives_version = gives && !strcmp(gives, "version");
    free(gives);
    char *datatype = json_string(json, json_member(json, node, datatype_key));
    if (tensor->name && datatype)
        tensor->datatype = datatype_from_name(datatype);
    free(datatype);
    if (!tensor->name || tensor->datatype == DATATYPE_INVALID) {
        message_add(why, "a tensor without a name or with an unknown %s", datatype_key);
        return false;
    }
    return read_dims(tensor, json, json_member(json, node, "dims"), why);
}

static bool read_tensors(struct tensors *tensors, const struct json *json, int array, const char *datatype_key,
                         struct message *why)
{
    size_t count = 0;
    for (int node = json_first(json, array); node >= 0; node = json_next(json, node))
        count++;
    tensors->items = calloc(count + 1, sizeof *tensors->items);
    if (!tensors->items) {
        message_add(why, "out of memory");
        return false;
    }
    for (int node = json_first(json, array); node >= 0; node = json_next(json, node))
        if (!read_tensor(&tensors->items[tensors->count++], json, node, datatype_key, why))
            return false;
    return true;
}

static bool read_io(struct model_io *io, const struct json *json, const char *inputs, const char *outputs,
                    const char *datatype_key, struct message *why)
{
    *io = (struct model_io){0};
    json_integer(json, json_member(json, 0, "max_batch_size"), &io->max_batch_size);
    return read_tensors(&io->inputs, json, json_member(json, 0, inputs), datatype_key, why) &&
           read_tensors(&io->outputs, json, json_member(json, 0, outputs), datatype_key, why);
}

bool model_io_from_config(struct model_io *io, const struct json *config, struct message *why)
{
    return read_io(io, config, "input", "output", "data_type", why);
}

bool model_io_from_engine(struct model_io *io, const struct json *engine, struct message *why)
{
    if (!read_io(io, engine, "inputs", "outputs", "datatype", why))
        return false;
    for (size_t i = 0; i < io->outputs.count; i++) {
        const struct tensor *output = &io->outputs.items[i];
        bool copies = output->copies && find_tensor(&io->inputs, output->copies);
        if (!copies && !(output->gives_version && output->datatype == datatype_from_name("INT64"))) {
            message_add(why, "output '%s' copies no input, nor is it an INT64 that gives the version", output->name);
            return false;
        }
    }
    if (!io->inputs.count || !io->outputs.count)
        message_add(why, "no inputs or no outputs");
    return io->inputs.count && io->outputs.count;
}

static void free_tensors(struct tensors *tensors)
{
    for (size_t i = 0; i < tensors->count; i++) {
        free(tensors->items[i].name);
        free(tensors->items[i].copies);
        free(tensors->items[i].dims);
    }
    free(tensors->items);
}

void model_io_free(struct model_io *io)
{
    free_tensors(&io->inputs);
    free_tensors(&io->outputs);
    *io = (struct model_io){0};
}

const struct tensor *find_tensor(const struct tensors *tensors, const char *name)
{
    for (size_t i = 0; i < tensors->count; i++)
        if (!strcmp(tensors->items[i].name, name))
            return &tensors->items[i];
    return NULL;
}
