/* Things of the process that are taken and, if somebody kept their handle, can be given back. */
#ifndef TRITONCHAOS_KEEP_H
#define TRITONCHAOS_KEEP_H

#include "plant.h"

struct kept {
    enum what what;
    void *handle;
    int64_t number; /* bytes of memory, or the file descriptor */
    int64_t gpu;
    struct kept *next;
};

/* Take one thing of a kind; `kept` says what it was. False: `why` says why it could not be had. */
bool keep_one(struct kept *kept, enum what what, int64_t bytes, int64_t gpu, struct message *why);
/* Give back a whole list, which is freed; the number of things. */
int64_t give_back_all(struct kept *first);
/* Give back one thing. */
void give_back(const struct kept *kept);

/* The parts, by where the things come from. */
bool keep_host(struct kept *kept, struct message *why);
bool keep_in_process(struct kept *kept, struct message *why);
bool keep_on_device(struct kept *kept, struct message *why);
void give_back_host(const struct kept *kept);
void give_back_in_process(const struct kept *kept);
void give_back_on_device(const struct kept *kept);

#endif
