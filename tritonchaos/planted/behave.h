/* What a plant does instead of keeping something. */
#ifndef TRITONCHAOS_BEHAVE_H
#define TRITONCHAOS_BEHAVE_H

#include "plant.h"
#include "triton_api.h"

/* What is done to the answer of an execution. */
struct answer_faults {
    bool is_wrong, has_wrong_size, is_of_other_version, is_sent_twice, is_never_sent;
};

/* Do it; the error of `fail`, else NULL. Some of them do not come back. */
TRITONSERVER_Error *behave(const struct plant *plant, struct answer_faults *faults);

#endif
