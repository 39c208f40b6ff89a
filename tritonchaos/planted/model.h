/* One loaded model of the planted backend: what its configuration asks to plant. */
#ifndef TRITONCHAOS_MODEL_H
#define TRITONCHAOS_MODEL_H

#include "json.h"
#include "plant.h"
#include "triton_api.h"

struct model {
    const char *name; /* Triton's; as long as the model lives */
    uint64_t version;
    struct plants plants;
    bool has_failed; /* one of its instances could not be initialised */
};

/* Ask Triton for the configuration as JSON. `text` belongs to the message, which the caller deletes in either case if it
 * is not NULL; `config` is to be freed in either case. */
TRITONSERVER_Error *fetch_config(TRITONBACKEND_Model *handle, struct json *config, TRITONSERVER_Message **message);
/* Read what is to be planted; free it in either case. */
TRITONSERVER_Error *model_open(struct model *model, TRITONBACKEND_Model *handle);
void model_free(struct model *model);

#endif
