/* A stand-in for libnvidia-ml.so.1: the entry points that tritonchaos asks through nvidia-ml-py, for tests alone.

   Signatures, structures and return values: NVML API reference. */
#include "stand_in.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define API __attribute__((visibility("default")))

typedef int nvmlReturn_t;
typedef struct device_handle *nvmlDevice_t; /* number of the device plus 1 */

enum {
    SUCCESS = 0,
    ERROR_UNINITIALIZED = 1,
    ERROR_INVALID_ARGUMENT = 2,
    ERROR_NOT_SUPPORTED = 3,
    ERROR_NOT_FOUND = 6,
    ERROR_INSUFFICIENT_SIZE = 7,
    ERROR_FUNCTION_NOT_FOUND = 13,
    ERROR_GPU_IS_LOST = 15,
    ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    ERROR_UNKNOWN = 999,
};

enum { MEMORY_V2 = 0x02000028 };
static const unsigned long long NOT_AVAILABLE = ~0ULL;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned int version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

/* Callers read from several threads. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int uses;
static struct scenery scenery;
static struct ledger ledger;

static void unlock(pthread_mutex_t **locked)
{
    pthread_mutex_unlock(*locked);
}

/* Holds the lock until the end of the block. */
#define LOCKED                                                            \
    __attribute__((cleanup(unlock))) pthread_mutex_t *locked = &mutex;    \
    pthread_mutex_lock(locked)

static nvmlReturn_t look(void)
{
    if (uses == 0)
        return ERROR_UNINITIALIZED;
    return read_scenery(&scenery) && read_ledger(&ledger) ? SUCCESS : ERROR_UNKNOWN;
}

static bool is_lost(const struct device *device)
{
    const struct device *gpu = device->parent < 0 ? device : &scenery.devices[device->parent];
    return gpu->lost_after >= 0 && ledger.lines >= gpu->lost_after;
}

static nvmlReturn_t find(nvmlDevice_t handle, int *number)
{
    nvmlReturn_t result = look();
    if (result != SUCCESS)
        return result;
    *number = (int)(intptr_t)handle - 1;
    if (*number < 0 || *number >= scenery.device_count)
        return ERROR_INVALID_ARGUMENT;
    return is_lost(&scenery.devices[*number]) ? ERROR_GPU_IS_LOST : SUCCESS;
}

static nvmlReturn_t give_handle(int number, nvmlDevice_t *handle)
{
    *handle = (nvmlDevice_t)(intptr_t)(number + 1);
    return is_lost(&scenery.devices[number]) ? ERROR_GPU_IS_LOST : SUCCESS;
}

static nvmlReturn_t give_text(const char *text, char *buffer, unsigned int length)
{
    return snprintf(buffer, length, "%s", text) < (int)length ? SUCCESS : ERROR_INSUFFICIENT_SIZE;
}

/* A GPU shows what its instances hold, an instance what it holds itself. */
static bool belongs_to(int held_on, int number)
{
    return held_on == number || (held_on < scenery.device_count && held_on >= 0 &&
                                 scenery.devices[held_on].parent == number);
}

/* --- start and end --- */

API nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    LOCKED;
    if (!read_scenery(&scenery))
        return ERROR_UNKNOWN;
    uses += scenery.start_error == SUCCESS;
    return scenery.start_error;
}

API nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

API nvmlReturn_t nvmlShutdown(void)
{
    LOCKED;
    if (uses == 0)
        return ERROR_UNINITIALIZED;
    uses--;
    return SUCCESS;
}

API const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case SUCCESS: return "Success";
    case ERROR_UNINITIALIZED: return "Uninitialized";
    case ERROR_NOT_SUPPORTED: return "Not Supported";
    case ERROR_NOT_FOUND: return "Not Found";
    case ERROR_GPU_IS_LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}

API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    LOCKED;
    nvmlReturn_t result = look();
    return result != SUCCESS ? result : give_text(scenery.version, version, length);
}

/* --- devices --- */

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    LOCKED;
    nvmlReturn_t result = look();
    *count = 0;
    for (int i = 0; result == SUCCESS && i < scenery.device_count; i++)
        *count += scenery.devices[i].parent < 0;
    return result;
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *handle)
{
    LOCKED;
    nvmlReturn_t result = look();
    for (int i = 0; result == SUCCESS && i < scenery.device_count; i++)
        if (scenery.devices[i].parent < 0 && index-- == 0)
            return give_handle(i, handle);
    return result == SUCCESS ? ERROR_INVALID_ARGUMENT : result;
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *handle)
{
    LOCKED;
    nvmlReturn_t result = look();
    for (int i = 0; result == SUCCESS && i < scenery.device_count; i++)
        if (strcmp(scenery.devices[i].uuid, uuid) == 0)
            return give_handle(i, handle);
    return result == SUCCESS ? ERROR_NOT_FOUND : result;
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int length)
{
    LOCKED;
    int number;
    nvmlReturn_t result = find(handle, &number);
    return result != SUCCESS ? result : give_text(scenery.devices[number].uuid, uuid, length);
}

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned int length)
{
    LOCKED;
    int number;
    nvmlReturn_t result = find(handle, &number);
    return result != SUCCESS ? result : give_text(scenery.devices[number].name, name, length);
}

API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned int *current, unsigned int *pending)
{
    LOCKED;
    int number;
    nvmlReturn_t result = find(handle, &number);
    if (result == SUCCESS && scenery.devices[number].parent >= 0)
        return ERROR_NOT_SUPPORTED;
    if (result == SUCCESS)
        *current = *pending = scenery.devices[number].has_mig_mode;
    return result;
}

/* --- memory --- */

static int64_t used_bytes(int number)
{
    int64_t used = in_pages(scenery.devices[number].base_bytes);
    for (int i = 0; i < ledger.account_count; i++)
        if (belongs_to(ledger.accounts[i].device, number))
            used += held_bytes(&ledger.accounts[i]);
    for (int i = 0; i < scenery.listed_count; i++)
        if (belongs_to(scenery.listed[i].device, number))
            used += in_pages(scenery.listed[i].bytes);
    return used;
}

/* Version 1 counts what is reserved as used. */
API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
    LOCKED;
    int number;
    nvmlReturn_t result = find(handle, &number);
    if (result != SUCCESS)
        return result;
    memory->total = (unsigned long long)scenery.devices[number].total_bytes;
    memory->used = (unsigned long long)(used_bytes(number) + scenery.devices[number].reserved_bytes);
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
    LOCKED;
    int number;
    nvmlReturn_t result = find(handle, &number);
    if (result != SUCCESS)
        return result;
    if (!scenery.has_memory_v2)
        return ERROR_FUNCTION_NOT_FOUND;
    if (memory->version != MEMORY_V2)
        return ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = (unsigned long long)scenery.devices[number].total_bytes;
    memory->reserved = (unsigned long long)scenery.devices[number].reserved_bytes;
    memory->used = (unsigned long long)used_bytes(number);
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}

/* --- processes --- */

struct list {
    nvmlProcessInfo_t *entries; /* NULL: only counted */
    unsigned int room, count;
};

static void put(struct list *list, uint32_t pid, int64_t bytes)
{
    unsigned long long used = scenery.tells_process_memory ? (unsigned long long)bytes : NOT_AVAILABLE;
    if (list->entries != NULL && list->count < list->room)
        list->entries[list->count] = (nvmlProcessInfo_t){pid, used, ~0U, ~0U};
    list->count++;
}

static nvmlReturn_t list_processes(const char *kind, nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *entries)
{
    LOCKED;
    int number;
    nvmlReturn_t result = find(handle, &number);
    if (result != SUCCESS)
        return result;
    if (!scenery.lists_processes)
        return ERROR_NOT_SUPPORTED;
    struct list list = {entries, entries == NULL ? 0 : *count, 0};
    for (int i = 0; strcmp(kind, "compute") == 0 && i < ledger.account_count; i++) {
        int64_t held = held_bytes(&ledger.accounts[i]);
        if (held > 0 && belongs_to(ledger.accounts[i].device, number))
            put(&list, ledger.accounts[i].pid, held);
    }
    for (int i = 0; i < scenery.listed_count; i++)
        if (belongs_to(scenery.listed[i].device, number) && strcmp(scenery.listed[i].kind, kind) == 0)
            put(&list, scenery.listed[i].pid, in_pages(scenery.listed[i].bytes));
    *count = list.count;
    return list.count > list.room ? ERROR_INSUFFICIENT_SIZE : SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *list)
{
    return list_processes("compute", handle, count, list);
}

API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *list)
{
    return list_processes("graphics", handle, count, list);
}

API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *list)
{
    return list_processes("mps", handle, count, list);
}
