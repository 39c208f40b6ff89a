/* What to plant, where and when: the parameter `plant` of config.pbtxt, a JSON list. The catalogue is docs/planted.md.
 *
 *   [{"what": "host_bytes", "bytes": 1048576, "at": "instance_initialize", "when": "failed", "every": 2, "cap": 5}]
 */
#ifndef TRITONCHAOS_PLANT_H
#define TRITONCHAOS_PLANT_H

#include "json.h"
#include "message.h"

enum place {
    BACKEND_INITIALIZE,
    MODEL_INITIALIZE,
    BEFORE_VALIDATION,   /* of the instance: the configuration is read, not yet compared with the engine */
    INSTANCE_INITIALIZE, /* after that comparison, so that the load's outcome is known */
    EXECUTE,
    INSTANCE_FINALIZE,
    MODEL_FINALIZE,
    PLACE_COUNT
};

enum what {
    /* kept */
    HOST_BYTES,
    PINNED_BYTES,
    DEVICE_BYTES,
    STREAMS,
    EVENTS,
    MODULES,
    FDS,
    THREADS,
    TEMP_FILES,
    /* done */
    FAIL,
    SLEEP,
    SPIN,
    HANG,
    ABORT,
    SEGFAULT,
    EXIT,
    /* done to the answer of an execution */
    WRONG_OUTPUT,
    WRONG_SIZE,
    WRONG_VERSION,
    RESPOND_TWICE,
    NEVER_RESPOND,
    WHAT_COUNT
};

enum when { ALWAYS, WHEN_FAILED, WHEN_GOOD };

struct plant {
    enum what what;
    enum place place;
    enum when when;
    int64_t every, after, cap; /* each Nth time, past the first N times, at most N of them (0: no limit) */
    double probability;
    int64_t seed;
    int64_t bytes, count, gpu; /* of what is kept; gpu -1: the instance's, else the first one */
    int64_t release_every;     /* each Nth time all of it is given back; 0: never */
    bool held;                 /* given back when the instance goes */
    int64_t ms, status, code;
    char *text, *until_file;
    struct tally *tally; /* how often it came by, over all loads of the process */
};

struct plants {
    struct plant *items;
    size_t count;
};

/* Names as they are written, for messages. */
const char *what_name(enum what what);
const char *place_name(enum place place);

/* Read the list and append it; false: `why` says what is wrong with which plant. `owner` is whom the counts belong to:
 * an entry of the same owner, number and text goes on counting where it was. */
bool plants_read(struct plants *plants, const char *owner, const char *text, struct message *why);
/* Append one plant as it is; NULL: no memory. Its counts belong to `key`. */
struct plant *plants_add(struct plants *plants, const struct plant *plant, const char *key);
void plants_free(struct plants *plants);

#endif
