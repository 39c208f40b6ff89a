/* Carries out the plants of a place, and says so in the log: a planted defect must never pass for a real one. */
#ifndef TRITONCHAOS_PLANTING_H
#define TRITONCHAOS_PLANTING_H

#include "behave.h"
#include "keep.h"

/* Where we are. */
struct visit {
    enum place place;
    const char *model;     /* its name; of the backend "" */
    int64_t gpu;           /* device of the instance; -1: none */
    bool has_failed;       /* of places after a load: its outcome; set by an error, too */
    struct kept **held;    /* of the instance; NULL where there is none */
    struct answer_faults answer;
};

/* Carry them out in their order.
 *
 * `error` is what went wrong so far, or NULL. Gives the error to go on with: it, or that of a plant that fails on purpose,
 * or that of one that could not be carried out. */
TRITONSERVER_Error *carry_out(const struct plants *plants, struct visit *visit, TRITONSERVER_Error *error);

#endif
