// The least that a fan-out takes: an epoll loop that writes what its first connection sends to all
// others, with one send each. Each connection is told by a byte that it was accepted. What a socket
// does not take is kept, in order, up to 1 MiB.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 1024, READ = 65536, PENDING = 1 << 20 };

struct consumer {
    int socket;
    char *pending;
    size_t length;
};

static struct consumer consumers[MOST];
static int count;
static int producer = -1;
static int poller;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void watch(int socket, unsigned events, int change) {
    struct epoll_event event = {.events = events, .data.fd = socket};
    if (epoll_ctl(poller, change, socket, &event) != 0)
        fail("epoll_ctl");
}

static size_t put(int socket, const char *bytes, size_t length) {
    ssize_t taken = send(socket, bytes, length, MSG_NOSIGNAL);
    if (taken >= 0)
        return (size_t)taken;
    if (errno != EAGAIN)
        fail("send");
    return 0;
}

static void deliver(struct consumer *to, const char *bytes, size_t length) {
    size_t taken = to->length == 0 ? put(to->socket, bytes, length) : 0;
    if (taken == length)
        return;
    if (to->pending == NULL && (to->pending = malloc(PENDING)) == NULL)
        fail("malloc");
    if (to->length + length - taken > PENDING) {
        fprintf(stderr, "a consumer is too slow\n");
        exit(1);
    }
    memcpy(to->pending + to->length, bytes + taken, length - taken);
    to->length += length - taken;
    watch(to->socket, EPOLLOUT, EPOLL_CTL_MOD);
}

static void go_on(struct consumer *to) {
    size_t taken = put(to->socket, to->pending, to->length);
    to->length -= taken;
    memmove(to->pending, to->pending + taken, to->length);
    if (to->length == 0)
        watch(to->socket, 0, EPOLL_CTL_MOD);
}

static void welcome(int listener) {
    int one = 1;
    int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (socket < 0)
        fail("accept4");
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (producer < 0) {
        producer = socket;
        watch(socket, EPOLLIN, EPOLL_CTL_ADD);
    } else if (count < MOST) {
        consumers[count++].socket = socket;
        watch(socket, 0, EPOLL_CTL_ADD);
    }
    if (put(socket, "+", 1) != 1)
        fail("send");
}

static void relay(void) {
    static char bytes[READ];
    ssize_t length = recv(producer, bytes, sizeof bytes, 0);
    if (length <= 0)
        exit(0);
    for (int i = 0; i < count; ++i)
        deliver(&consumers[i], bytes, (size_t)length);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, MOST) != 0)
        fail("listen");
    poller = epoll_create1(0);
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(poller, events, 64, -1);
        for (int i = 0; i < ready; ++i) {
            int socket = events[i].data.fd;
            if (socket == listener)
                welcome(listener);
            else if (socket == producer)
                relay();
            else
                for (int at = 0; at < count; ++at)
                    if (consumers[at].socket == socket)
                        go_on(&consumers[at]);
        }
    }
}
