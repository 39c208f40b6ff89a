/* What the stand-in knows: the scenery (which GPUs there are) and the ledger (who holds how much on them). */
#ifndef TRITONCHAOS_STAND_IN_H
#define TRITONCHAOS_STAND_IN_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_DEVICES = 16, MAX_LISTED = 64, MAX_ACCOUNTS = 1024, MAX_WORD = 128 };

/* A GPU, or an instance of one: `parent` is the GPU's number, -1 for a GPU. */
struct device {
    char uuid[MAX_WORD];
    char name[MAX_WORD];
    int64_t total_bytes, base_bytes, reserved_bytes;
    int64_t lost_after; /* lines of the ledger after which the device is lost; -1: never */
    int parent;
    bool has_mig_mode;
};

/* A process that the driver lists whatever the ledger says, such as one of another PID namespace. */
struct listed_process {
    uint32_t pid;
    int device;
    int64_t bytes;
    char kind[MAX_WORD]; /* compute, graphics or mps */
};

struct scenery {
    struct device devices[MAX_DEVICES];
    int device_count;
    struct listed_process listed[MAX_LISTED];
    int listed_count;
    char version[MAX_WORD];
    int start_error;
    bool has_memory_v2, lists_processes, tells_process_memory;
};

/* Read the scenery anew. False, with the reason on standard error: it cannot be read or has a word that is not known. */
bool read_scenery(struct scenery *scenery);

/* What one process holds on one device: the sum of its lines in the ledger. */
struct account {
    uint32_t pid;
    int device;
    int64_t bytes;
};

struct ledger {
    struct account accounts[MAX_ACCOUNTS];
    int account_count;
    int64_t lines;
    long offset;
};

/* Take in the lines that were appended since the last call. False, with the reason on standard error: a line is wrong. */
bool read_ledger(struct ledger *ledger);

/* Bytes in whole device pages of 2 MiB that an account holds; 0 once its process has ended. */
int64_t held_bytes(const struct account *account);

int64_t in_pages(int64_t bytes);

#endif
