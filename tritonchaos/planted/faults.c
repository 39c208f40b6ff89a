#define _DEFAULT_SOURCE
#include "faults.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "message.h"
#include "retain.h"
#include "triton_api.h"

/* Loads of models that ask for a crash, since the process began; it ends with the crash. */
static atomic_int_fast64_t abort_loads, segfault_loads;

static bool read_parameter(const struct json *config, const char *name, int64_t *value, struct message *why)
{
    *value = 0;
    int parameter = json_member(config, json_member(config, 0, "parameters"), name);
    if (parameter < 0)
        return true;
    if (json_integer(config, json_member(config, parameter, "string_value"), value) && *value >= 0)
        return true;
    message_clear(why);
    message_add(why, "planted: parameter '%s' must be a whole number as string_value", name);
    return false;
}

bool read_faults(struct faults *faults, const struct json *config, struct message *why)
{
    return read_parameter(config, "retain_host_bytes_per_failed_load", &faults->retain_per_failed_load, why)
        && read_parameter(config, "retain_host_bytes_per_good_load", &faults->retain_per_good_load, why)
        && read_parameter(config, "sleep_ms_in_load", &faults->sleep_ms_in_load, why)
        && read_parameter(config, "abort_every_nth_load", &faults->abort_every_nth_load, why)
        && read_parameter(config, "segfault_every_nth_load", &faults->segfault_every_nth_load, why);
}

static void say(int level, const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    TRITONSERVER_Error *error = TRITONSERVER_LogMessage(level, "planted.c", __LINE__, text);
    if (error)
        TRITONSERVER_ErrorDelete(error);
}

static void retain(int64_t bytes, bool failed)
{
    const char *which = failed ? "failed" : "good";
    if (retain_host_bytes(bytes))
        say(LOG_INFO, "planted: retained %" PRId64 " host bytes on purpose (%s load)", bytes, which);
    else
        say(LOG_WARN, "planted: could not retain %" PRId64 " host bytes on purpose (%s load)", bytes, which);
}

static void sleep_on_purpose(int64_t ms)
{
    say(LOG_INFO, "planted: sleeps %" PRId64 " ms on purpose", ms);
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        ;
}

static bool is_due(atomic_int_fast64_t *loads, int64_t every)
{
    return every > 0 && (atomic_fetch_add(loads, 1) + 1) % every == 0;
}

static void write_nowhere(void)
{
    /* Volatile both ways, or the compiler puts a trap (SIGILL) in place of what it knows to be undefined. */
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

void plant(const struct faults *faults, bool failed)
{
    int64_t bytes = failed ? faults->retain_per_failed_load : faults->retain_per_good_load;
    if (bytes)
        retain(bytes, failed);
    if (faults->sleep_ms_in_load)
        sleep_on_purpose(faults->sleep_ms_in_load);
    if (is_due(&abort_loads, faults->abort_every_nth_load)) {
        say(LOG_WARN, "planted: aborts on purpose (every load number %" PRId64 ")", faults->abort_every_nth_load);
        abort();
    }
    if (is_due(&segfault_loads, faults->segfault_every_nth_load)) {
        say(LOG_WARN, "planted: writes to address 0 on purpose (every load number %" PRId64 ")",
            faults->segfault_every_nth_load);
        write_nowhere();
    }
}
