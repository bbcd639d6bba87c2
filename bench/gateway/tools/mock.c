// An upstream that stands for a provider: `mock` prints the port of loopback that it serves.
//
// A request says in the header "x-mock" how it wants to be answered:
//   j<bytes>                          a small answer of JSON, with its length
//   s<events>,<bytes>,<microseconds>  a stream of events, each a chunk of its own, sent after a pause of 0 to <microseconds>
//   h<milliseconds>                   an event, then silence, then the end
// Each answer carries "T=" and 19 digits: the monotonic clock in nanoseconds right before it, or that event, was sent.
// GET /stats tells how many connections were accepted and are open, and how many answers are under way.
#define _GNU_SOURCE
#include "http.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_SIZE = 8192, EVENT_SIZE = 8192, AT_ONCE = 512, NOT_DUE = -1 };
enum activity { READING_HEAD, READING_BODY, ANSWERING, CLOSED };

struct connection {
    int descriptor, keep, waits_to_write;
    enum activity activity;
    char head[HEAD_SIZE];
    size_t head_length;
    struct body body;
    char kind;             // of the answer, as x-mock has it
    long left, size, pause;
    uint64_t due;          // when the next event is sent
    int place;             // in the heap of those that are due, or NOT_DUE
    char *unsent;          // what the peer has not taken yet
    size_t unsent_length;
    struct connection *next_closed;
};

static const char ANSWER[] =
    "HTTP/1.1 200 OK\r\ncontent-type: %s\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nserver: mock\r\n"
    "access-control-expose-headers: X-Request-ID\r\nopenai-organization: org-abcdefghijklmnop\r\n"
    "openai-processing-ms: 213\r\nopenai-version: 2020-10-01\r\nx-ratelimit-limit-requests: 10000\r\n"
    "x-ratelimit-limit-tokens: 2000000\r\nx-ratelimit-remaining-requests: 9999\r\n"
    "x-ratelimit-remaining-tokens: 1999000\r\nx-ratelimit-reset-requests: 6ms\r\nx-ratelimit-reset-tokens: 30ms\r\n"
    "x-request-id: req_0123456789abcdef0123456789abcdef\r\nstrict-transport-security: max-age=31536000\r\n%s%s\r\n\r\n";
static const char EVENT[] = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","
                            "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"T=%019llu %.*s\"}}]}\n\n";
static const char SMALL[] = "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\","
                            "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2},"
                            "\"choices\":[{\"index\":0,\"finish_reason\":\"stop\","
                            "\"message\":{\"role\":\"assistant\",\"content\":\"T=%019llu %.*s\"}}]}";
static const char DONE[] = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

static int poller;
static char filling[EVENT_SIZE], received[262144];
static struct connection *closed;
static struct { unsigned long long accepted, open, answering; } counts;

// ---- Who is due next: a binary heap, the earliest first.

static struct connection **heap;
static int heap_length, heap_capacity;

static void put(int place, struct connection *one) {
    heap[place] = one;
    one->place = place;
}

static void sift_up(int place) {
    struct connection *one = heap[place];
    for (int parent; place > 0 && heap[parent = (place - 1) / 2]->due > one->due; place = parent)
        put(place, heap[parent]);
    put(place, one);
}

static void sift_down(int place) {
    struct connection *one = heap[place];
    for (int child; (child = 2 * place + 1) < heap_length; place = child) {
        if (child + 1 < heap_length && heap[child + 1]->due < heap[child]->due)
            child++;
        if (heap[child]->due >= one->due)
            break;
        put(place, heap[child]);
    }
    put(place, one);
}

static void forget_due(struct connection *one) {
    int place = one->place;
    if (place == NOT_DUE)
        return;
    one->place = NOT_DUE;
    struct connection *last = heap[--heap_length];
    if (last == one)
        return;
    put(place, last);
    sift_up(place);
    sift_down(last->place);
}

static void set_due(struct connection *one, uint64_t due) {
    forget_due(one);
    one->due = due;
    if (heap_length == heap_capacity) {
        heap_capacity = heap_capacity ? heap_capacity * 2 : 1024;
        heap = realloc(heap, (size_t)heap_capacity * sizeof *heap);
    }
    put(heap_length++, one);
    sift_up(one->place);
}

// ---- Connections, and what goes out.

static void watch(struct connection *one, int operation) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (one->waits_to_write ? EPOLLOUT : 0), .data.ptr = one};
    epoll_ctl(poller, operation, one->descriptor, &event);
}

// It is freed when all that was reported together with its end has been looked at.
static void close_connection(struct connection *one) {
    if (one->activity == CLOSED)
        return;
    counts.answering -= one->activity == ANSWERING;
    counts.open--;
    one->activity = CLOSED;
    forget_due(one);
    close(one->descriptor);
    free(one->unsent);
    one->next_closed = closed;
    closed = one;
}

// Whether all of it is gone: the rest is kept, and the next event waits for it.
static int send_all(struct connection *one, const char *text, size_t length) {
    ssize_t sent = one->unsent_length ? 0 : send(one->descriptor, text, length, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        close_connection(one);
        return 0;
    }
    size_t rest = length - (sent > 0 ? (size_t)sent : 0);
    if (!rest)
        return 1;
    one->unsent = realloc(one->unsent, one->unsent_length + rest);
    memcpy(one->unsent + one->unsent_length, text + length - rest, rest);
    one->unsent_length += rest;
    one->waits_to_write = 1;
    watch(one, EPOLL_CTL_MOD);
    return 0;
}

static void end_answer(struct connection *one) {
    if (one->activity != ANSWERING)
        return;
    counts.answering--;
    one->activity = READING_HEAD;
    one->left = -1;
    if (!one->keep)
        close_connection(one);
}

static void resume(struct connection *one) {
    ssize_t sent = send(one->descriptor, one->unsent, one->unsent_length, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno != EAGAIN)
            close_connection(one);
        return;
    }
    one->unsent_length -= (size_t)sent;
    memmove(one->unsent, one->unsent + sent, one->unsent_length);
    if (one->unsent_length)
        return;
    one->waits_to_write = 0;
    watch(one, EPOLL_CTL_MOD);
    if (one->activity == ANSWERING && one->left < 0)
        end_answer(one);
    else if (one->activity == ANSWERING)
        set_due(one, now_ns());
}

// ---- Answers.

static uint64_t pause_ns(const struct connection *one) {
    if (one->kind == 'h')
        return (uint64_t)one->pause * 1000ull;
    return one->pause ? (uint64_t)(random() % (one->pause + 1)) * 1000ull : 0;
}

static int put_stamped(char *into, const char *format, long size) {
    long stuffing = size - snprintf(NULL, 0, format, 0ull, 0, "");
    stuffing = stuffing < 0 ? 0 : stuffing > EVENT_SIZE - 1024 ? EVENT_SIZE - 1024 : stuffing;
    return sprintf(into, format, (unsigned long long)now_ns(), (int)stuffing, filling);
}

static int put_event(char *into, long size) {
    char event[EVENT_SIZE];
    int length = put_stamped(event, EVENT, size);
    return sprintf(into, "%x\r\n%s\r\n", (unsigned)length, event);
}

static void answer_small(struct connection *one, const char *content, int length) {
    char text[2 * EVENT_SIZE], of_length[64];
    sprintf(of_length, "content-length: %d", length);
    int head = sprintf(text, ANSWER, "application/json", of_length, one->keep ? "" : "\r\nconnection: close");
    memcpy(text + head, content, (size_t)length);
    one->left = -1;
    if (send_all(one, text, (size_t)(head + length)))
        end_answer(one);
}

static void start_stream(struct connection *one) {
    char head[2048];
    const char *closing = one->keep ? "" : "\r\nconnection: close";
    int length = sprintf(head, ANSWER, "text/event-stream; charset=utf-8", "transfer-encoding: chunked", closing);
    if (send_all(one, head, (size_t)length))
        set_due(one, now_ns() + (one->kind == 'h' ? 0 : pause_ns(one)));
}

// Sends what is due: an event, or after the last one the end.
static void continue_stream(struct connection *one) {
    char event[EVENT_SIZE + 64];
    forget_due(one);
    if (one->left-- > 0) {
        if (send_all(one, event, (size_t)put_event(event, one->size)))
            set_due(one, one->due + pause_ns(one));
    } else if (send_all(one, DONE, sizeof DONE - 1)) {
        end_answer(one);
    }
}

static void answer_stats(struct connection *one) {
    char text[256];
    answer_small(one, text, sprintf(text, "{\"accepted\":%llu,\"open\":%llu,\"answering\":%llu}\n", counts.accepted,
                                    counts.open, counts.answering - 1));
}

static void answer(struct connection *one) {
    char small[EVENT_SIZE];
    counts.answering++;
    one->activity = ANSWERING;
    if (one->kind == '/') {
        answer_stats(one);
    } else if (one->kind == 'j') {
        answer_small(one, small, put_stamped(small, SMALL, one->size));
    } else {
        start_stream(one);
    }
}

// ---- Requests.

static void read_wish(struct connection *one) {
    const char *wish = header(one->head, one->head_length, "x-mock:");
    one->kind = wish ? *wish : 'j';
    one->size = 150, one->pause = 0;
    if (!strncmp(one->head, "GET /stats ", 11))
        one->kind = '/';
    else if (one->kind == 's')
        sscanf(wish + 1, "%ld,%ld,%ld", &one->left, &one->size, &one->pause);
    else if (one->kind == 'h')
        one->left = 1, one->pause = atol(wish + 1) * 1000;
    else
        one->size = wish ? atol(wish + 1) : 2048;
}

// How many of these bytes belong to the head; the request is read from it when that is complete.
static size_t take_head(struct connection *one, const char *text, size_t length) {
    size_t before = one->head_length, room = HEAD_SIZE - 1 - before, taken = length < room ? length : room;
    memcpy(one->head + before, text, taken);
    one->head_length += taken;
    one->head[one->head_length] = 0;
    size_t complete = head_length(one->head, one->head_length);
    if (!complete) {
        if (one->head_length == HEAD_SIZE - 1)
            close_connection(one);
        return taken;
    }
    one->head_length = complete;
    one->body = body_of(one->head, complete, 0);
    one->keep = !has_token(header(one->head, complete, "connection:"), "close");
    read_wish(one);
    one->head_length = 0;
    one->activity = READING_BODY;
    return complete - before;
}

// Nobody that we measure sends its next request before the answer: what comes during one is not looked at.
static void take(struct connection *one, const char *text, size_t length) {
    size_t content;
    while (length && (one->activity == READING_HEAD || one->activity == READING_BODY)) {
        size_t taken = one->activity == READING_HEAD ? take_head(one, text, length)
                                                     : body_next(&one->body, text, length, &content);
        text += taken;
        length -= taken;
        if (one->activity == READING_BODY && one->body.state == ENDED)
            answer(one);
    }
}

static void readable(struct connection *one) {
    ssize_t length = recv(one->descriptor, received, sizeof received, 0);
    if (length > 0)
        take(one, received, (size_t)length);
    else if (length == 0 || errno != EAGAIN)
        close_connection(one);
}

// ---- The loop.

static void accept_all(int listening) {
    int descriptor, yes = 1;
    while ((descriptor = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct connection *one = calloc(1, sizeof *one);
        one->descriptor = descriptor;
        one->place = NOT_DUE;
        one->left = -1;
        counts.accepted++;
        counts.open++;
        watch(one, EPOLL_CTL_ADD);
    }
}

static int listen_on_loopback(void) {
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listening, (void *)&address, size) || listen(listening, 4096)) {
        perror("mock");
        exit(1);
    }
    getsockname(listening, (void *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listening;
}

static void reported(const struct epoll_event *event) {
    struct connection *one = event->data.ptr;
    if (one->activity != CLOSED && event->events & EPOLLOUT)
        resume(one);
    if (one->activity != CLOSED && event->events & ~(uint32_t)EPOLLOUT)
        readable(one);
}

static void free_closed(void) {
    while (closed) {
        struct connection *one = closed;
        closed = one->next_closed;
        free(one);
    }
}

int main(void) {
    struct epoll_event events[AT_ONCE];
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    srandom((unsigned)now_ns());
    memset(filling, 'z', sizeof filling - 1);
    int listening = listen_on_loopback();
    poller = epoll_create1(0);
    struct epoll_event on_accept = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, listening, &on_accept);
    for (;;) {
        struct timespec left = heap_length ? until_ns(heap[0]->due) : (struct timespec){0};
        int count = epoll_pwait2(poller, events, AT_ONCE, heap_length ? &left : NULL, NULL);
        for (int i = 0; i < count; i++)
            if (events[i].data.ptr)
                reported(&events[i]);
            else
                accept_all(listening);
        uint64_t now = now_ns();
        for (int i = 0; i < AT_ONCE && heap_length && heap[0]->due <= now; i++)
            continue_stream(heap[0]);
        free_closed();
    }
}
