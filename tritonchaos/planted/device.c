/* Device and pinned memory, streams, events and modules: from the CUDA driver, or only in the ledger. */
#include <inttypes.h>

#include "cuda_driver.h"
#include "keep.h"
#include "ledger.h"

/* A module of ours: 64 KiB of global data and a kernel that does nothing. PTX runs on every device that is newer than its
 * target. Source: PTX ISA, "PTX Module Directives". */
static const char MODULE_PTX[] = ".version 6.0\n"
                                 ".target sm_60\n"
                                 ".address_size 64\n"
                                 ".visible .global .align 8 .b8 planted_data[65536];\n"
                                 ".visible .entry planted_kernel()\n"
                                 "{\n"
                                 "    ret;\n"
                                 "}\n";

static const char *ledger_word(enum what what)
{
    switch (what) {
    case STREAMS: return "stream";
    case EVENTS: return "event";
    case MODULES: return "module";
    default: return "device";
    }
}

static bool keep_device_memory(const struct cuda_driver *driver, struct kept *kept, struct message *why)
{
    uint64_t pointer = 0;
    int error = driver->mem_alloc(&pointer, (size_t)kept->number);
    if (error == CUDA_OK) {
        kept->handle = (void *)(uintptr_t)pointer;
        error = driver->mem_set(pointer, 0xA5, (size_t)kept->number);
        if (error != CUDA_OK)
            driver->mem_free(pointer);
    }
    if (error == CUDA_OK)
        return true;
    size_t available = 0, total = 0;
    message_add(why, "%" PRId64 " bytes on GPU %" PRId64 ": ", kept->number, kept->gpu);
    cuda_say(driver, "cuMemAlloc", error, why);
    if (driver->mem_get_info(&available, &total) == CUDA_OK)
        message_add(why, ", %zu bytes are free", available);
    return false;
}

static bool keep_module(const struct cuda_driver *driver, struct kept *kept, struct message *why)
{
    uint64_t pointer = 0;
    size_t bytes = 0;
    int error = driver->module_load(&kept->handle, MODULE_PTX);
    if (error != CUDA_OK) {
        cuda_say(driver, "cuModuleLoadData", error, why);
        return false;
    }
    /* A lazy driver loads it only when something of it is asked for. */
    error = driver->module_global(&pointer, &bytes, kept->handle, "planted_data");
    if (error == CUDA_OK)
        return true;
    cuda_say(driver, "cuModuleGetGlobal", error, why);
    driver->module_unload(kept->handle);
    return false;
}

static bool check(const struct cuda_driver *driver, const char *call, int error, struct message *why)
{
    if (error != CUDA_OK)
        cuda_say(driver, call, error, why);
    return error == CUDA_OK;
}

static bool keep_of_driver(const struct cuda_driver *driver, struct kept *kept, struct message *why)
{
    switch (kept->what) {
    case DEVICE_BYTES: return keep_device_memory(driver, kept, why);
    case PINNED_BYTES:
        return check(driver, "cuMemAllocHost", driver->host_alloc(&kept->handle, (size_t)kept->number), why);
    /* Flag 0 of both: CU_STREAM_DEFAULT, CU_EVENT_DEFAULT. */
    case STREAMS: return check(driver, "cuStreamCreate", driver->stream_create(&kept->handle, 0), why);
    case EVENTS: return check(driver, "cuEventCreate", driver->event_create(&kept->handle, 0), why);
    default: return keep_module(driver, kept, why);
    }
}

bool keep_on_device(struct kept *kept, struct message *why)
{
    kept->gpu = kept->gpu < 0 ? 0 : kept->gpu;
    if (ledger_is_on() && kept->what == PINNED_BYTES)
        return keep_host(kept, why);
    if (ledger_is_on())
        return ledger_write(kept->gpu, kept->what == DEVICE_BYTES ? kept->number : 0, ledger_word(kept->what), why);
    void *before = NULL;
    const struct cuda_driver *driver = cuda_driver_open(why);
    if (!driver || !cuda_enter(driver, kept->gpu, &before, why))
        return false;
    bool is_kept = keep_of_driver(driver, kept, why);
    driver->context_set(before);
    return is_kept;
}

static void give_back_to_driver(const struct cuda_driver *driver, const struct kept *kept)
{
    switch (kept->what) {
    case DEVICE_BYTES: driver->mem_free((uint64_t)(uintptr_t)kept->handle); break;
    case PINNED_BYTES: driver->host_free(kept->handle); break;
    case STREAMS: driver->stream_destroy(kept->handle); break;
    case EVENTS: driver->event_destroy(kept->handle); break;
    default: driver->module_unload(kept->handle); break;
    }
}

void give_back_on_device(const struct kept *kept)
{
    struct message ignored;
    message_clear(&ignored);
    if (ledger_is_on() && kept->what == PINNED_BYTES) {
        give_back_host(kept);
        return;
    }
    if (ledger_is_on()) {
        if (kept->what == DEVICE_BYTES)
            ledger_write(kept->gpu, -kept->number, ledger_word(kept->what), &ignored);
        return;
    }
    void *before = NULL;
    const struct cuda_driver *driver = cuda_driver_open(&ignored);
    if (!driver || !cuda_enter(driver, kept->gpu, &before, &ignored))
        return;
    give_back_to_driver(driver, kept);
    driver->context_set(before);
}
