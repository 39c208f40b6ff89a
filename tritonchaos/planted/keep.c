#include "keep.h"

#include <stdlib.h>

bool keep_one(struct kept *kept, enum what what, int64_t bytes, int64_t gpu, struct message *why)
{
    *kept = (struct kept){.what = what, .number = bytes, .gpu = gpu};
    switch (what) {
    case HOST_BYTES: return keep_host(kept, why);
    case FDS:
    case THREADS:
    case TEMP_FILES: return keep_in_process(kept, why);
    default: return keep_on_device(kept, why);
    }
}

void give_back(const struct kept *kept)
{
    switch (kept->what) {
    case HOST_BYTES: give_back_host(kept); break;
    case FDS:
    case THREADS:
    case TEMP_FILES: give_back_in_process(kept); break;
    default: give_back_on_device(kept); break;
    }
}

int64_t give_back_all(struct kept *first)
{
    int64_t count = 0;
    while (first) {
        struct kept *next = first->next;
        give_back(first);
        free(first);
        first = next;
        count++;
    }
    return count;
}
