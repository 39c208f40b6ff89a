/* The five most used plants as parameters of their own. */
#ifndef TRITONCHAOS_SHORTHAND_H
#define TRITONCHAOS_SHORTHAND_H

#include "json.h"
#include "message.h"
#include "plant.h"

/* Append those that the configuration's parameters ask for; false: `why` says which one is no whole number. */
bool shorthand_read(struct plants *plants, const struct json *config, struct message *why);

#endif
