#include "message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void message_clear(struct message *message)
{
    message->used = 0;
    message->text[0] = '\0';
}

void message_add(struct message *message, const char *format, ...)
{
    size_t room = sizeof message->text - message->used;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(message->text + message->used, room, format, arguments);
    va_end(arguments);
    if (wanted > 0)
        message->used += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

void message_add_shape(struct message *message, const int64_t *dims, size_t count)
{
    message_add(message, "[");
    for (size_t i = 0; i < count; i++)
        message_add(message, i ? ",%" PRId64 : "%" PRId64, dims[i]);
    message_add(message, "]");
}
