/* A load generator for Kafka brokers: one thread, one epoll, requests encoded before the clock starts.
 *
 *   load produce HOST PORT FRAMES CONNECTIONS DEPTH WARMUP_S SECONDS MAX_MB
 *   load walk    HOST PORT FRAMES CONNECTIONS DEPTH WARMUP_S SECONDS MAX_MB
 *   load fetch   HOST PORT FRAMES CONNECTIONS END_OFFSET WARMUP_S SECONDS
 *
 * FRAMES is a file of size-prefixed request frames; connection i repeats frame i modulo the number of frames.
 * produce: Produce v3 frames, at most DEPTH in flight on each connection; every response's error code is checked.
 * walk:    like produce, but the connections share one sequence of frames, which is repeated;
 *          also for ListOffsets v1, whose responses have the error code at the same position.
 * fetch:   Fetch v4 frames for one partition each, ending in partition, fetch offset, max bytes; the offset is
 *          advanced by the received batches and set to 0 at END_OFFSET.
 * Built with -DWITH_TLS (and -lssl -lcrypto), every connection speaks TLS 1.3 with AES-256-GCM; certificates are not
 * checked.
 * SIGTERM ends the load early and prints the result until then.
 * Prints `start` and `end` around the measurement, so that the caller can measure the broker's CPU time, and then
 * `result requests=N bytes=N seconds=F p50_us=F p99_us=F max_us=F`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_TLS
#include <openssl/ssl.h>
#endif

#define MAX_DEPTH 64
#define BUFFER (8 << 20)

struct connection {
    int fd, writing;
    char *frame, *in;
    size_t frame_size, sent, have;
    uint64_t times[MAX_DEPTH];
    unsigned first, in_flight;
#ifdef WITH_TLS
    SSL *tls;
#endif
};

static int fetching, walking, epoll_fd;
static volatile sig_atomic_t stopped;
static char *frames;
static size_t total, next_frame;
static unsigned depth = 1;
static int64_t end_offset;
static uint64_t requests, bytes, *samples, sample_count, sample_room;

static void fail(const char *what) {
    fprintf(stderr, "load: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static uint32_t get32(const char *at) { uint32_t v; memcpy(&v, at, 4); return be32toh(v); }
static uint64_t get64(const char *at) { uint64_t v; memcpy(&v, at, 8); return be64toh(v); }
static uint16_t get16(const char *at) { uint16_t v; memcpy(&v, at, 2); return be16toh(v); }

static void watch(struct connection *c, int writing) {
    if (c->writing == writing) return;
    struct epoll_event event = {.events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event)) fail("epoll_ctl");
    c->writing = writing;
}

#ifdef WITH_TLS
/* SSL_write and SSL_read with the results of send and recv: -1 and EAGAIN when the socket has to be waited for. */
static ssize_t result_of(struct connection *c, int n) {
    if (n > 0) return n;
    int error = SSL_get_error(c->tls, n);
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

static ssize_t put(struct connection *c, const char *data, size_t size) {
    return result_of(c, SSL_write(c->tls, data, size > INT32_MAX ? INT32_MAX : (int)size));
}

static ssize_t get(struct connection *c, char *data, size_t size) { return result_of(c, SSL_read(c->tls, data, (int)size)); }

/* Shake hands on a socket that still blocks. */
static void start_tls(struct connection *c) {
    static SSL_CTX *context;
    if (!context) {
        context = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
        SSL_CTX_set_ciphersuites(context, "TLS_AES_256_GCM_SHA384");
        SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        SSL_CTX_set_read_ahead(context, 1);
        SSL_CTX_set_default_read_buffer_len(context, 128 << 10);
    }
    c->tls = SSL_new(context);
    SSL_set_fd(c->tls, c->fd);
    if (SSL_connect(c->tls) != 1) fail("the TLS handshake failed");
}
#else
static ssize_t put(struct connection *c, const char *data, size_t size) { return send(c->fd, data, size, MSG_NOSIGNAL); }
static ssize_t get(struct connection *c, char *data, size_t size) { return recv(c->fd, data, size, 0); }
static void start_tls(struct connection *c) { (void)c; }
#endif

/* Set the connection's frame to the next one in the file, without a copy; only `fetch` modifies frames. */
static void take_frame(struct connection *c) {
    c->frame = frames + next_frame;
    c->frame_size = 4 + get32(c->frame);
    next_frame += c->frame_size;
    if (next_frame >= total) next_frame = 0;
}

/* Send until `depth` requests are in flight or the socket's send buffer is full. */
static void push(struct connection *c) {
    while (c->in_flight < depth || c->sent) {
        if (c->sent == 0) {
            if (walking) take_frame(c);
            c->times[(c->first + c->in_flight) % MAX_DEPTH] = now_ns();
            c->in_flight++;
        }
        ssize_t n = put(c, c->frame + c->sent, c->frame_size - c->sent);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            watch(c, 1);
            return;
        }
        if (n < 0) fail("send");
        c->sent += (size_t)n;
        if (c->sent < c->frame_size) continue;
        c->sent = 0;
    }
    watch(c, 0);
}

static void check_error(int code) {
    if (code) {
        fprintf(stderr, "load: the broker answered error code %d\n", code);
        exit(2);
    }
}

/* Handles a Produce v3 response for one topic and partition; body starts after the correlation id. */
static void produced(struct connection *c, const char *body) {
    const char *partition = body + 4 + 2 + get16(body + 4) + 4;
    check_error((int16_t)get16(partition + 4));
    bytes += c->frame_size - 4;
}

/* Handles a Fetch v4 response for one topic and partition: finds the offset after the last complete batch. */
static void fetched(struct connection *c, const char *body, uint32_t size) {
    const char *partition = body + 4 + 4 + 2 + get16(body + 8) + 4;
    check_error((int16_t)get16(partition + 4));
    const char *aborted = partition + 22;
    int32_t count = (int32_t)get32(aborted);
    const char *records = aborted + 4 + (count > 0 ? count * 16 : 0);
    int32_t length = (int32_t)get32(records);
    const char *at = records + 4, *end = at + (length > 0 ? length : 0);
    char *place = c->frame + c->frame_size - 12;
    int64_t offset = (int64_t)get64(place);
    while (end - at >= 61 && end - at >= 12 + (int64_t)get32(at + 8)) {
        offset = (int64_t)get64(at) + (int32_t)get32(at + 23) + 1;
        at += 12 + get32(at + 8);
    }
    if (offset >= end_offset) offset = 0;
    uint64_t raw = htobe64((uint64_t)offset);
    memcpy(place, &raw, 8);
    bytes += size;
}

static void answered(struct connection *c, const char *frame, uint32_t size, uint64_t now) {
    if (sample_count == sample_room) {
        sample_room = sample_room ? sample_room * 2 : 1 << 16;
        samples = realloc(samples, sample_room * sizeof *samples);
    }
    samples[sample_count++] = now - c->times[c->first];
    c->first = (c->first + 1) % MAX_DEPTH;
    c->in_flight--;
    requests++;
    if (fetching) fetched(c, frame + 4, size);
    else produced(c, frame + 4);
}

/* Handle the complete responses that have been received. */
static void take_responses(struct connection *c) {
    size_t at = 0;
    uint64_t now = now_ns();
    while (c->have - at >= 4 && c->have - at >= 4 + (size_t)get32(c->in + at)) {
        uint32_t size = get32(c->in + at);
        answered(c, c->in + at + 4, size, now);
        at += 4 + size;
    }
    if (c->have - at >= 4 && get32(c->in + at) > BUFFER - 4) { errno = 0; fail("an answer is too big"); }
    memmove(c->in, c->in + at, c->have - at);
    c->have -= at;
}

static void pull(struct connection *c) {
    int is_tls = 0;
#ifdef WITH_TLS
    is_tls = 1; /* read to the end: epoll knows nothing of what waits inside OpenSSL, a record of 16 KB at a time */
#endif
    do {
        ssize_t n = get(c, c->in + c->have, BUFFER - c->have);
        if (n == 0) { errno = 0; fail("the broker closed the connection"); }
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR) fail("recv");
            break;
        }
        c->have += (size_t)n;
        if (c->have == BUFFER) take_responses(c);
    } while (is_tls);
    take_responses(c);
    push(c);
}

static void load_frames(const char *path) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status)) fail(path);
    frames = malloc((size_t)status.st_size);
    total = fread(frames, 1, (size_t)status.st_size, file);
    fclose(file);
}

static void stop(int number) { (void)number; stopped = 1; }

static void open_connection(struct connection *c, const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;
    inet_pton(AF_INET, host, &address.sin_addr);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    start_tls(c);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
    c->in = malloc(BUFFER);
}

/* At least one response is counted, however slow the machine is: a rate of nothing is no figure. */
static void run(double seconds, uint64_t max_bytes) {
    struct epoll_event events[64];
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
    while (!stopped && (now_ns() < end || !requests) && (!max_bytes || bytes < max_bytes)) {
        int count = epoll_wait(epoll_fd, events, 64, 100);
        for (int n = 0; n < count; n++) {
            struct connection *c = events[n].data.ptr;
            if (events[n].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) pull(c);
            if (events[n].events & EPOLLOUT) push(c);
        }
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile_us(double q) {
    return sample_count ? (double)samples[(uint64_t)(q * (double)(sample_count - 1))] / 1000.0 : 0;
}

int main(int argc, char **argv) {
    if (argc < 9) { errno = 0; fail("see the head of load.c for the arguments"); }
    fetching = !strcmp(argv[1], "fetch");
    walking = !strcmp(argv[1], "walk");
    signal(SIGTERM, stop);
    signal(SIGPIPE, SIG_IGN);
    int connections = atoi(argv[5]);
    if (fetching) end_offset = atoll(argv[6]);
    else depth = (unsigned)atoi(argv[6]);
    double warmup = atof(argv[7]), seconds = atof(argv[8]);
    uint64_t max_bytes = argc > 9 ? (uint64_t)atoll(argv[9]) << 20 : 0;

    load_frames(argv[4]);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    epoll_fd = epoll_create1(0);
    for (int n = 0; n < connections; n++) {
        struct connection *c = &all[n];
        take_frame(c);
        c->frame = memcpy(malloc(c->frame_size), c->frame, c->frame_size);
        open_connection(c, argv[2], atoi(argv[3]));
    }
    next_frame = 0;
    for (int n = 0; n < connections; n++) push(&all[n]);
    if (warmup > 0)
        run(warmup, max_bytes ? max_bytes / 4 : 0);
    requests = bytes = sample_count = 0;
    printf("start\n");
    fflush(stdout);
    uint64_t started = now_ns();
    run(seconds, max_bytes);
    double took = (double)(now_ns() - started) / 1e9;
    printf("end\n");
    fflush(stdout);
    if (sample_count) qsort(samples, sample_count, sizeof *samples, by_value);
    printf("result requests=%llu bytes=%llu seconds=%.6f p50_us=%.1f p99_us=%.1f max_us=%.1f\n",
           (unsigned long long)requests, (unsigned long long)bytes, took, quantile_us(0.5), quantile_us(0.99), quantile_us(1));
    return 0;
}
