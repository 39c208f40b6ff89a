#define _DEFAULT_SOURCE
#include "behave.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 20 };

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        ;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_released(const struct plant *plant)
{
    return plant->until_file && access(plant->until_file, F_OK) == 0;
}

static void hang(const struct plant *plant)
{
    while (!is_released(plant))
        sleep_ms(LOOK_EVERY_MS);
}

static void spin(const struct plant *plant)
{
    int64_t end = now_ms() + plant->ms, look = 0;
    for (int64_t now = now_ms(); !plant->ms || now < end; now = now_ms()) {
        /* Looking at every round would make it a loop of system calls. */
        if (now < look)
            continue;
        look = now + LOOK_EVERY_MS;
        if (is_released(plant))
            return;
    }
}

static void write_nowhere(void)
{
    /* Volatile both ways, or the compiler puts a trap (SIGILL) in place of what it knows to be undefined. */
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

TRITONSERVER_Error *behave(const struct plant *plant, struct answer_faults *faults)
{
    switch (plant->what) {
    case FAIL: return TRITONSERVER_ErrorNew((int)plant->code, plant->text ? plant->text : "planted: fails on purpose");
    case SLEEP: sleep_ms(plant->ms); break;
    case SPIN: spin(plant); break;
    case HANG: hang(plant); break;
    case ABORT: abort();
    case SEGFAULT: write_nowhere(); break;
    /* Without the server's exit handlers, which would wait for the load that this is. */
    case EXIT: _exit((int)plant->status);
    case WRONG_OUTPUT: faults->is_wrong = true; break;
    case WRONG_SIZE: faults->has_wrong_size = true; break;
    case WRONG_VERSION: faults->is_of_other_version = true; break;
    case RESPOND_TWICE: faults->is_sent_twice = true; break;
    case NEVER_RESPOND: faults->is_never_sent = true; break;
    default: break;
    }
    return NULL;
}
