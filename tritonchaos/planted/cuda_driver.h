/* The few functions of the CUDA driver API that are called, declared by us and found at run time in libcuda.so.1.
 *
 * Source: CUDA Driver API reference manual. CUresult is an int, CUdevice an int, CUdeviceptr 64 bits; contexts, streams,
 * events and modules are opaque pointers. The names with _v2 are those that cuda.h maps the plain names to.
 */
#ifndef TRITONCHAOS_CUDA_DRIVER_H
#define TRITONCHAOS_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message.h"

enum { CUDA_OK = 0, LARGEST_GPU_COUNT = 64 };

struct cuda_driver {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*device_get_count)(int *count);
    int (*primary_retain)(void **context, int device);
    int (*context_get)(void **context);
    int (*context_set)(void *context);
    int (*error_name)(int error, const char **name);
    int (*mem_alloc)(uint64_t *pointer, size_t bytes);
    int (*mem_free)(uint64_t pointer);
    int (*mem_set)(uint64_t pointer, unsigned char value, size_t bytes);
    int (*mem_get_info)(size_t *free_bytes, size_t *total_bytes);
    int (*host_alloc)(void **pointer, size_t bytes);
    int (*host_free)(void *pointer);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*module_load)(void **module, const void *image);
    int (*module_unload)(void *module);
    int (*module_global)(uint64_t *pointer, size_t *bytes, void *module, const char *name);
};

/* Open the driver, once in a process; NULL: `why` says what is missing. */
const struct cuda_driver *cuda_driver_open(struct message *why);
/* Make a device's primary context, retained once and for good, the thread's; `before` is what was there. */
bool cuda_enter(const struct cuda_driver *driver, int64_t gpu, void **before, struct message *why);
/* Add "WHAT: CUDA_ERROR_OUT_OF_MEMORY (2)" to a text. */
void cuda_say(const struct cuda_driver *driver, const char *what, int error, struct message *why);

#endif
