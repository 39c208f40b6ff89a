#include "shorthand.h"

/* Crashes are counted in this process over all models. Where the number goes tells the field `into`. */
static const struct {
    const char *name;
    struct plant plant;
    enum { INTO_BYTES, INTO_MS, INTO_EVERY } into;
} SHORTHANDS[] = {
    {"retain_host_bytes_per_failed_load", {.what = HOST_BYTES, .when = WHEN_FAILED}, INTO_BYTES},
    {"retain_host_bytes_per_good_load", {.what = HOST_BYTES, .when = WHEN_GOOD}, INTO_BYTES},
    {"sleep_ms_in_load", {.what = SLEEP}, INTO_MS},
    {"abort_every_nth_load", {.what = ABORT}, INTO_EVERY},
    {"segfault_every_nth_load", {.what = SEGFAULT}, INTO_EVERY},
};

static bool read_parameter(const struct json *config, const char *name, int64_t *value, struct message *why)
{
    *value = 0;
    int parameter = json_member(config, json_member(config, 0, "parameters"), name);
    if (parameter < 0)
        return true;
    if (json_integer(config, json_member(config, parameter, "string_value"), value) && *value >= 0)
        return true;
    message_add(why, "planted: parameter '%s' must be a whole number as string_value", name);
    return false;
}

bool shorthand_read(struct plants *plants, const struct json *config, struct message *why)
{
    for (size_t i = 0; i < sizeof SHORTHANDS / sizeof *SHORTHANDS; i++) {
        int64_t value = 0;
        if (!read_parameter(config, SHORTHANDS[i].name, &value, why))
            return false;
        struct plant plant = SHORTHANDS[i].plant;
        plant.place = INSTANCE_INITIALIZE;
        plant.every = SHORTHANDS[i].into == INTO_EVERY ? value : 1;
        plant.bytes = SHORTHANDS[i].into == INTO_BYTES ? value : 0;
        plant.ms = SHORTHANDS[i].into == INTO_MS ? value : 0;
        plant.probability = 1;
        plant.count = 1;
        plant.gpu = -1;
        if (value && !plants_add(plants, &plant, SHORTHANDS[i].name)) {
            message_add(why, "planted: out of memory");
            return false;
        }
    }
    return true;
}
