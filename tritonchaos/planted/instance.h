/* One model instance of the planted backend. */
#ifndef TRITONCHAOS_INSTANCE_H
#define TRITONCHAOS_INSTANCE_H

#include "model.h"
#include "model_io.h"
#include "planting.h"
#include "triton_api.h"

struct instance {
    struct model *model;
    struct model_io engine;
    struct kept *held; /* given back with it */
    int64_t gpu;       /* that it was put on; -1: none */
};

/* Read configuration and engine, compare them, and plant; NULL when they agree. Free it in either case. */
TRITONSERVER_Error *instance_open(struct instance *instance, TRITONBACKEND_ModelInstance *handle,
                                  TRITONBACKEND_Model *model);
void instance_free(struct instance *instance);

/* Begin the plants of a place of this instance. */
struct visit instance_visit(struct instance *instance, enum place place);

/* Answer every request with its inputs; takes ownership of the requests. */
void instance_execute(struct instance *instance, TRITONBACKEND_ModelInstance *handle, TRITONBACKEND_Request **requests,
                      uint32_t request_count);

#endif
