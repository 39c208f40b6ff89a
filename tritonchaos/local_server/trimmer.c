/*
 * Preloaded into tritonserver, so that it can be told from outside to give back what its allocators keep.
 *
 * One thread waits for a byte in the fifo `ask` of the folder $TRITONCHAOS_TRIM; it then calls malloc_trim(0), trims
 * the default memory pools of the GPUs whose primary context is in use, and writes one line to the fifo `answer`.
 * malloc_trim may not be called in a signal handler, hence the thread. Nothing else changes: the thread takes no
 * signals and does nothing until it is asked, the files are not inherited, and what the server starts does not get
 * this library.
 *
 * Source: malloc_trim(3); CUDA driver API, "Stream Ordered Memory Allocator" (cuMemPoolTrimTo) and "Primary Context
 * Management".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FOLDER "TRITONCHAOS_TRIM"
#define PRELOAD "LD_PRELOAD"
#define LIBRARY "libtritonchaos_trimmer.so"
#define SERVER "tritonserver"
#define STACK_BYTES (64 * 1024)

static int ask = -1;
static int answer = -1;

/* Of a wrapper in front of the server the library is not the server's. */
static int is_server(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = '\0';
    const char *name = strrchr(path, '/');
    return name && strncmp(name + 1, SERVER, strlen(SERVER)) == 0;
}

/* Take this library out of LD_PRELOAD, in place: the server's children are none of its business. */
static void leave_environment(void)
{
    unsetenv(FOLDER);
    char *list = getenv(PRELOAD);
    char *found = list ? strstr(list, LIBRARY) : NULL;
    if (!found)
        return;
    char *begin = found;
    while (begin > list && begin[-1] != ':' && begin[-1] != ' ')
        begin--;
    char *end = found + strlen(LIBRARY);
    if (*end)
        end++;
    memmove(begin, end, strlen(end) + 1);
    if (*list == '\0')
        unsetenv(PRELOAD);
}

static int trim_pools(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
    if (!cuda)
        return 0;
    int (*count_devices)(int *) = (int (*)(int *))dlsym(cuda, "cuDeviceGetCount");
    int (*context_state)(int, unsigned *, int *) =
        (int (*)(int, unsigned *, int *))dlsym(cuda, "cuDevicePrimaryCtxGetState");
    int (*default_pool)(void **, int) = (int (*)(void **, int))dlsym(cuda, "cuDeviceGetDefaultMemPool");
    int (*trim_to)(void *, size_t) = (int (*)(void *, size_t))dlsym(cuda, "cuMemPoolTrimTo");
    int count = 0, trimmed = 0;
    if (count_devices && context_state && default_pool && trim_to && count_devices(&count) == 0) {
        for (int device = 0; device < count; device++) {
            unsigned flags = 0;
            int is_active = 0;
            void *pool = NULL;
            if (context_state(device, &flags, &is_active) == 0 && is_active && default_pool(&pool, device) == 0 &&
                trim_to(pool, 0) == 0)
                trimmed++;
        }
    }
    dlclose(cuda);
    return trimmed;
}

static void *wait_and_trim(void *unused)
{
    (void)unused;
    char byte;
    for (;;) {
        ssize_t got = read(ask, &byte, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != 1)
            return NULL;
        int pools = trim_pools();
        malloc_trim(0);
        char line[32];
        int length = snprintf(line, sizeof line, "%d\n", pools);
        if (write(answer, line, (size_t)length) != length)
            return NULL;
    }
}

static int open_fifo(const char *folder, const char *name)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return -1;
    /* Both ends, so that neither side waits for the other one to come or notices that it went. */
    return open(path, O_RDWR | O_CLOEXEC);
}

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv(FOLDER);
    if (!folder || !is_server())
        return;
    ask = open_fifo(folder, "ask");
    answer = open_fifo(folder, "answer");
    leave_environment();
    if (ask < 0 || answer < 0)
        return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, wait_and_trim, NULL) == 0)
        pthread_setname_np(thread, "tritonchaos");
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
