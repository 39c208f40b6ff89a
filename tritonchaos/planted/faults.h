/* Faults on purpose, planted in a load. */
#ifndef TRITONCHAOS_FAULTS_H
#define TRITONCHAOS_FAULTS_H

#include "model_io.h"

struct faults {
    int64_t retain_per_failed_load, retain_per_good_load; /* bytes */
    int64_t sleep_ms_in_load;
    int64_t abort_every_nth_load, segfault_every_nth_load; /* counted in this process over all models; 0: never */
};

/* Read them from the model configuration's parameters; false: `why` says which one is no whole number. */
bool read_faults(struct faults *faults, const struct json *config, struct message *why);

/* Do what they ask for, and say so in the log: a planted fault must never pass for a real one. */
void plant(const struct faults *faults, bool failed);

#endif
