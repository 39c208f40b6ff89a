/* A text of bounded length, built piece by piece; what does not fit is cut off. */
#ifndef TRITONCHAOS_MESSAGE_H
#define TRITONCHAOS_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

struct message {
    size_t used;
    char text[4096];
};

void message_clear(struct message *message);
void message_add(struct message *message, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Print a shape as Triton does: "[-1,3,224,224]". */
void message_add_shape(struct message *message, const int64_t *dims, size_t count);

#endif
