/* Many short connections to a Kafka broker: each logs in and is closed, and the next one begins in its place.
 *
 *   login_load plain HOST PORT CONNECTIONS WARMUP_S SECONDS USER PASSWORD
 *   login_load scram HOST PORT CONNECTIONS WARMUP_S SECONDS USER PASSWORD
 *   login_load tls   HOST PORT CONNECTIONS WARMUP_S SECONDS
 *
 * plain, scram: ApiVersions v0, SaslHandshake v1 and SaslAuthenticate v0, each after the answer to the one before, as
 *               clients do. scram is SCRAM-SHA-512; the salted password is computed once, since all connections have
 *               the same user, so that the load is lighter than what it measures. The server's signature is checked.
 * tls:          a full handshake (TLS 1.3, AES-256-GCM, no session is resumed), then ApiVersions v0. Certificates are
 *               not checked.
 * CONNECTIONS are open at a time. Prints the lines of load.c; requests are log-ins, bytes is 0.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER 65536
#define TEXT 1024
#define KEY SHA512_DIGEST_LENGTH

enum step { SHAKING, VERSIONS, MECHANISM, FIRST, FINAL };

struct connection {
    int fd, waits_to_write;
    SSL *tls;
    enum step step;
    uint64_t begun;
    unsigned char out[2 * TEXT], in[BUFFER];
    size_t out_size, sent, have;
    char bare[TEXT], server_signature[2 * KEY];
};

static enum { PLAIN, SCRAM, TLS } mode;
static struct sockaddr_in address;
static const char *user, *password;
static SSL_CTX *context;
static int epoll_fd;
static volatile sig_atomic_t stopped;
static uint64_t *samples, sample_count, sample_room;

static void fail(const char *what) {
    fprintf(stderr, "login_load: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static void refuse(const char *what) { errno = 0; fail(what); }

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static uint32_t get32(const unsigned char *at) { uint32_t v; memcpy(&v, at, 4); return be32toh(v); }
static uint16_t get16(const unsigned char *at) { uint16_t v; memcpy(&v, at, 2); return be16toh(v); }

static void add(struct connection *c, const void *data, size_t size) {
    if (c->out_size + size > sizeof c->out) refuse("a request is too long");
    memcpy(c->out + c->out_size, data, size);
    c->out_size += size;
}

static void add16(struct connection *c, uint16_t v) { v = htobe16(v); add(c, &v, 2); }
static void add32(struct connection *c, uint32_t v) { v = htobe32(v); add(c, &v, 4); }

/* Begin a request frame, whose size is set by `end_frame`. */
static void begin_frame(struct connection *c, uint16_t api_key, uint16_t version) {
    c->out_size = c->sent = 0;
    add32(c, 0);
    add16(c, api_key);
    add16(c, version);
    add32(c, 1);
    add16(c, 5);
    add(c, "bench", 5);
}

static void end_frame(struct connection *c) {
    uint32_t size = htobe32((uint32_t)c->out_size - 4);
    memcpy(c->out, &size, 4);
}

static void authenticate(struct connection *c, const void *token, size_t size) {
    begin_frame(c, 36, 0);
    add32(c, (uint32_t)size);
    add(c, token, size);
    end_frame(c);
}

/* Base64 of at most 2 * KEY bytes. */
static void encode(char *text, const unsigned char *data, size_t size) {
    EVP_EncodeBlock((unsigned char *)text, data, (int)size);
}

static void hmac(const unsigned char *key, const void *data, size_t size, unsigned char *result) {
    HMAC(EVP_sha512(), key, KEY, data, size, result, NULL);
}

static struct { char salt[TEXT]; unsigned char client[KEY], stored[KEY], server[KEY]; int iterations; } keys;

/* The keys of the password for a salt (base64); computed again only for another one. */
static void find_keys(const char *salt, int iterations) {
    unsigned char raw[TEXT], salted[KEY];
    if (!strcmp(keys.salt, salt) && keys.iterations == iterations) return;
    size_t length = strlen(salt);
    if (length >= TEXT) refuse("a salt is too long");
    int size = EVP_DecodeBlock(raw, (const unsigned char *)salt, (int)length);
    if (size < 0) refuse("a salt is not base64");
    for (size_t n = length; n > 0 && salt[n - 1] == '='; n--) size--;
    PKCS5_PBKDF2_HMAC(password, (int)strlen(password), raw, size, iterations, EVP_sha512(), KEY, salted);
    hmac(salted, "Client Key", 10, keys.client);
    hmac(salted, "Server Key", 10, keys.server);
    SHA512(keys.client, KEY, keys.stored);
    strcpy(keys.salt, salt);
    keys.iterations = iterations;
}

static void client_first(struct connection *c) {
    unsigned char nonce[18];
    char text[64], message[TEXT];
    if (RAND_bytes(nonce, sizeof nonce) != 1) refuse("no random bytes");
    encode(text, nonce, sizeof nonce);
    snprintf(c->bare, TEXT, "n=%s,r=%s", user, text);
    int size = snprintf(message, TEXT, "n,,%s", c->bare);
    authenticate(c, message, (size_t)size);
}

static void client_final(struct connection *c, const char *server_first) {
    char nonce[TEXT], salt[TEXT], message[4 * TEXT], final[TEXT + 16], proof[2 * KEY];
    unsigned char key[KEY], signature[KEY];
    int iterations;
    if (sscanf(server_first, "r=%1000[^,],s=%1000[^,],i=%d", nonce, salt, &iterations) != 3) refuse("not SCRAM");
    find_keys(salt, iterations);
    snprintf(final, sizeof final, "c=biws,r=%s", nonce);
    int size = snprintf(message, sizeof message, "%s,%s,%s", c->bare, server_first, final);
    hmac(keys.stored, message, (size_t)size, signature);
    for (int n = 0; n < KEY; n++) key[n] = keys.client[n] ^ signature[n];
    encode(proof, key, KEY);
    hmac(keys.server, message, (size_t)size, signature);
    encode(c->server_signature, signature, KEY);
    size = snprintf(message, sizeof message, "%s,p=%s", final, proof);
    authenticate(c, message, (size_t)size);
}

static void plain_token(struct connection *c) {
    char token[TEXT];
    int size = snprintf(token, TEXT, "%c%s%c%s", 0, user, 0, password);
    authenticate(c, token, (size_t)size);
}

static void open_connection(struct connection *c) {
    int one = 1;
    c->begun = now_ns();
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->have = 0;
    c->waits_to_write = 0;
    begin_frame(c, 18, 0);
    end_frame(c);
    c->step = VERSIONS;
    if (mode == TLS) {
        c->tls = SSL_new(context);
        SSL_set_fd(c->tls, c->fd);
        SSL_set_connect_state(c->tls);
        c->step = SHAKING;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event)) fail("epoll_ctl");
}

/* The log-in is done: begin the next one in its place. */
static void finish(struct connection *c) {
    if (sample_count == sample_room) {
        sample_room = sample_room ? sample_room * 2 : 1 << 16;
        samples = realloc(samples, sample_room * sizeof *samples);
    }
    samples[sample_count++] = now_ns() - c->begun;
    if (c->tls) {
        SSL_set_quiet_shutdown(c->tls, 1);
        SSL_free(c->tls);
    }
    c->tls = NULL;
    close(c->fd);
    open_connection(c);
}

/* SSL_write and SSL_read with the results of send and recv. */
static ssize_t result_of(struct connection *c, int n) {
    if (n > 0) return n;
    int error = SSL_get_error(c->tls, n);
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

static void push(struct connection *c) {
    if (c->step == SHAKING) {
        int done = SSL_do_handshake(c->tls);
        if (done != 1) {
            if (result_of(c, done) != -1 || errno != EAGAIN) fail("the TLS handshake failed");
            return;
        }
        c->step = VERSIONS;
    }
    while (c->sent < c->out_size) {
        const unsigned char *data = c->out + c->sent;
        size_t size = c->out_size - c->sent;
        ssize_t n = c->tls ? result_of(c, SSL_write(c->tls, data, (int)size)) : send(c->fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) fail("send");
        c->sent += (size_t)n;
    }
    int waits = c->sent < c->out_size;
    if (waits == c->waits_to_write) return;
    struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event)) fail("epoll_ctl");
    c->waits_to_write = waits;
}

/* The token in a SaslAuthenticate v0 response, as text in `token`; the program ends if the log-in was refused. */
static void token_of(const unsigned char *body, size_t size, char *token) {
    if (size < 8 || get16(body)) refuse("the log-in was refused");
    int16_t message = (int16_t)get16(body + 2);
    size_t at = 4 + (message > 0 ? (size_t)message : 0);
    uint32_t length = size >= at + 4 ? get32(body + at) : TEXT;
    if (length >= TEXT || at + 4 + length > size) refuse("an answer is malformed");
    memcpy(token, body + at + 4, length);
    token[length] = 0;
}

/* Handle a response; body starts after the correlation id. */
static void answered(struct connection *c, const unsigned char *body, size_t size) {
    char token[TEXT];
    switch (c->step) {
    case VERSIONS:
        if (size < 2 || get16(body)) refuse("ApiVersions failed");
        if (mode == TLS) { finish(c); break; }
        const char *mechanism = mode == PLAIN ? "PLAIN" : "SCRAM-SHA-512";
        begin_frame(c, 17, 1);
        add16(c, (uint16_t)strlen(mechanism));
        add(c, mechanism, strlen(mechanism));
        end_frame(c);
        c->step = MECHANISM;
        break;
    case MECHANISM:
        if (size < 2 || get16(body)) refuse("the mechanism is not enabled");
        if (mode == PLAIN) plain_token(c); else client_first(c);
        c->step = mode == PLAIN ? FINAL : FIRST;
        break;
    case FIRST:
        token_of(body, size, token);
        client_final(c, token);
        c->step = FINAL;
        break;
    default:
        token_of(body, size, token);
        if (mode == SCRAM && (strncmp(token, "v=", 2) || strcmp(token + 2, c->server_signature)))
            refuse("the server's signature is wrong");
        finish(c);
    }
}

static void pull(struct connection *c) {
    if (c->step == SHAKING) {
        push(c);
        if (c->step == SHAKING) return;
    }
    size_t room = BUFFER - c->have;
    ssize_t n = c->tls ? result_of(c, SSL_read(c->tls, c->in + c->have, (int)room)) : recv(c->fd, c->in + c->have, room, 0);
    if (n == 0) refuse("the broker closed the connection");
    if (n < 0) { if (errno == EAGAIN || errno == EINTR) return; fail("recv"); }
    c->have += (size_t)n;
    if (c->have < 8) return;
    uint32_t size = get32(c->in);
    if (size < 4 || size > BUFFER - 4) refuse("an answer is too big");
    if (c->have < 4 + (size_t)size) return;
    c->have = 0;
    answered(c, c->in + 8, size - 4);
    push(c);
}

static void stop(int number) { (void)number; stopped = 1; }

/* At least one log-in is counted, however slow the machine is: a rate of nothing is no figure. */
static void run(double seconds) {
    struct epoll_event events[64];
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
    while (!stopped && (now_ns() < end || !sample_count)) {
        int count = epoll_wait(epoll_fd, events, 64, 100);
        for (int n = 0; n < count; n++) {
            struct connection *c = events[n].data.ptr;
            if (events[n].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) pull(c);
            else push(c);
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
    if (argc < 7) refuse("see the head of login_load.c for the arguments");
    mode = !strcmp(argv[1], "plain") ? PLAIN : !strcmp(argv[1], "scram") ? SCRAM : TLS;
    if (mode != TLS && argc < 9) refuse("user and password are missing");
    if (mode != TLS) { user = argv[7]; password = argv[8]; }
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(argv[3]));
    inet_pton(AF_INET, argv[2], &address.sin_addr);
    signal(SIGTERM, stop);
    signal(SIGPIPE, SIG_IGN);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_256_GCM_SHA384");
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);

    int connections = atoi(argv[4]);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    epoll_fd = epoll_create1(0);
    for (int n = 0; n < connections; n++) {
        open_connection(&all[n]);
        push(&all[n]);
    }
    run(atof(argv[5]));
    sample_count = 0;
    printf("start\n");
    fflush(stdout);
    uint64_t started = now_ns();
    run(atof(argv[6]));
    double took = (double)(now_ns() - started) / 1e9;
    printf("end\n");
    fflush(stdout);
    if (sample_count) qsort(samples, sample_count, sizeof *samples, by_value);
    printf("result requests=%llu bytes=0 seconds=%.6f p50_us=%.1f p99_us=%.1f max_us=%.1f\n",
           (unsigned long long)sample_count, took, quantile_us(0.5), quantile_us(0.99), quantile_us(1));
    return 0;
}
