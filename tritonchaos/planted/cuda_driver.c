#include "cuda_driver.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>

static const char LIBRARY[] = "libcuda.so.1";
static struct cuda_driver opened;
static void *primaries[LARGEST_GPU_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ISO C knows no conversion from an object pointer to a function pointer; POSIX, dlsym(3), has it done this way. */
static bool find(void *library, const char *name, void *function, struct message *why)
{
    void *symbol = dlsym(library, name);
    *(void **)function = symbol;
    if (!symbol)
        message_add(why, "%s has no %s", LIBRARY, name);
    return symbol != NULL;
}

static bool find_all(void *library, struct cuda_driver *driver, struct message *why)
{
    return find(library, "cuInit", &driver->init, why)
        && find(library, "cuDeviceGet", &driver->device_get, why)
        && find(library, "cuDeviceGetCount", &driver->device_get_count, why)
        && find(library, "cuDevicePrimaryCtxRetain", &driver->primary_retain, why)
        && find(library, "cuCtxGetCurrent", &driver->context_get, why)
        && find(library, "cuCtxSetCurrent", &driver->context_set, why)
        && find(library, "cuGetErrorName", &driver->error_name, why)
        && find(library, "cuMemAlloc_v2", &driver->mem_alloc, why)
        && find(library, "cuMemFree_v2", &driver->mem_free, why)
        && find(library, "cuMemsetD8_v2", &driver->mem_set, why)
        && find(library, "cuMemGetInfo_v2", &driver->mem_get_info, why)
        && find(library, "cuMemAllocHost_v2", &driver->host_alloc, why)
        && find(library, "cuMemFreeHost", &driver->host_free, why)
        && find(library, "cuStreamCreate", &driver->stream_create, why)
        && find(library, "cuStreamDestroy_v2", &driver->stream_destroy, why)
        && find(library, "cuEventCreate", &driver->event_create, why)
        && find(library, "cuEventDestroy_v2", &driver->event_destroy, why)
        && find(library, "cuModuleLoadData", &driver->module_load, why)
        && find(library, "cuModuleUnload", &driver->module_unload, why)
        && find(library, "cuModuleGetGlobal_v2", &driver->module_global, why);
}

/* Once the driver is open it stays open: its own threads run in it. */
static bool open_driver(struct message *why)
{
    struct cuda_driver driver = {0};
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        message_add(why, "there is no CUDA driver (%s cannot be opened)", LIBRARY);
        return false;
    }
    if (!find_all(library, &driver, why))
        return false;
    int error = driver.init(0);
    if (error != CUDA_OK) {
        cuda_say(&driver, "cuInit", error, why);
        return false;
    }
    opened = driver;
    return true;
}

const struct cuda_driver *cuda_driver_open(struct message *why)
{
    pthread_mutex_lock(&lock);
    bool is_open = opened.init || open_driver(why);
    pthread_mutex_unlock(&lock);
    return is_open ? &opened : NULL;
}

static int retain_primary(const struct cuda_driver *driver, int64_t gpu, void **context)
{
    int device = 0;
    int error = driver->device_get(&device, (int)gpu);
    pthread_mutex_lock(&lock);
    if (error == CUDA_OK && !primaries[gpu])
        error = driver->primary_retain(&primaries[gpu], device);
    *context = primaries[gpu];
    pthread_mutex_unlock(&lock);
    return error;
}

bool cuda_enter(const struct cuda_driver *driver, int64_t gpu, void **before, struct message *why)
{
    int count = 0;
    *before = NULL;
    int error = driver->device_get_count(&count);
    if (error == CUDA_OK && (gpu >= count || gpu >= LARGEST_GPU_COUNT)) {
        message_add(why, "there is no GPU %" PRId64 ", CUDA sees %d", gpu, count);
        return false;
    }
    void *context = NULL;
    if (error == CUDA_OK)
        error = driver->context_get(before);
    if (error == CUDA_OK)
        error = retain_primary(driver, gpu, &context);
    if (error == CUDA_OK)
        error = driver->context_set(context);
    if (error != CUDA_OK)
        cuda_say(driver, "the primary context", error, why);
    return error == CUDA_OK;
}

void cuda_say(const struct cuda_driver *driver, const char *what, int error, struct message *why)
{
    const char *name = NULL;
    if (driver->error_name(error, &name) != CUDA_OK || !name)
        name = "an unknown CUDA error";
    message_add(why, "%s: %s (%d)", what, name, error);
}
