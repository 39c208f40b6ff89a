/* What a model takes and gives: read from a ModelConfig (as JSON) or from "the engine" (engine.json). */
#ifndef TRITONCHAOS_MODEL_IO_H
#define TRITONCHAOS_MODEL_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "message.h"

struct tensor {
    char *name;
    char *copies; /* engine outputs only: the input whose bytes it gives */
    bool gives_version; /* engine outputs only, INT64: the version of the model */
    int datatype; /* TRITONSERVER_DataType */
    int64_t *dims;
    size_t dim_count;
};

struct tensors {
    struct tensor *items;
    size_t count;
};

struct model_io {
    int64_t max_batch_size;
    struct tensors inputs, outputs;
};

/* Read a ModelConfig: keys "input", "output" with "name", "data_type", "dims". Free it also after false. */
bool model_io_from_config(struct model_io *io, const struct json *config, struct message *why);
/* Read engine.json: keys "inputs", "outputs" with "name", "datatype", "dims", outputs also "copies"
 * (an input) or "gives" ("version"). */
bool model_io_from_engine(struct model_io *io, const struct json *engine, struct message *why);
void model_io_free(struct model_io *io);

/* Find a tensor by name; NULL when there is none. */
const struct tensor *find_tensor(const struct tensors *tensors, const char *name);

/* Does the configuration agree with the engine? If not, say so in the TensorRT backend's words. */
bool agrees_with_engine(const struct model_io *engine, const struct model_io *config, const char *model_name,
                        const char *instance_name, struct message *why);

#endif
