#define _DEFAULT_SOURCE
#include "retain.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From here on a mapping of its own is exact enough; below, rounding up to pages would retain more than was asked. */
enum { MAPPING_BYTES = 64 * 1024 };

static void *map_pages(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    /* A huge page would show 2 MiB at once where 1 MiB was retained. Not every kernel knows the advice. */
    (void)madvise(pages, bytes, MADV_NOHUGEPAGE);
    return pages;
}

bool retain_host_bytes(int64_t bytes)
{
    void *memory = bytes < MAPPING_BYTES ? malloc((size_t)bytes) : map_pages((size_t)bytes);
    if (!memory)
        return false;
    /* Not zero: a page of zeros may be merged or never be made. */
    memset(memory, 0xA5, (size_t)bytes);
    /* Keep the compiler from dropping memory that nobody reads. */
    __asm__ volatile("" : : "r"(memory) : "memory");
    return true;
}
