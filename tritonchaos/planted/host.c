#define _DEFAULT_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "keep.h"

/* From here on a mapping of its own is exact enough; below, rounding up to pages would retain more than was asked. */
enum { MAPPING_BYTES = 64 * 1024 };

/* What the machine could give without swapping; -1: not known. Source: proc(5), /proc/meminfo, MemAvailable. */
static int64_t available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    int64_t kib = -1;
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNd64, &kib) != 1)
            kib = -1;
    if (file)
        fclose(file);
    return kib < 0 ? -1 : kib * 1024;
}

static void *map_pages(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    /* A huge page would show 2 MiB at once where 1 MiB was retained. Not every kernel knows the advice. */
    (void)madvise(pages, bytes, MADV_NOHUGEPAGE);
    return pages;
}

bool keep_host(struct kept *kept, struct message *why)
{
    int64_t bytes = kept->number;
    if (bytes >= MAPPING_BYTES) {
        /* Touching what is not there would bring the out-of-memory killer instead of an error. */
        int64_t available = available_bytes();
        if (available >= 0 && bytes > available) {
            message_add(why, "%" PRId64 " bytes are not free (%" PRId64 " are available)", bytes, available);
            return false;
        }
    }
    kept->handle = bytes < MAPPING_BYTES ? malloc((size_t)bytes) : map_pages((size_t)bytes);
    if (!kept->handle) {
        message_add(why, "the system gave no %" PRId64 " bytes", bytes);
        return false;
    }
    /* Not zero: a page of zeros may be merged or never be made. */
    memset(kept->handle, 0xA5, (size_t)bytes);
    /* Keep the compiler from dropping memory that nobody reads. */
    __asm__ volatile("" : : "r"(kept->handle) : "memory");
    return true;
}

void give_back_host(const struct kept *kept)
{
    if (kept->number < MAPPING_BYTES)
        free(kept->handle);
    else
        munmap(kept->handle, (size_t)kept->number);
}
