#include "planting.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tally.h"

static void say(int level, const char *text)
{
    TRITONSERVER_Error *error = TRITONSERVER_LogMessage(level, "planted.c", __LINE__, text);
    if (error)
        TRITONSERVER_ErrorDelete(error);
}

static const char *outcome(const struct visit *visit)
{
    if (visit->place != INSTANCE_INITIALIZE && visit->place < INSTANCE_FINALIZE)
        return "";
    return visit->has_failed ? " (failed load)" : " (good load)";
}

/* "1048576 host bytes", "3 streams", "2 temp files of 4096 bytes" */
static void add_amount(struct message *text, const struct plant *plant)
{
    static const char *const words[] = {
        [HOST_BYTES] = "host bytes", [PINNED_BYTES] = "pinned bytes", [DEVICE_BYTES] = "device bytes",
        [STREAMS] = "streams",       [EVENTS] = "events",             [MODULES] = "modules",
        [FDS] = "fds",               [THREADS] = "threads",           [TEMP_FILES] = "temp files",
    };
    message_add(text, "%" PRId64 " %s", plant->what <= DEVICE_BYTES ? plant->bytes : plant->count, words[plant->what]);
    if (plant->what == TEMP_FILES)
        message_add(text, " of %" PRId64 " bytes", plant->bytes);
}

static void add_place(struct message *text, const struct visit *visit, int64_t number)
{
    message_add(text, " on purpose%s at %s of '%s', time %" PRId64, outcome(visit), place_name(visit->place),
                visit->model, number);
}

/* Remember one thing where it will be given back, if it ever is. */
static bool remember(const struct plant *plant, const struct visit *visit, const struct kept *kept)
{
    if (!plant->release_every && !(plant->held && visit->held))
        return true;
    struct kept *copy = malloc(sizeof *copy);
    if (!copy)
        return false;
    *copy = *kept;
    if (plant->release_every) {
        tally_keep(plant->tally, copy);
    } else {
        copy->next = *visit->held;
        *visit->held = copy;
    }
    return true;
}

static bool keep_all(const struct plant *plant, const struct visit *visit, struct message *why)
{
    int64_t count = plant->what <= DEVICE_BYTES ? 1 : plant->count;
    int64_t gpu = plant->gpu < 0 ? visit->gpu : plant->gpu;
    for (int64_t i = 0; i < count; i++) {
        struct kept kept;
        if (!keep_one(&kept, plant->what, plant->bytes, gpu, why))
            return false;
        if (!remember(plant, visit, &kept)) {
            give_back(&kept);
            message_add(why, "out of memory");
            return false;
        }
    }
    return true;
}

static TRITONSERVER_Error *keep(const struct plant *plant, const struct visit *visit, int64_t number)
{
    struct message text, why;
    message_clear(&text);
    message_clear(&why);
    bool is_kept = keep_all(plant, visit, &why);
    message_add(&text, is_kept ? (plant->held ? "planted: holds " : "planted: retained ") : "planted: could not retain ");
    add_amount(&text, plant);
    add_place(&text, visit, number);
    if (is_kept) {
        say(LOG_INFO, text.text);
        return NULL;
    }
    tally_undo(plant->tally);
    message_add(&text, ": %s", why.text);
    return TRITONSERVER_ErrorNew(ERROR_UNAVAILABLE, text.text);
}

static TRITONSERVER_Error *misbehave(const struct plant *plant, struct visit *visit, int64_t number)
{
    struct message text;
    message_clear(&text);
    message_add(&text, "planted: %s", what_name(plant->what));
    if (plant->ms)
        message_add(&text, " for %" PRId64 " ms", plant->ms);
    if (plant->what == EXIT)
        message_add(&text, " with status %" PRId64, plant->status);
    add_place(&text, visit, number);
    say(LOG_WARN, text.text);
    return behave(plant, &visit->answer);
}

static void release(const struct visit *visit, struct kept *kept, const struct plant *plant, int64_t number)
{
    struct message text;
    message_clear(&text);
    message_add(&text, "planted: gave back %" PRId64 " %s", give_back_all(kept), what_name(plant->what));
    add_place(&text, visit, number);
    say(LOG_INFO, text.text);
}

static TRITONSERVER_Error *carry_out_one(const struct plant *plant, struct visit *visit)
{
    struct kept *given_back = NULL;
    int64_t number = 0;
    bool is_due = tally_is_due(plant, &number, &given_back);
    if (given_back)
        release(visit, given_back, plant, number);
    if (!is_due)
        return NULL;
    return plant->what <= TEMP_FILES ? keep(plant, visit, number) : misbehave(plant, visit, number);
}

TRITONSERVER_Error *carry_out(const struct plants *plants, struct visit *visit, TRITONSERVER_Error *error)
{
    for (size_t i = 0; i < plants->count; i++) {
        const struct plant *plant = &plants->items[i];
        visit->has_failed = visit->has_failed || error;
        if (plant->place != visit->place || (plant->when == WHEN_FAILED && !visit->has_failed)
            || (plant->when == WHEN_GOOD && visit->has_failed))
            continue;
        TRITONSERVER_Error *own = carry_out_one(plant, visit);
        if (own && error)
            TRITONSERVER_ErrorDelete(error);
        error = own ? own : error;
    }
    return error;
}
