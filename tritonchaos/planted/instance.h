/* One model instance of the planted backend. */
#ifndef TRITONCHAOS_INSTANCE_H
#define TRITONCHAOS_INSTANCE_H

#include "faults.h"
#include "model_io.h"
#include "triton_api.h"

struct instance {
    struct model_io engine;
    struct faults faults;
};

/* Read configuration and engine and compare them; NULL when they agree. Free it in either case. */
TRITONSERVER_Error *instance_open(struct instance *instance, TRITONBACKEND_ModelInstance *handle);
void instance_free(struct instance *instance);

/* Answer every request with its inputs; takes ownership of the requests. */
void instance_execute(struct instance *instance, TRITONBACKEND_ModelInstance *handle, TRITONBACKEND_Request **requests,
                      uint32_t request_count);

#endif
