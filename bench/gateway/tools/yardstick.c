// A relay that never changes, as a measure of the machine: yardstick PORT prints the port that it serves.
//
// Each connection has one of its own to PORT on loopback, and what comes goes on unread.  For each piece a small
// interpreter takes a fixed number of steps, so that a piece costs about what it costs the gateway.  Load, other
// processes and cold caches slow both down alike, and no change of the gateway's changes this one.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STEPS = 1800, WORDS = 1 << 16, REGISTERS = 8, PIECE = 65536, AT_ONCE = 64, MOST = 65536 };

static uint32_t words[WORDS], position = 1;
static int sinks[MOST];  // where what a descriptor brings goes on; 0: nowhere
static char piece[PIECE];
static int ended[2 * AT_ONCE], ends;  // closed once a round is over: until then no descriptor has another meaning

// Words that look random and are the same everywhere.
static void fill(void) {
    uint32_t state = 2463534242u;
    for (size_t at = 0; at < WORDS; at++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        words[at] = state;
    }
}

static uint32_t interpret(uint32_t at) {
    uint32_t registers[REGISTERS] = {at};
    for (int step = 1; step <= STEPS; step++) {
        uint32_t word = words[at & (WORDS - 1)], source = registers[(word >> 6) & 7];
        uint32_t *target = &registers[(word >> 3) & 7];
        switch (word & 7) {
            case 0: *target += source; break;
            case 1: *target ^= source >> 3; break;
            case 2: *target = word; break;
            case 3: *target *= source | 1; break;
            case 4: at += source & 1 ? word >> 20 : 0; break;
            case 5: *target = words[source & (WORDS - 1)]; break;
            case 6: *target ^= words[(source >> 4) & (WORDS - 1)]; break;
            default: *target -= word >> 9;
        }
        at += step & 15 ? 1 : *target;
    }
    return at + registers[1];
}

static int connected(struct sockaddr_in to) {
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    return connect(descriptor, (struct sockaddr *)&to, sizeof to) ? -1 : descriptor;
}

static void join(int poller, int from, int to) {
    int on = 1;
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = from};
    setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_ctl(poller, EPOLL_CTL_ADD, from, &wanted);
    sinks[from] = to;
}

static void pass(int from) {
    int to = sinks[from];
    ssize_t length = to ? recv(from, piece, sizeof piece, 0) : 0;
    position = interpret(position);
    if (length > 0 && send(to, piece, (size_t)length, MSG_NOSIGNAL) == length)
        return;
    if (to) {
        sinks[from] = sinks[to] = 0;
        ended[ends++] = from;
        ended[ends++] = to;
    }
}

static void accept_one(int listening, int poller, struct sockaddr_in upstream) {
    int client = accept(listening, NULL, NULL), there = client < 0 ? -1 : connected(upstream);
    if (client < 0)
        return;  // it has gone again
    if (client >= MOST || there >= MOST || there < 0) {
        perror("yardstick");
        exit(1);
    }
    join(poller, client, there);
    join(poller, there, client);
}

int main(int count, char **arguments) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, upstream = here;
    socklen_t size = sizeof here;
    int listening = socket(AF_INET, SOCK_STREAM, 0), poller = epoll_create1(0);
    if (count != 2 || bind(listening, (struct sockaddr *)&here, sizeof here) || listen(listening, 4096))
        return 2;
    upstream.sin_port = htons((uint16_t)atoi(arguments[1]));
    getsockname(listening, (struct sockaddr *)&here, &size);
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = listening}, found[AT_ONCE];
    epoll_ctl(poller, EPOLL_CTL_ADD, listening, &wanted);
    fill();
    printf("%d\n", ntohs(here.sin_port));
    fflush(stdout);
    for (;;) {
        int events = epoll_wait(poller, found, AT_ONCE, -1);
        for (int at = 0; at < events; at++) {
            if (found[at].data.fd == listening)
                accept_one(listening, poller, upstream);
            else
                pass(found[at].data.fd);
        }
        while (ends)
            close(ended[--ends]);
    }
}
