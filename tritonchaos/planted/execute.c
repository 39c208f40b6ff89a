#define _DEFAULT_SOURCE
#include <time.h>

#include "answer.h"
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

/* Make a response and send it; `error` goes into it. What Triton makes of a second one is its affair. */
static bool respond(const struct instance *instance, TRITONBACKEND_Request *request, TRITONSERVER_Error *error,
                    const struct answer_faults *faults)
{
    TRITONBACKEND_Response *response = NULL;
    TRITONSERVER_Error *wrong = TRITONBACKEND_ResponseNew(&response, request);
    if (!wrong && !error)
        wrong = answer_request(&instance->engine, instance->model->version, request, response, faults);
    if (response)
        forget(TRITONBACKEND_ResponseSend(response, RESPONSE_FINAL, error ? error : wrong));
    bool success = !error && !wrong;
    forget(wrong);
    return success;
}

static uint64_t execute_request(struct instance *instance, TRITONBACKEND_ModelInstance *handle,
                                TRITONBACKEND_Request *request)
{
    uint64_t started = now_ns(), size = batch_size(&instance->engine, request);
    struct visit visit = instance_visit(instance, EXECUTE);
    TRITONSERVER_Error *error = carry_out(&instance->model->plants, &visit, NULL);
    bool success = !visit.answer.is_never_sent && respond(instance, request, error, &visit.answer);
    if (visit.answer.is_sent_twice)
        respond(instance, request, error, &visit.answer);
    forget(error);
    uint64_t finished = now_ns();
    forget(TRITONBACKEND_ModelInstanceReportStatistics(handle, request, success, started, started, finished, now_ns()));
    forget(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
    return size;
}

void instance_execute(struct instance *instance, TRITONBACKEND_ModelInstance *handle, TRITONBACKEND_Request **requests,
                      uint32_t request_count)
{
    uint64_t started = now_ns(), total = 0;
    for (uint32_t i = 0; i < request_count; i++)
        total += execute_request(instance, handle, requests[i]);
    uint64_t finished = now_ns();
    forget(TRITONBACKEND_ModelInstanceReportBatchStatistics(handle, total, started, started, finished, finished));
}
