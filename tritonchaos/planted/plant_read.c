#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plant.h"
#include "tally.h"

/* Which fields one of them has beside those that all have (COMMON); a field in capitals must be there. */
static const struct {
    const char *name, *fields;
} WHATS[WHAT_COUNT] = {
    [HOST_BYTES] = {"host_bytes", "BYTES release_every held"},
    [PINNED_BYTES] = {"pinned_bytes", "BYTES gpu release_every held"},
    [DEVICE_BYTES] = {"device_bytes", "BYTES gpu release_every held"},
    [STREAMS] = {"streams", "count gpu release_every held"},
    [EVENTS] = {"events", "count gpu release_every held"},
    [MODULES] = {"modules", "count gpu release_every held"},
    [FDS] = {"fds", "count release_every held"},
    [THREADS] = {"threads", "count release_every held"},
    [TEMP_FILES] = {"temp_files", "count bytes release_every held"},
    [FAIL] = {"fail", "code text"},
    [SLEEP] = {"sleep", "MS"},
    [SPIN] = {"spin", "ms until_file"},
    [HANG] = {"hang", "until_file"},
    [ABORT] = {"abort", ""},
    [SEGFAULT] = {"segfault", ""},
    [EXIT] = {"exit", "STATUS"},
    [WRONG_OUTPUT] = {"wrong_output", ""},
    [WRONG_SIZE] = {"wrong_size", ""},
    [WRONG_VERSION] = {"wrong_version", ""},
    [RESPOND_TWICE] = {"respond_twice", ""},
    [NEVER_RESPOND] = {"never_respond", ""},
};
static const char COMMON[] = "what at when every after cap probability seed";

static const char *const PLACES[PLACE_COUNT] = {
    [BACKEND_INITIALIZE] = "backend_initialize", [MODEL_INITIALIZE] = "model_initialize",
    [BEFORE_VALIDATION] = "before_validation",   [INSTANCE_INITIALIZE] = "instance_initialize",
    [EXECUTE] = "execute",                       [INSTANCE_FINALIZE] = "instance_finalize",
    [MODEL_FINALIZE] = "model_finalize",
};
static const char *const WHENS[] = {[ALWAYS] = "always", [WHEN_FAILED] = "failed", [WHEN_GOOD] = "good"};
/* In the order of TRITONSERVER_Error_Code. */
static const char *const CODES[] = {"unknown",     "internal",    "not_found",      "invalid_arg",
                                    "unavailable", "unsupported", "already_exists", "cancelled"};

const char *what_name(enum what what)
{
    return WHATS[what].name;
}

const char *place_name(enum place place)
{
    return PLACES[place];
}

/* Is the word, in small letters or in capitals, one of a list with spaces in between? */
static bool is_listed(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && !strncasecmp(at, word, length))
            return true;
    return false;
}

struct entry {
    const struct json *json;
    int node;
    size_t number; /* in the list, from 0 */
    struct message *why;
};

static bool refuse(const struct entry *entry, const char *field, const char *expected)
{
    message_add(entry->why, "planted: plant[%zu].%s: expected %s", entry->number, field, expected);
    return false;
}

static bool take_integer(const struct entry *entry, const char *field, int64_t smallest, int64_t *value)
{
    int node = json_member(entry->json, entry->node, field);
    if (node < 0)
        return true;
    if (json_integer(entry->json, node, value) && *value >= smallest)
        return true;
    return refuse(entry, field, smallest > 0 ? "a whole number from 1" : "a whole number that is not negative");
}

static bool take_choice(const struct entry *entry, const char *field, const char *const *names, size_t count, int *value)
{
    int node = json_member(entry->json, entry->node, field);
    if (node < 0)
        return true;
    char *text = json_string(entry->json, node);
    for (size_t i = 0; text && i < count; i++) {
        if (strcmp(names[i], text) != 0)
            continue;
        *value = (int)i;
        free(text);
        return true;
    }
    free(text);
    message_add(entry->why, "planted: plant[%zu].%s: expected one of", entry->number, field);
    for (size_t i = 0; i < count; i++)
        message_add(entry->why, "%s %s", i ? "," : "", names[i]);
    return false;
}

static bool take_probability(const struct entry *entry, double *value)
{
    int node = json_member(entry->json, entry->node, "probability");
    if (node < 0 || (json_number(entry->json, node, value) && *value > 0 && *value <= 1))
        return true;
    return refuse(entry, "probability", "a number above 0 and at most 1");
}

static bool take_held(const struct entry *entry, bool *value)
{
    int node = json_member(entry->json, entry->node, "held");
    *value = node >= 0 && json_word_is(entry->json, node, "true");
    return node < 0 || *value || json_word_is(entry->json, node, "false") || refuse(entry, "held", "true or false");
}

static bool take_text(const struct entry *entry, const char *field, char **value)
{
    int node = json_member(entry->json, entry->node, field);
    if (node < 0)
        return true;
    *value = json_string(entry->json, node);
    return *value || refuse(entry, field, "a text");
}

static bool check_fields(const struct entry *entry, const char *fields)
{
    for (int at = entry->json->nodes[entry->node].child; at >= 0; at = entry->json->nodes[at].next) {
        const struct json_node *key = &entry->json->nodes[at];
        const char *name = entry->json->text + key->start;
        if (is_listed(COMMON, name, key->end - key->start) || is_listed(fields, name, key->end - key->start))
            continue;
        message_add(entry->why, "planted: plant[%zu] has no field '%.*s'; it has: %s %s", entry->number,
                    (int)(key->end - key->start), name, COMMON, fields);
        return false;
    }
    return true;
}

static bool has_required(const struct entry *entry, const char *fields)
{
    static const char *const names[][2] = {{"BYTES", "bytes"}, {"MS", "ms"}, {"STATUS", "status"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(fields, names[i][0]) && json_member(entry->json, entry->node, names[i][1]) < 0)
            return refuse(entry, names[i][1], "it to be there");
    return true;
}

static bool check_together(const struct entry *entry, const struct plant *plant)
{
    bool knows_outcome = plant->place == INSTANCE_INITIALIZE || plant->place >= INSTANCE_FINALIZE;
    if (plant->when != ALWAYS && !knows_outcome)
        return refuse(entry, "when", "'always' at this place, where no load has failed or succeeded yet");
    if (plant->what >= WRONG_OUTPUT && plant->place != EXECUTE)
        return refuse(entry, "at", "'execute', where answers are made");
    if (plant->held && plant->place != BEFORE_VALIDATION && plant->place != INSTANCE_INITIALIZE)
        return refuse(entry, "held", "false at this place, which is not in an instance's initialisation");
    if (plant->held && plant->release_every)
        return refuse(entry, "held", "either it or release_every");
    if (plant->what == EXIT && plant->status > 255)
        return refuse(entry, "status", "at most 255");
    return true;
}

static bool read_numbers(const struct entry *entry, struct plant *plant)
{
    return take_integer(entry, "every", 1, &plant->every) && take_integer(entry, "after", 0, &plant->after)
        && take_integer(entry, "cap", 0, &plant->cap) && take_integer(entry, "seed", 0, &plant->seed)
        && take_integer(entry, "bytes", 1, &plant->bytes) && take_integer(entry, "count", 1, &plant->count)
        && take_integer(entry, "gpu", 0, &plant->gpu) && take_integer(entry, "ms", 0, &plant->ms)
        && take_integer(entry, "release_every", 1, &plant->release_every)
        && take_integer(entry, "status", 0, &plant->status) && take_probability(entry, &plant->probability);
}

static bool read_plant(const struct entry *entry, struct plant *plant)
{
    const char *names[WHAT_COUNT];
    for (size_t i = 0; i < WHAT_COUNT; i++)
        names[i] = WHATS[i].name;
    int what = -1, when = ALWAYS, code = 1;
    *plant = (struct plant){.every = 1, .probability = 1, .count = 1, .gpu = -1};
    if (!take_choice(entry, "what", names, WHAT_COUNT, &what))
        return false;
    if (what < 0)
        return refuse(entry, "what", "it to be there");
    int place = what >= WRONG_OUTPUT ? EXECUTE : INSTANCE_INITIALIZE;
    bool is_read = check_fields(entry, WHATS[what].fields) && has_required(entry, WHATS[what].fields)
        && take_choice(entry, "at", PLACES, PLACE_COUNT, &place) && take_choice(entry, "when", WHENS, 3, &when)
        && take_choice(entry, "code", CODES, sizeof CODES / sizeof *CODES, &code) && read_numbers(entry, plant)
        && take_held(entry, &plant->held) && take_text(entry, "text", &plant->text)
        && take_text(entry, "until_file", &plant->until_file);
    plant->what = (enum what)what;
    plant->place = (enum place)place;
    plant->when = (enum when)when;
    plant->code = code;
    return is_read && check_together(entry, plant);
}

static void free_texts(struct plant *plant)
{
    free(plant->text);
    free(plant->until_file);
}

struct plant *plants_add(struct plants *plants, const struct plant *plant, const char *key)
{
    struct plant *items = realloc(plants->items, (plants->count + 1) * sizeof *items);
    if (!items)
        return NULL;
    plants->items = items;
    items[plants->count] = *plant;
    items[plants->count].tally = tally_for(key, (uint64_t)plant->seed);
    return items[plants->count].tally ? &items[plants->count++] : NULL;
}

static bool add_read(struct plants *plants, const struct entry *entry, const struct plant *plant, const char *owner)
{
    const char *text = entry->json->text;
    int next = json_next(entry->json, entry->node);
    size_t start = entry->json->nodes[entry->node].start;
    size_t end = next < 0 ? entry->json->length : entry->json->nodes[next].start;
    struct message key;
    message_clear(&key);
    message_add(&key, "%s/%zu/%.*s", owner, entry->number, (int)(end - start), text + start);
    if (plants_add(plants, plant, key.text))
        return true;
    message_add(entry->why, "planted: out of memory");
    return false;
}

bool plants_read(struct plants *plants, const char *owner, const char *text, struct message *why)
{
    struct json json;
    bool is_list = json_parse(&json, text, strlen(text)) && json.nodes[0].kind == JSON_ARRAY;
    if (!is_list)
        message_add(why, "planted: the parameter 'plant' is no JSON list");
    struct entry entry = {.json = &json, .why = why};
    bool is_read = is_list;
    for (int at = is_list ? json_first(&json, 0) : -1; is_read && at >= 0; at = json_next(&json, at)) {
        struct plant plant = {0};
        entry.node = at;
        if (json.nodes[at].kind != JSON_OBJECT)
            is_read = refuse(&entry, "what", "an object with it");
        else
            is_read = read_plant(&entry, &plant) && add_read(plants, &entry, &plant, owner);
        if (!is_read)
            free_texts(&plant);
        entry.number++;
    }
    json_free(&json);
    return is_read;
}

void plants_free(struct plants *plants)
{
    for (size_t i = 0; i < plants->count; i++)
        free_texts(&plants->items[i]);
    free(plants->items);
    *plants = (struct plants){0};
}
