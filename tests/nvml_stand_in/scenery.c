/* Reads the scenery, the file named by TRITONCHAOS_STAND_IN_NVML; its words are described in README.md. */
#define _POSIX_C_SOURCE 200809L
#include "stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct device NEW_DEVICE = {
    .name = "stand-in GPU",
    .total_bytes = 80LL << 30,
    .base_bytes = 4 << 20,
    .reserved_bytes = 600 << 20,
    .lost_after = -1,
    .parent = -1,
};

static bool wrong(const char *what, const char *word)
{
    fprintf(stderr, "stand-in NVML: %s: %s\n", what, word);
    return false;
}

static void copy(char *to, const char *from)
{
    snprintf(to, MAX_WORD, "%s", from);
}

static int find_device(const struct scenery *scenery, const char *uuid)
{
    for (int i = 0; i < scenery->device_count; i++)
        if (strcmp(scenery->devices[i].uuid, uuid) == 0)
            return i;
    return -1;
}

static bool set_device(struct scenery *scenery, struct device *device, const char *key, const char *value)
{
    int64_t number = strtoll(value, NULL, 10);
    if (strcmp(key, "uuid") == 0)
        copy(device->uuid, value);
    else if (strcmp(key, "name") == 0)
        copy(device->name, value);
    else if (strcmp(key, "total") == 0)
        device->total_bytes = number;
    else if (strcmp(key, "base") == 0)
        device->base_bytes = number;
    else if (strcmp(key, "reserved") == 0)
        device->reserved_bytes = number;
    else if (strcmp(key, "mig") == 0)
        device->has_mig_mode = number != 0;
    else if (strcmp(key, "lost_after") == 0)
        device->lost_after = number;
    else if (strcmp(key, "of") == 0)
        return (device->parent = find_device(scenery, value)) >= 0 || wrong("no such GPU", value);
    else
        return wrong("unknown key of a device", key);
    return true;
}

static bool set_listed(struct scenery *scenery, struct listed_process *process, const char *key, const char *value)
{
    if (strcmp(key, "pid") == 0)
        process->pid = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(key, "bytes") == 0)
        process->bytes = strtoll(value, NULL, 10);
    else if (strcmp(key, "kind") == 0)
        copy(process->kind, value);
    else if (strcmp(key, "on") == 0)
        return (process->device = find_device(scenery, value)) >= 0 || wrong("no such device", value);
    else
        return wrong("unknown key of a process", key);
    return true;
}

static bool set_driver(struct scenery *scenery, const char *key, const char *value)
{
    int number = atoi(value);
    if (strcmp(key, "version") == 0)
        copy(scenery->version, value);
    else if (strcmp(key, "start_error") == 0)
        scenery->start_error = number;
    else if (strcmp(key, "memory_v2") == 0)
        scenery->has_memory_v2 = number != 0;
    else if (strcmp(key, "process_list") == 0)
        scenery->lists_processes = number != 0;
    else if (strcmp(key, "process_memory") == 0)
        scenery->tells_process_memory = number != 0;
    else
        return wrong("unknown key of the driver", key);
    return true;
}

static bool read_line(struct scenery *scenery, char *line)
{
    char *rest = NULL, *kind = strtok_r(line, " \n", &rest);
    if (kind == NULL || kind[0] == '#')
        return true;
    struct device *device = &scenery->devices[scenery->device_count];
    struct listed_process *process = &scenery->listed[scenery->listed_count];
    bool is_device = strcmp(kind, "gpu") == 0 || strcmp(kind, "instance") == 0;
    bool is_process = strcmp(kind, "process") == 0;
    if (!is_device && !is_process && strcmp(kind, "driver") != 0)
        return wrong("unknown line", kind);
    if ((is_device && scenery->device_count == MAX_DEVICES) || (is_process && scenery->listed_count == MAX_LISTED))
        return wrong("too many lines", kind);
    if (is_device)
        *device = NEW_DEVICE;
    if (is_process)
        *process = (struct listed_process){.kind = "compute"};
    for (char *word; (word = strtok_r(NULL, " \n", &rest)) != NULL;) {
        char *value = strchr(word, '=');
        if (value == NULL)
            return wrong("expected key=value", word);
        *value++ = '\0';
        if (is_device ? !set_device(scenery, device, word, value)
                      : is_process ? !set_listed(scenery, process, word, value) : !set_driver(scenery, word, value))
            return false;
    }
    scenery->device_count += is_device;
    scenery->listed_count += is_process;
    return true;
}

bool read_scenery(struct scenery *scenery)
{
    const char *path = getenv("TRITONCHAOS_STAND_IN_NVML");
    FILE *file = path == NULL ? NULL : fopen(path, "re");
    if (file == NULL)
        return wrong("cannot read the file named by TRITONCHAOS_STAND_IN_NVML", path == NULL ? "it is not set" : path);
    *scenery = (struct scenery){.has_memory_v2 = true, .lists_processes = true, .tells_process_memory = true};
    copy(scenery->version, "stand-in");
    char line[1024];
    bool is_good = true;
    while (is_good && fgets(line, sizeof line, file) != NULL)
        is_good = read_line(scenery, line);
    fclose(file);
    return is_good;
}
