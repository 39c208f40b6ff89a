#define _DEFAULT_SOURCE
#include "tally.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "keep.h"

struct tally {
    char *key;
    int64_t times, planted;
    uint64_t random;
    struct kept *kept;
    struct tally *next;
};

/* Loads run on several threads. Nothing slow is done under the lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally *tallies;

static struct tally *begin(const char *key, uint64_t seed)
{
    struct tally *tally = calloc(1, sizeof *tally);
    char *copy = strdup(key);
    if (!tally || !copy) {
        free(tally);
        free(copy);
        return NULL;
    }
    *tally = (struct tally){.key = copy, .random = seed, .next = tallies};
    tallies = tally;
    return tally;
}

struct tally *tally_for(const char *key, uint64_t seed)
{
    pthread_mutex_lock(&lock);
    struct tally *tally = tallies;
    while (tally && strcmp(tally->key, key) != 0)
        tally = tally->next;
    if (!tally)
        tally = begin(key, seed);
    pthread_mutex_unlock(&lock);
    return tally;
}

/* SplitMix64 (Steele, Lea, Flood 2014), whose states may start at any seed. */
static double draw(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

bool tally_is_due(const struct plant *plant, int64_t *number, struct kept **give_back)
{
    struct tally *tally = plant->tally;
    *give_back = NULL;
    pthread_mutex_lock(&lock);
    *number = ++tally->times;
    if (plant->release_every && tally->times % plant->release_every == 0) {
        *give_back = tally->kept;
        tally->kept = NULL;
        tally->planted = 0;
    }
    /* Drawn each time, so that the draws do not depend on the other conditions. */
    bool is_due = draw(&tally->random) < plant->probability;
    int64_t past = tally->times - plant->after;
    is_due = is_due && past > 0 && past % plant->every == 0 && (!plant->cap || tally->planted < plant->cap);
    tally->planted += is_due;
    pthread_mutex_unlock(&lock);
    return is_due;
}

void tally_keep(struct tally *tally, struct kept *kept)
{
    pthread_mutex_lock(&lock);
    kept->next = tally->kept;
    tally->kept = kept;
    pthread_mutex_unlock(&lock);
}

void tally_undo(struct tally *tally)
{
    pthread_mutex_lock(&lock);
    tally->planted--;
    pthread_mutex_unlock(&lock);
}
