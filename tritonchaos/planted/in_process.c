/* File descriptors, threads and temp files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keep.h"

enum { STACK_BYTES = 64 * 1024 };

struct sleeper {
    pthread_t thread;
    sem_t end;
};

static bool fails(struct message *why, const char *what, int number)
{
    message_add(why, "%s: %s", what, strerror(number));
    return false;
}

static bool keep_fd(struct kept *kept, struct message *why)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    kept->number = fd;
    return fd >= 0 || fails(why, "open /dev/null", errno);
}

static void *sleep_until_end(void *argument)
{
    struct sleeper *sleeper = argument;
    while (sem_wait(&sleeper->end) != 0)
        ;
    return NULL;
}

/* Start it with all signals blocked, so that the server's handlers never run on it. */
static int start_thread(struct sleeper *sleeper)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&sleeper->thread, &attributes, sleep_until_end, sleeper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

static bool keep_thread(struct kept *kept, struct message *why)
{
    struct sleeper *sleeper = calloc(1, sizeof *sleeper);
    if (!sleeper)
        return fails(why, "thread", ENOMEM);
    sem_init(&sleeper->end, 0, 0);
    int error = start_thread(sleeper);
    if (error) {
        free(sleeper);
        return fails(why, "pthread_create", error);
    }
    kept->handle = sleeper;
    return true;
}

static void end_thread(struct sleeper *sleeper)
{
    sem_post(&sleeper->end);
    pthread_join(sleeper->thread, NULL);
    sem_destroy(&sleeper->end);
    free(sleeper);
}

static bool fill(int fd, int64_t bytes)
{
    char chunk[4096];
    memset(chunk, 0xA5, sizeof chunk);
    while (bytes > 0) {
        size_t wanted = bytes < (int64_t)sizeof chunk ? (size_t)bytes : sizeof chunk;
        ssize_t written = write(fd, chunk, wanted);
        if (written < 0 && errno != EINTR)
            return false;
        bytes -= written > 0 ? written : 0;
    }
    return true;
}

static bool keep_temp_file(struct kept *kept, struct message *why)
{
    const char *folder = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/tritonchaos_left_%d_XXXXXX", folder && *folder ? folder : "/tmp", (int)getpid()) < 0)
        return fails(why, "temp file", ENOMEM);
    int fd = mkostemp(path, O_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0 && !fill(fd, kept->number)) {
        error = errno;
        unlink(path);
    }
    if (fd >= 0)
        close(fd);
    if (error) {
        message_add(why, "%s: %s", path, strerror(error));
        free(path);
        return false;
    }
    kept->handle = path;
    return true;
}

bool keep_in_process(struct kept *kept, struct message *why)
{
    if (kept->what == FDS)
        return keep_fd(kept, why);
    return kept->what == THREADS ? keep_thread(kept, why) : keep_temp_file(kept, why);
}

void give_back_in_process(const struct kept *kept)
{
    if (kept->what == FDS) {
        close((int)kept->number);
    } else if (kept->what == THREADS) {
        end_thread(kept->handle);
    } else {
        unlink(kept->handle);
        free(kept->handle);
    }
}
