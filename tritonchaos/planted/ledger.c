#define _DEFAULT_SOURCE
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char *ledger_path(void)
{
    return getenv("TRITONCHAOS_PLANTED_LEDGER");
}

bool ledger_is_on(void)
{
    const char *path = ledger_path();
    return path && *path;
}

static int append(int fd, const char *line, size_t length)
{
    while (flock(fd, LOCK_EX) != 0)
        if (errno != EINTR)
            return errno;
    return write(fd, line, length) == (ssize_t)length ? 0 : errno ? errno : ENOSPC;
}

bool ledger_write(int64_t gpu, int64_t bytes, const char *what, struct message *why)
{
    char line[160];
    int length = snprintf(line, sizeof line, "{\"pid\": %d, \"gpu\": %" PRId64 ", \"bytes\": %" PRId64 ", \"what\": \"%s\"}\n",
                          (int)getpid(), gpu, bytes, what);
    int fd = open(ledger_path(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    errno = fd < 0 ? errno : 0;
    int error = fd < 0 ? errno : append(fd, line, (size_t)length);
    if (fd >= 0)
        close(fd); /* and with it the lock */
    if (error)
        message_add(why, "ledger %s: %s", ledger_path(), strerror(error));
    return error == 0;
}
