/* The TensorRT backend's checks of a configuration against its engine, in its order and in its words.
 *
 * Source of the words: triton-inference-server/tensorrt_backend, src/instance_state.cc and src/tensorrt_utils.cc,
 * and triton-inference-server/core, src/model_config_utils.cc (names). They are what users search their logs for.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model_io.h"
#include "triton_api.h"

struct side {
    const struct tensors *engine, *config;
    const char *word; /* "input" or "output" */
};

static int by_name(const void *left, const void *right)
{
    return strcmp((*(const struct tensor *const *)left)->name, (*(const struct tensor *const *)right)->name);
}

static void add_sorted_names(struct message *why, const struct tensors *tensors)
{
    const struct tensor **sorted = calloc(tensors->count + 1, sizeof *sorted);
    if (!sorted)
        return;
    for (size_t i = 0; i < tensors->count; i++)
        sorted[i] = &tensors->items[i];
    qsort(sorted, tensors->count, sizeof *sorted, by_name);
    for (size_t i = 0; i < tensors->count; i++)
        message_add(why, "%s%s", i ? ", " : "", sorted[i]->name);
    free(sorted);
}

static bool names_agree(const struct side *side, struct message *why)
{
    for (size_t i = 0; i < side->config->count; i++) {
        const char *name = side->config->items[i].name;
        if (!find_tensor(side->engine, name)) {
            message_add(why, "unexpected inference %s '%s', allowed %ss are: ", side->word, name, side->word);
            add_sorted_names(why, side->engine);
            return false;
        }
    }
    return true;
}

static bool dims_match(const struct tensor *engine, const struct tensor *config)
{
    if (engine->dim_count != config->dim_count)
        return false;
    for (size_t i = 0; i < engine->dim_count; i++)
        if (engine->dims[i] != config->dims[i] && engine->dims[i] != -1 && config->dims[i] != -1)
            return false;
    return true;
}

/* Print a shape, with the batch dimension in front where there is one. */
static void add_full_shape(struct message *why, const struct tensor *tensor, bool batching)
{
    if (!batching) {
        message_add_shape(why, tensor->dims, tensor->dim_count);
        return;
    }
    int64_t *full = malloc((tensor->dim_count + 1) * sizeof *full);
    if (!full)
        return;
    full[0] = -1;
    memcpy(full + 1, tensor->dims, tensor->dim_count * sizeof *full);
    message_add_shape(why, full, tensor->dim_count + 1);
    free(full);
}

static void say_dims_differ(struct message *why, const struct tensor *engine, bool engine_batches,
                            const struct tensor *config, bool config_batches, const char *model_name)
{
    message_add(why, "model '%s', tensor '%s': the model expects %zu dimensions (shape ", model_name, config->name,
                engine->dim_count + engine_batches);
    add_full_shape(why, engine, engine_batches);
    message_add(why, ") but the model configuration specifies %zu dimensions (", config->dim_count + config_batches);
    message_add(why, config_batches ? "an initial batch dimension because max_batch_size > 0 followed by the explicit "
                                      "tensor shape, making complete shape "
                                    : "shape ");
    add_full_shape(why, config, config_batches);
    message_add(why, ")");
}

static bool tensors_agree(const struct side *side, bool engine_batches, bool config_batches, const char *model_name,
                          const char *instance_name, struct message *why)
{
    for (size_t i = 0; i < side->config->count; i++) {
        const struct tensor *config = &side->config->items[i];
        const struct tensor *engine = find_tensor(side->engine, config->name);
        if (engine->datatype != config->datatype) {
            message_add(why, "unexpected datatype TYPE_%s for inference %s '%s', expecting TYPE_%s for %s",
                        TRITONSERVER_DataTypeString(engine->datatype), side->word, config->name,
                        TRITONSERVER_DataTypeString(config->datatype), instance_name);
            return false;
        }
        if (engine_batches != config_batches || !dims_match(engine, config)) {
            say_dims_differ(why, engine, engine_batches, config, config_batches, model_name);
            return false;
        }
    }
    return true;
}

bool agrees_with_engine(const struct model_io *engine, const struct model_io *config, const char *model_name,
                        const char *instance_name, struct message *why)
{
    const struct side inputs = {&engine->inputs, &config->inputs, "input"};
    const struct side outputs = {&engine->outputs, &config->outputs, "output"};
    bool engine_batches = engine->max_batch_size > 0, config_batches = config->max_batch_size > 0;

    if (config->inputs.count > engine->inputs.count) {
        message_add(why, "unable to load model '%s', configuration expects %zu inputs, model provides at most %zu",
                    model_name, config->inputs.count, engine->inputs.count);
        return false;
    }
    if (!names_agree(&inputs, why) || !names_agree(&outputs, why))
        return false;
    if (!tensors_agree(&inputs, engine_batches, config_batches, model_name, instance_name, why))
        return false;
    if (config->inputs.count < engine->inputs.count) {
        message_add(why, "failed to specify the dimensions of all input tensors or values of all input shape tensors");
        return false;
    }
    if (!tensors_agree(&outputs, engine_batches, config_batches, model_name, instance_name, why))
        return false;
    if (config->max_batch_size > engine->max_batch_size) {
        message_add(why, "unexpected configuration maximum batch size %" PRId64 " for '%s', model maximum is %" PRId64,
                    config->max_batch_size, instance_name, engine->max_batch_size);
        return false;
    }
    return true;
}
