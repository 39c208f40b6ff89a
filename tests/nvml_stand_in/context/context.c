/* Preloaded into tritonserver: takes device memory at its start, as the CUDA context of a real server does.

   TRITONCHAOS_STAND_IN_CONTEXT names the devices and the bytes on each: "0,1:123456". */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_the_server(void)
{
    char name[64] = "";
    FILE *file = fopen("/proc/self/comm", "re");
    if (file == NULL)
        return 0;
    int is_it = fgets(name, sizeof name, file) != NULL && strcmp(name, "tritonserver\n") == 0;
    fclose(file);
    return is_it;
}

__attribute__((constructor)) static void take(void)
{
    const char *path = getenv("TRITONCHAOS_PLANTED_LEDGER"), *device = getenv("TRITONCHAOS_STAND_IN_CONTEXT");
    if (path == NULL || device == NULL || !is_the_server())
        return;
    const char *bytes = strchr(device, ':');
    int ledger = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (ledger < 0)
        return;
    for (; bytes != NULL && device < bytes; device += strspn(device, "0123456789") + 1) {
        char line[128];
        int length = snprintf(line, sizeof line, "{\"pid\": %d, \"gpu\": %d, \"bytes\": %lld, \"what\": \"context\"}\n",
                              (int)getpid(), atoi(device), atoll(bytes + 1));
        if (write(ledger, line, (size_t)length) != length)
            break;
    }
    close(ledger);
}
