/* The test mode without a GPU: with TRITONCHAOS_PLANTED_LEDGER=FILE in the environment, what would be taken from a device
 * is only written down in FILE, for a stand-in NVML to read.
 *
 * One JSON object in a line, appended under flock(2), never changed:
 *
 *   {"pid": 4711, "gpu": 0, "bytes": 2097152, "what": "device"}
 *
 * pid: the process that "has" the memory; all of its lines together are what it has, and when it is gone, nothing.
 * gpu: the device's number, from 0. bytes: taken (positive) or given back (negative).
 * what: "device"; "stream", "event" or "module", which are written with 0 bytes, as a driver does not say what they take.
 */
#ifndef TRITONCHAOS_LEDGER_H
#define TRITONCHAOS_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "message.h"

/* Is the test mode on? */
bool ledger_is_on(void);
/* Append a line; false: `why` says why that could not be done. */
bool ledger_write(int64_t gpu, int64_t bytes, const char *what, struct message *why);

#endif
