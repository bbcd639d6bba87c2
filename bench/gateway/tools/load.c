// A closed-loop client: each connection sends its next request when the last is answered.  Prints one line of JSON.
//
//   -p port   -c connections   -x what the mock shall answer, see mock.c   -b bytes of a request's body
//   -d seconds that are measured   -w seconds before them   -r seconds in which the connections are opened
//   -m requests after which it ends, whatever the time   -n a new connection for each request
// SIGTERM ends it early.  Times are microseconds.
#define _GNU_SOURCE
#include "http.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_SIZE = 8192, AT_ONCE = 512, STAMP_DIGITS = 19 };
enum activity { CONNECTING, WAITING, READING };

struct connection {
    int descriptor, waits_to_write, closes;
    enum activity activity;
    size_t sent;
    char head[HEAD_SIZE];
    size_t head_length;
    struct body body;
    uint64_t began, first_byte;
    enum { NO_STAMP, LETTER, DIGITS } stamp;
    int digits;
    uint64_t stamped;
};

// Times in tenths of a microsecond.
struct times {
    uint32_t *taken;
    size_t length, capacity;
};

static struct { int port, connections, body, most, renew; double seconds, warm_up, ramp; const char *wish; } asked = {
    .connections = 1, .body = 2048, .seconds = 3, .warm_up = 1, .wish = "j2048"};
static int poller;
static volatile sig_atomic_t stopped;
static char *request, received[262144];
static size_t request_length;
static uint64_t measured_from, measured_until;
static unsigned long long measured, total, errors, all_events;
static struct times answers, first_bytes, events;

// ---- Times.

static int is_measured(uint64_t at) { return at >= measured_from && at < measured_until; }

static void note(struct times *times, uint64_t from, uint64_t until) {
    if (times->length == times->capacity) {
        times->capacity = times->capacity ? times->capacity * 2 : 65536;
        times->taken = realloc(times->taken, times->capacity * sizeof *times->taken);
    }
    uint64_t took = until > from ? (until - from) / 100 : 0;
    times->taken[times->length++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
}

static int by_size(const void *one, const void *other) {
    uint32_t left = *(const uint32_t *)one, right = *(const uint32_t *)other;
    return left < right ? -1 : left > right;
}

static double quantile(const struct times *times, double share) {
    return times->length ? times->taken[(size_t)(share * (double)(times->length - 1) + 0.5)] / 10.0 : 0;
}

static void print_times(const char *name, struct times *times) {
    qsort(times->taken, times->length, sizeof *times->taken, by_size);
    printf(", \"%s_p50\": %.1f, \"%s_p99\": %.1f", name, quantile(times, .5), name, quantile(times, .99));
}

// ---- Connections.

static void watch(struct connection *one, int operation, int to_write) {
    struct epoll_event event = {.events = EPOLLIN | (to_write ? EPOLLOUT : 0), .data.ptr = one};
    one->waits_to_write = to_write;
    epoll_ctl(poller, operation, one->descriptor, &event);
}

static void open_connection(struct connection *one) {
    int yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)asked.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    one->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(one->descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(one->descriptor, (void *)&address, sizeof address) && errno != EINPROGRESS)
        errors++;
    one->activity = CONNECTING;
    watch(one, EPOLL_CTL_ADD, 1);
}

static void open_again(struct connection *one) {
    close(one->descriptor);
    open_connection(one);
}

static void fail(struct connection *one, const char *how) {
    if (!errors++)
        fprintf(stderr, "load: %s\n", how);
    usleep(500); // whoever refuses us is not asked as fast as we can
    open_again(one);
}

static void send_rest(struct connection *one) {
    while (one->sent < request_length) {
        ssize_t sent = send(one->descriptor, request + one->sent, request_length - one->sent, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EAGAIN && !one->waits_to_write)
                watch(one, EPOLL_CTL_MOD, 1);
            return; // a connection that is lost is told by its end
        }
        one->sent += (size_t)sent;
    }
    if (one->waits_to_write)
        watch(one, EPOLL_CTL_MOD, 0);
}

static void send_request(struct connection *one) {
    one->activity = WAITING;
    one->sent = one->head_length = 0;
    one->first_byte = 0;
    one->stamp = NO_STAMP;
    one->began = now_ns();
    send_rest(one);
}

// ---- Answers.

// A stamp may be cut anywhere: three states and a number are all that is kept of it.
static void read_stamps(struct connection *one, const char *text, size_t length, uint64_t now) {
    for (const char *end = text + length; text < end; text++) {
        if (one->stamp == NO_STAMP) {
            if (!(text = memchr(text, 'T', (size_t)(end - text))))
                return;
            one->stamp = LETTER;
        } else if (one->stamp == LETTER) {
            one->stamp = *text == '=' ? DIGITS : NO_STAMP;
            one->digits = 0;
            one->stamped = 0;
        } else if (isdigit((unsigned char)*text)) {
            one->stamped = one->stamped * 10 + (uint64_t)(*text - '0');
            if (++one->digits < STAMP_DIGITS)
                continue;
            one->stamp = NO_STAMP;
            all_events++;
            if (is_measured(now))
                note(&events, one->stamped, now);
        } else {
            one->stamp = NO_STAMP;
        }
    }
}

static void answered(struct connection *one, uint64_t now) {
    total++;
    if (asked.most && total >= (unsigned long long)asked.most)
        stopped = 1;
    if (is_measured(now)) {
        measured++;
        note(&answers, one->began, now);
        note(&first_bytes, one->began, one->first_byte);
    }
    if (one->closes || asked.renew)
        open_again(one);
    else
        send_request(one);
}

static void read_head(struct connection *one, size_t complete) {
    if (strncmp(one->head, "HTTP/1.1 200 ", 13) && !errors++)
        fprintf(stderr, "load: %.*s\n", (int)complete, one->head);
    one->body = body_of(one->head, complete, 1);
    one->closes = has_token(header(one->head, complete, "connection:"), "close");
    one->activity = READING;
}

// How many of these bytes belong to the head.
static size_t take_head(struct connection *one, const char *text, size_t length, uint64_t now) {
    size_t before = one->head_length, room = HEAD_SIZE - before, taken = length < room ? length : room;
    if (!one->first_byte)
        one->first_byte = now;
    memcpy(one->head + before, text, taken);
    one->head_length += taken;
    size_t complete = head_length(one->head, one->head_length);
    if (!complete)
        return taken;
    read_head(one, complete);
    return complete - before;
}

static size_t take_body(struct connection *one, const char *text, size_t length, uint64_t now) {
    size_t content, taken = body_next(&one->body, text, length, &content);
    read_stamps(one, text, content, now);
    return taken;
}

static void take(struct connection *one, const char *text, size_t length, uint64_t now) {
    while (length && (one->activity != READING || one->body.state != ENDED)) {
        size_t taken = one->activity == READING ? take_body(one, text, length, now) : take_head(one, text, length, now);
        if (!taken) {
            fail(one, "a head too long");
            return;
        }
        text += taken;
        length -= taken;
    }
    if (length)
        fail(one, "more than the answer");
    else if (one->activity == READING && one->body.state == ENDED)
        answered(one, now);
}

static void readable(struct connection *one) {
    ssize_t length = recv(one->descriptor, received, sizeof received, 0);
    uint64_t now = now_ns();
    if (length > 0) {
        take(one, received, (size_t)length, now);
    } else if (length == 0 && one->activity == READING && one->body.state == UNTIL_CLOSE) {
        one->closes = 1;
        answered(one, now);
    } else if (length == 0 || errno != EAGAIN) {
        fail(one, "the connection ended before the answer");
    }
}

static void reported(const struct epoll_event *event) {
    struct connection *one = event->data.ptr;
    if (one->activity == CONNECTING) {
        if (event->events & (EPOLLERR | EPOLLHUP))
            fail(one, "no connection");
        else if (event->events & EPOLLOUT)
            send_request(one);
        return;
    }
    if (event->events & EPOLLOUT)
        send_rest(one);
    if (event->events & ~(uint32_t)EPOLLOUT)
        readable(one);
}

// ---- What is asked, and the loop.

static void read_options(int count, char **arguments) {
    for (int option; (option = getopt(count, arguments, "p:c:x:b:d:w:r:m:n")) != -1;) {
        switch (option) {
        case 'p': asked.port = atoi(optarg); break;
        case 'c': asked.connections = atoi(optarg); break;
        case 'x': asked.wish = optarg; break;
        case 'b': asked.body = atoi(optarg); break;
        case 'd': asked.seconds = atof(optarg); break;
        case 'w': asked.warm_up = atof(optarg); break;
        case 'r': asked.ramp = atof(optarg); break;
        case 'm': asked.most = atoi(optarg); break;
        case 'n': asked.renew = 1; break;
        default: exit(2);
        }
    }
}

// What the official SDK sends, with a key that is none.
static void write_request(void) {
    static const char head[] =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: application/json\r\n"
        "User-Agent: OpenAI/Python 2.8.0\r\nX-Stainless-Lang: python\r\nX-Stainless-Package-Version: 2.8.0\r\n"
        "X-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\nX-Stainless-Runtime: CPython\r\n"
        "X-Stainless-Runtime-Version: 3.11.7\r\nX-Stainless-Async: async:asyncio\r\nx-stainless-retry-count: 0\r\n"
        "x-stainless-read-timeout: 600\r\nAuthorization: Bearer sk-proj-0123456789012345678901234567890123456789\r\n"
        "Content-Type: application/json\r\nx-mock: %s\r\nContent-Length: %d\r\n\r\n";
    static const char body[] = "{\"model\":\"mock\",\"stream\":%s,\"messages\":[{\"role\":\"user\",\"content\":\"%.*s\"}]}";
    const char *stream = *asked.wish == 'j' ? "false" : "true";
    int stuffing = asked.body - snprintf(NULL, 0, body, stream, 0, "");
    stuffing = stuffing < 0 ? 0 : stuffing;
    char *text = malloc((size_t)stuffing + 1);
    for (int i = 0; i < stuffing; i++)
        text[i] = i % 7 == 6 ? ' ' : (char)('a' + i % 26);
    int length = snprintf(NULL, 0, body, stream, stuffing, text);
    request = malloc(sizeof head + strlen(asked.wish) + 32 + (size_t)length + 1);
    request_length = (size_t)sprintf(request, head, asked.port, asked.wish, length);
    request_length += (size_t)sprintf(request + request_length, body, stream, stuffing, text);
    free(text);
}

static void stop(int signal) { stopped = signal; }

static uint64_t ns(double seconds) { return (uint64_t)(seconds * 1e9); }

// Opens those connections whose turn has come; when the next one's turn is, or the end.
static uint64_t open_due(struct connection *all, int *opened, uint64_t began) {
    for (uint64_t now = now_ns(); *opened < asked.connections; open_connection(&all[(*opened)++])) {
        uint64_t turn = began + ns(asked.ramp * *opened / asked.connections);
        if (turn > now)
            return turn;
    }
    return measured_until;
}

static void report(const struct connection *all, int opened) {
    int streaming = 0;
    for (int i = 0; i < opened; i++)
        streaming += all[i].activity == READING;
    printf("{\"requests\": %llu, \"total\": %llu, \"errors\": %llu, \"streaming\": %d, \"per_second\": %.1f, "
           "\"all_events\": %llu", measured, total, errors, streaming, (double)measured / asked.seconds, all_events);
    print_times("answer", &answers);
    print_times("first_byte", &first_bytes);
    print_times("event", &events);
    printf("}\n");
}

int main(int count, char **arguments) {
    struct epoll_event reports[AT_ONCE];
    read_options(count, arguments);
    write_request();
    signal(SIGTERM, stop);
    raise_descriptor_limit();
    poller = epoll_create1(0);
    struct connection *all = calloc((size_t)asked.connections, sizeof *all);
    uint64_t began = now_ns();
    int opened = 0;
    measured_from = began + ns(asked.ramp + asked.warm_up);
    measured_until = measured_from + ns(asked.seconds);
    while (!stopped && now_ns() < measured_until) {
        struct timespec left = until_ns(open_due(all, &opened, began));
        int reported_now = epoll_pwait2(poller, reports, AT_ONCE, &left, NULL);
        for (int i = 0; i < reported_now; i++)
            reported(&reports[i]);
    }
    report(all, opened);
}
