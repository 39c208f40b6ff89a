/*
 * Relays connections between Unix sockets in a folder and TCP ports of 127.0.0.1: the only way into a container whose
 * network is "none". Linked statically, it runs in any image.
 *
 *     relay FOLDER NAME=PORT[!|^] ...
 *
 * Each NAME becomes a socket in FOLDER. With "!" the first byte to the client says how connecting to the port went: 0,
 * or the errno, so that a refused connection is told from one that was closed. With "^" the connection that was made is
 * handed over with that byte (SCM_RIGHTS), and the client talks to the port itself: a socket belongs to the network in
 * which it was made, whoever holds it. Backpressure is the kernel's: one buffer per direction, and nothing is read while
 * it is full.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUFFER = 256 * 1024, PAIRS = 512, PORTS = 4 };

struct flow {
    int from, to;
    size_t start, end;
    int has_ended;  /* nothing more comes from `from` */
    int is_shut;    /* ... and `to` was told */
    unsigned char *bytes;
};

struct pair {
    int client, server;
    struct flow up, down;
};

struct port {
    int listener, number, tells, hands_over;
};

static struct pair pairs[PAIRS];
static int pair_count;
static struct port ports[PORTS];
static int port_count;

static void end_process(int number) {
    (void)number;
    _exit(0);
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int listen_at(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) + 1 >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        fail(path);
    }
    /* Its name is there once it listens, so that whoever waits for the name is not refused. */
    strcat(strcpy(address.sun_path, path), "~");
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0) fail(path);
    if (chmod(address.sun_path, 0666) != 0 || listen(listener, 128) != 0) fail(path);
    if (rename(address.sun_path, path) != 0) fail(path);
    return listener;
}

/* 0 on success: over the loopback a connection is refused or made at once, unless the backlog is full. */
static int connect_to(int number, int *made) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)number)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1;
    *made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*made < 0) return errno;
    setsockopt(*made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(*made, (struct sockaddr *)&address, sizeof address) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    struct pollfd waiting = {.fd = *made, .events = POLLOUT};
    int problem = ETIMEDOUT;
    socklen_t size = sizeof problem;
    if (poll(&waiting, 1, 1000) == 1) getsockopt(*made, SOL_SOCKET, SO_ERROR, &problem, &size);
    return problem;
}

static int open_flow(struct flow *flow, int from, int to) {
    *flow = (struct flow){.from = from, .to = to, .bytes = malloc(BUFFER)};
    return flow->bytes != NULL;
}

/* Without the right to take it the client gets the byte alone, and then the end: nothing else is here for it. */
static void hand_over(int client, int problem, int server) {
    unsigned char told = (unsigned char)problem;
    struct iovec byte = {.iov_base = &told, .iov_len = 1};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights = {0};
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1};
    if (problem == 0) {
        fcntl(server, F_SETFL, 0); /* not blocking was our wish, and goes with the socket */
        message.msg_control = &rights;
        message.msg_controllen = sizeof rights;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &server, sizeof(int));
    }
    sendmsg(client, &message, MSG_NOSIGNAL);
}

static void take_connection(const struct port *port) {
    int client = accept4(port->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    int server = -1;
    if (port->hands_over) {
        int problem = connect_to(port->number, &server);
        hand_over(client, problem, server);
        close(client);
        if (server >= 0) close(server);
        return;
    }
    int problem = pair_count < PAIRS ? connect_to(port->number, &server) : EMFILE;
    unsigned char told = (unsigned char)problem;
    if (port->tells && write(client, &told, 1) != 1) problem = EPIPE;
    struct pair *pair = &pairs[pair_count];
    if (problem == 0 && open_flow(&pair->up, client, server)) {
        if (open_flow(&pair->down, server, client)) {
            pair->client = client;
            pair->server = server;
            pair_count++;
            return;
        }
        free(pair->up.bytes);
    }
    close(client);
    if (server >= 0) close(server);
}

static void take_bytes(struct flow *flow) {
    if (flow->has_ended || flow->end == BUFFER) return;
    ssize_t count = read(flow->from, flow->bytes + flow->end, BUFFER - flow->end);
    if (count > 0) flow->end += (size_t)count;
    else if (count == 0 || (errno != EAGAIN && errno != EINTR)) flow->has_ended = 1;
}

/* 0 if the other side takes no more. */
static int give_bytes(struct flow *flow) {
    while (flow->start < flow->end) {
        ssize_t count = send(flow->to, flow->bytes + flow->start, flow->end - flow->start, MSG_NOSIGNAL);
        if (count < 0) return errno == EAGAIN || errno == EINTR;
        flow->start += (size_t)count;
    }
    flow->start = flow->end = 0;
    if (flow->has_ended && !flow->is_shut) {
        flow->is_shut = 1;
        shutdown(flow->to, SHUT_WR);
    }
    return 1;
}

static short wanted(const struct flow *reads, const struct flow *writes) {
    short events = 0;
    if (!reads->has_ended && reads->end < BUFFER) events |= POLLIN;
    if (writes->start < writes->end) events |= POLLOUT;
    return events;
}

static void drop(int number) {
    struct pair *pair = &pairs[number];
    close(pair->client);
    close(pair->server);
    free(pair->up.bytes);
    free(pair->down.bytes);
    pairs[number] = pairs[--pair_count];
}

/* The server's end closes both sides, also when the client has more to say: so it was over TCP. */
static int is_over(const struct pair *pair) {
    int all_given = pair->down.start == pair->down.end;
    return (pair->down.has_ended && all_given) || (pair->up.is_shut && pair->down.is_shut);
}

static void serve(int number, short client_events, short server_events) {
    struct pair *pair = &pairs[number];
    if (client_events & (POLLIN | POLLHUP | POLLERR)) take_bytes(&pair->up);
    if (server_events & (POLLIN | POLLHUP | POLLERR)) take_bytes(&pair->down);
    /* A client that has closed altogether wants no answer: only a half-closed one is waited for. */
    int client_is_gone = (client_events & (POLLHUP | POLLERR)) && pair->up.has_ended;
    if (!give_bytes(&pair->up)) pair->up.end = pair->up.start = 0;
    if (!give_bytes(&pair->down) || client_is_gone || is_over(pair)) drop(number);
}

static void relay(void) {
    static struct pollfd waiting[PORTS + 2 * PAIRS];
    for (;;) {
        int count = pair_count;
        for (int i = 0; i < port_count; i++) waiting[i] = (struct pollfd){.fd = ports[i].listener, .events = POLLIN};
        for (int i = 0; i < count; i++) {
            struct pair *pair = &pairs[i];
            struct pollfd *both = &waiting[port_count + 2 * i];
            both[0] = (struct pollfd){.fd = pair->client, .events = wanted(&pair->up, &pair->down)};
            both[1] = (struct pollfd){.fd = pair->server, .events = wanted(&pair->down, &pair->up)};
            /* Nothing wanted of a side whose end is known: it would wake us for ever. */
            if (pair->down.has_ended && both[1].events == 0) both[1].fd = -1;
        }
        if (poll(waiting, (nfds_t)(port_count + 2 * count), -1) < 0) continue;
        /* From the last to the first, as dropping one moves the last into its place. */
        for (int i = count - 1; i >= 0; i--) {
            struct pollfd *both = &waiting[port_count + 2 * i];
            if (both[0].revents || both[1].revents) serve(i, both[0].revents, both[1].revents);
        }
        for (int i = 0; i < port_count; i++)
            if (waiting[i].revents) take_connection(&ports[i]);
    }
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, end_process);
    signal(SIGINT, end_process);
    if (argc < 3 || chdir(argv[1]) != 0) fail("relay FOLDER NAME=PORT[!|^] ...");
    for (int i = 2; i < argc && port_count < PORTS; i++) {
        char *number = strchr(argv[i], '=');
        if (number == NULL) fail(argv[i]);
        *number++ = '\0';
        struct port *port = &ports[port_count++];
        port->number = atoi(number);
        port->tells = strchr(number, '!') != NULL;
        port->hands_over = strchr(number, '^') != NULL;
        port->listener = listen_at(argv[i]);
    }
    relay();
}
