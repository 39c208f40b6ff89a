/* The answer to one request: its inputs, or what was planted instead. */
#ifndef TRITONCHAOS_ANSWER_H
#define TRITONCHAOS_ANSWER_H

#include "behave.h"
#include "model_io.h"
#include "triton_api.h"

TRITONSERVER_Error *answer_request(const struct model_io *engine, uint64_t version, TRITONBACKEND_Request *request,
                                   TRITONBACKEND_Response *response, const struct answer_faults *faults);
/* Size of the request's batch dimension; 1 where the model does not batch. */
uint64_t batch_size(const struct model_io *engine, TRITONBACKEND_Request *request);

#endif
