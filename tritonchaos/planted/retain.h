/* The planted defect: host memory of known size that the process never gives back. */
#ifndef TRITONCHAOS_RETAIN_H
#define TRITONCHAOS_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

/* Take `bytes` of private host memory, touch every page, and forget them. False: the system gave none. */
bool retain_host_bytes(int64_t bytes);

#endif
