/* How often each plant came by and what it keeps, over all loads of the process. */
#ifndef TRITONCHAOS_TALLY_H
#define TRITONCHAOS_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "plant.h"

struct kept; /* keep.h */
struct tally;

/* Find the tally of a key, or begin one; NULL: no memory. It lives as long as the process. */
struct tally *tally_for(const char *key, uint64_t seed);
/* Count one time that it came by; true: it is due. `number` is which time that was. `give_back` are the things to be
 * given back now, in a burst, or NULL. */
bool tally_is_due(const struct plant *plant, int64_t *number, struct kept **give_back);
/* Put something on the list of what will be given back. */
void tally_keep(struct tally *tally, struct kept *kept);
/* It was due but could not be done. */
void tally_undo(struct tally *tally);

#endif
