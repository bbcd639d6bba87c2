// What both tools know of HTTP/1.1, and of the time.
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>

static inline uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000ull + (uint64_t)at.tv_nsec;
}

static inline struct timespec until_ns(uint64_t due) {
    uint64_t now = now_ns(), left = due > now ? due - now : 0;
    return (struct timespec){(time_t)(left / 1000000000ull), (long)(left % 1000000000ull)};
}

// As many descriptors as the system lets us have.
static inline void raise_descriptor_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// The bytes of a head, its empty line included; 0 while that line has not come.
static inline size_t head_length(const char *text, size_t length) {
    const char *end = memmem(text, length, "\r\n\r\n", 4);
    return end ? (size_t)(end - text) + 4 : 0;
}

// The value of the first field of that name ("name:"), which ends at a CR; NULL where there is none.
static inline const char *header(const char *head, size_t length, const char *name) {
    size_t size = strlen(name);
    const char *end = head + length, *line = memmem(head, length, "\r\n", 2);
    while (line && (line += 2) + size < end) {
        if (!strncasecmp(line, name, size)) {
            for (line += size; *line == ' '; line++) {
            }
            return line;
        }
        line = memmem(line, (size_t)(end - line), "\r\n", 2);
    }
    return NULL;
}

static inline int has_token(const char *value, const char *token) {
    return value && memmem(value, strcspn(value, "\r"), token, strlen(token));
}

// Where in a body we are.
enum framing { FIXED, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILER, UNTIL_CLOSE, ENDED };

struct body {
    enum framing state;
    long long left;      // of a fixed body, of a chunk, or of the line end behind it
    char line[32];       // the size of a chunk as it was read so far
    unsigned line_length;
};

static inline struct body body_of(const char *head, size_t length, int closes_without) {
    const char *coding = header(head, length, "transfer-encoding:"), *size = header(head, length, "content-length:");
    if (has_token(coding, "chunked"))
        return (struct body){.state = CHUNK_SIZE};
    if (!size && closes_without)
        return (struct body){.state = UNTIL_CLOSE};
    long long left = size ? atoll(size) : 0;
    return (struct body){.state = left ? FIXED : ENDED, .left = left};
}

// One line of a chunk's size or of the trailer goes by, a byte at a time.
static inline void body_line(struct body *body, char next) {
    if (next != '\n') {
        if (next != '\r' && body->line_length < sizeof body->line - 1)
            body->line[body->line_length++] = next;
        return;
    }
    body->line[body->line_length] = 0;
    if (body->state == TRAILER) {
        if (!body->line_length)
            body->state = ENDED;
    } else {
        body->left = strtoll(body->line, NULL, 16);
        body->state = body->left ? CHUNK_DATA : TRAILER;
    }
    body->line_length = 0;
}

// Takes the next piece of a body: how many bytes it was, and how many of them, at `*data`, were content.
static inline size_t body_next(struct body *body, const char *text, size_t length, size_t *content) {
    *content = 0;
    if (body->state == CHUNK_SIZE || body->state == TRAILER) {
        body_line(body, *text);
        return 1;
    }
    size_t taken = body->state != UNTIL_CLOSE && (long long)length > body->left ? (size_t)body->left : length;
    if (body->state == UNTIL_CLOSE) {
        *content = taken;
        return taken;
    }
    body->left -= (long long)taken;
    if (body->state != CHUNK_END)
        *content = taken;
    if (body->left)
        return taken;
    if (body->state == CHUNK_DATA) {
        body->state = CHUNK_END;
        body->left = 2;
    } else {
        body->state = body->state == FIXED ? ENDED : CHUNK_SIZE;
    }
    return taken;
}
#endif
