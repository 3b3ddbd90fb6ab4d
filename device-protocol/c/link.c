#define _POSIX_C_SOURCE 200809L

#include "link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OPEN_MS_MAX 5000  /* for TCP, for TLS, and for the answer to the upgrade */
#define TAKE_MS_MAX 5000  /* section 17: for the gateway to take a message */
#define CLOSE_MS_MAX 1000 /* section 10: for the gateway to close */
#define QUEUE_BYTES 32768 /* that the system keeps of what is sent: sound that lies there for longer is late */
/* Section 17. Two seconds of it may come at once. */
#define MESSAGES_PER_S_MAX 400 /* 200 of control, 200 of sound */
#define BYTES_PER_S_MAX (2 * 1024 * 1024)

static SSL *tls;
static EVP_PKEY *device;
static uint8_t in[2 * LG_FRAME_BYTES_MAX]; /* bytes that have come */
static size_t in_length;

_Noreturn void fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fputs("client: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

void sha256(const void *bytes, size_t length, uint8_t out[32]) {
    if (!EVP_Digest(bytes, length, out, NULL, EVP_sha256(), NULL)) fail("SHA-256");
}

void random_bytes(uint8_t *bytes, size_t length) {
    if (RAND_bytes(bytes, (int)length) != 1) fail("the system gives no random bytes");
}

void key_use(const uint8_t seed[32], uint8_t public_key[32]) {
    size_t length = 32;
    device = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, 32);
    if (!device || EVP_PKEY_get_raw_public_key(device, public_key, &length) != 1) fail("Ed25519");
}

void key_sign(const uint8_t *bytes, size_t length, uint8_t signature[64]) {
    size_t size = 64;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!EVP_DigestSignInit(context, NULL, NULL, NULL, device) || !EVP_DigestSign(context, signature, &size, bytes, length))
        fail("signing");
    EVP_MD_CTX_free(context);
}

bool is_signed(const uint8_t key[32], const uint8_t *bytes, size_t length, const uint8_t signature[64]) {
    EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, 32);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_right = peer && EVP_DigestVerifyInit(context, NULL, NULL, NULL, peer) == 1 &&
                    EVP_DigestVerify(context, signature, 64, bytes, length) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(peer);
    return is_right;
}

/* WebSocket (RFC 6455) over TLS 1.3: section 1. The stream never blocks; each wait has its end. */

static uint64_t clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Behind a call of TLS that gave `got`: waits until it can go on. 0: not by then; -1: never. */
static int wait_for(int got, uint64_t until_ms) {
    int wanted = SSL_get_error(tls, got);
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) return -1;
    struct pollfd stream = {SSL_get_fd(tls), wanted == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, 0};
    uint64_t now_ms = clock_ms();
    return now_ms < until_ms && poll(&stream, 1, (int)(until_ms - now_ms)) > 0;
}

/* 0: it is not taken by then; -1: never. */
static int try_to_send(const void *bytes, size_t length, uint64_t until_ms) {
    for (int sent; length > 0 && (sent = SSL_write(tls, bytes, (int)length)) <= 0;) {
        int ready = wait_for(sent, until_ms);
        if (ready <= 0) return ready;
    }
    return 1;
}

static void send_all(const void *bytes, size_t length) {
    int sent = try_to_send(bytes, length, clock_ms() + TAKE_MS_MAX);
    if (sent < 0) fail("the connection broke");
    if (sent == 0) fail("the gateway takes nothing");
}

/* Counts what comes, pings and what is skipped as well. */
static void meter(uint64_t *level, uint64_t amount, uint64_t per_s, uint64_t passed_ms, const char *what) {
    uint64_t gone = per_s * passed_ms; /* all in thousandths */
    *level = (*level > gone ? *level - gone : 0) + 1000 * amount;
    if (*level > 2000 * per_s) fail("the gateway floods: more than %u %s a second", (unsigned)per_s, what);
}

static void meter_all(uint64_t messages, uint64_t bytes) {
    static uint64_t messages_level, bytes_level, counted_ms;
    uint64_t now_ms = clock_ms(), passed_ms = now_ms - counted_ms;
    counted_ms = now_ms;
    meter(&messages_level, messages, MESSAGES_PER_S_MAX, passed_ms, "messages");
    meter(&bytes_level, bytes, BYTES_PER_S_MAX, passed_ms, "bytes");
}

/* Waits for more bytes until then; false: none have come. */
static bool receive(uint64_t until_ms) {
    if (in_length == sizeof in) fail("a message is too long");
    for (;;) {
        int got = SSL_read(tls, in + in_length, (int)(sizeof in - in_length));
        if (got > 0) {
            in_length += (size_t)got;
            meter_all(0, (uint64_t)got);
            return true;
        }
        /* It waits for the rest of a record, or behind something of TLS itself, such as a session ticket. */
        int ready = wait_for(got, until_ms);
        if (ready < 0) fail("the gateway closed the connection");
        if (ready == 0) return false;
    }
}

/* Makes a message of WebSocket, which has up to 14 bytes more; returns its length. */
static size_t pack(uint8_t *out, uint8_t opcode, const uint8_t *bytes, size_t length) {
    size_t head = length < 126 ? 2 : length < 65536 ? 4 : 10;
    out[0] = 0x80 | opcode;
    out[1] = (uint8_t)(0x80 | (head == 2 ? length : head == 4 ? 126 : 127));
    for (size_t at = 2; at < head; at++) out[at] = (uint8_t)((uint64_t)length >> 8 * (head - 1 - at));
    random_bytes(out + head, 4);
    for (size_t at = 0; at < length; at++) out[head + 4 + at] = bytes[at] ^ out[head + at % 4];
    return head + 4 + length;
}

static void send_message(uint8_t opcode, const uint8_t *bytes, size_t length) {
    static uint8_t out[LG_FRAME_BYTES_MAX + 14];
    send_all(out, pack(out, opcode, bytes, length));
}

/* Takes `count` bytes from the beginning of `in`. */
static void drop(size_t count) {
    memmove(in, in + count, in_length - count);
    in_length -= count;
}

/* The next frame of the gateway in `message`, which it points into; false: none within `wait_ms`, whatever else comes. */
bool link_receive(lg_frame *frame, uint8_t message[LG_FRAME_BYTES_MAX], int wait_ms) {
    const uint64_t until_ms = clock_ms() + (uint64_t)wait_ms;
    do {
        uint8_t opcode = in[0] & 0x0f, shortest = in[1] & 0x7f;
        size_t head = in_length < 2 || shortest < 126 ? 2 : shortest == 126 ? 4 : 10;
        uint64_t length = in_length >= head && head == 2 ? shortest : 0;
        for (size_t at = 2; at < head && in_length >= head; at++) length = length << 8 | in[at];
        /* What is wrong is refused by its first bytes: nothing waits for the rest. */
        if (in_length >= 2) {
            bool is_control = opcode >= 8 && opcode <= 10;
            if ((in[0] & 0xf0) != 0x80 || (in[1] & 0x80)) fail("a message in pieces, masked, or of an extension");
            if (opcode != 2 && !is_control) fail("a message that is not binary: opcode %u", opcode);
            if (length > LG_FRAME_BYTES_MAX || (is_control && shortest > 125)) fail("a message is too long");
        }
        if (in_length < head || in_length < head + length) {
            if (!receive(until_ms)) return false;
            continue;
        }
        meter_all(1, 0);
        memcpy(message, in + head, (size_t)length);
        drop(head + (size_t)length);
        if (opcode == 9) send_message(10, message, (size_t)length);
        if (opcode == 8) {
            send_message(8, message, length < 2 ? 0 : 2); /* section 10: it is answered */
            fail("the gateway closed: %u", length < 2 ? 0 : message[0] << 8 | message[1]);
        }
        if (opcode != 2) continue;
        if (!lg_read(frame, message, (size_t)length) || !(frame->kind & 0x8000)) fail("a malformed frame");
        return true;
    } while (clock_ms() < until_ms);
    return false;
}

/* Takes HOST:PORT or [IPV6]:PORT apart; returns the port. */
static const char *split(const char *gateway, char host[256]) {
    bool is_bracketed = gateway[0] == '[';
    const char *from = gateway + is_bracketed, *end = strchr(from, is_bracketed ? ']' : ':');
    if (!end && is_bracketed) fail("%s: the bracket behind the IPv6 address is missing", gateway);
    const char *colon = end ? end + is_bracketed : "";
    if (*colon != ':') fail("%s: no port: give the gateway as HOST:PORT or [IPV6]:PORT", gateway);
    if (!is_bracketed && strchr(colon + 1, ':')) fail("%s: an IPv6 address needs brackets: [::1]:8460", gateway);
    size_t length = (size_t)(end - from), digits = strspn(colon + 1, "0123456789");
    if (length == 0 || length > 255) fail("%s: no host of 1 to 255 characters", gateway);
    memcpy(host, from, length);
    host[length] = 0;
    if (strchr(host, '%')) fail("%s: an address with a zone is not taken", gateway);
    struct in6_addr unused;
    if (is_bracketed && inet_pton(AF_INET6, host, &unused) != 1) fail("%s: no IPv6 address in the brackets", gateway);
    unsigned long port = strtoul(colon + 1, NULL, 10);
    if (digits == 0 || digits > 5 || colon[1 + digits] || port == 0 || port > 65535)
        fail("%s: a port is a number from 1 to 65535", gateway);
    return colon + 1;
}

/* A connection that never blocks; -1: none, by `errno`. */
static int connect_to(const struct addrinfo *address) {
    int stream = socket(address->ai_family, SOCK_STREAM, 0), size = QUEUE_BYTES, error = 0;
    if (stream < 0) return -1;
    setsockopt(stream, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (fcntl(stream, F_SETFL, O_NONBLOCK) < 0 || connect(stream, address->ai_addr, address->ai_addrlen)) error = errno;
    if (error == EINPROGRESS) {
        struct pollfd ready = {stream, POLLOUT, 0};
        socklen_t length = sizeof error;
        if (poll(&ready, 1, OPEN_MS_MAX) <= 0) error = ETIMEDOUT;
        else if (getsockopt(stream, SOL_SOCKET, SO_ERROR, &error, &length)) error = errno;
    }
    if (error == 0) return stream;
    close(stream);
    errno = error;
    return -1;
}

void link_open(const char *gateway, uint8_t binding[32]) {
    char host[256];
    const char *port = split(gateway, host);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, port, &hints, &found)) fail("%s has no address", gateway);
    int stream = -1;
    for (struct addrinfo *address = found; address && stream < 0; address = address->ai_next) stream = connect_to(address);
    if (stream < 0) fail("%s: %s", gateway, strerror(errno));
    freeaddrinfo(found);
    signal(SIGPIPE, SIG_IGN); /* so that a connection that broke is told in words */

    /* No authority knows the gateway's certificate: section 6 proves who it is, bound to this very connection. */
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)) fail("TLS 1.3");
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY); /* so that `receive` never stays in SSL_read */
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    tls = SSL_new(context);
    if (!tls || !SSL_set_fd(tls, stream)) fail("TLS 1.3");
    const uint64_t shaken_ms = clock_ms() + OPEN_MS_MAX;
    for (int done; (done = SSL_connect(tls)) != 1;)
        if (wait_for(done, shaken_ms) <= 0) fail("no TLS 1.3 with %s", gateway);
    if (SSL_export_keying_material(tls, binding, 32, LG_EXPORTER_LABEL, strlen(LG_EXPORTER_LABEL), NULL, 0, 1) != 1)
        fail("no TLS exporter");

    uint8_t nonce[16];
    char key[25], request[512];
    random_bytes(nonce, sizeof nonce);
    EVP_EncodeBlock((uint8_t *)key, nonce, sizeof nonce);
    int length = snprintf(request, sizeof request,
                          "GET " LG_PATH " HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: " LG_SUBPROTOCOL
                          "\r\n\r\n", gateway, key);
    send_all(request, (size_t)length);
    /* The gateway speaks after `hello` only: whatever comes now is its answer. */
    const uint64_t answered_ms = clock_ms() + OPEN_MS_MAX;
    while (in_length < 4 || memcmp(in + in_length - 4, "\r\n\r\n", 4))
        if (clock_ms() >= answered_ms || !receive(answered_ms)) fail("no answer to the upgrade");
    if (in_length < 12 || memcmp(in, "HTTP/1.1 101", 12))
        fail("no WebSocket: %.*s", (int)(in_length < 300 ? in_length : 300), in);
    in_length = 0;
}

void link_send(const uint8_t *bytes, size_t length) {
    if (length == 0) fail("a frame does not fit");
    send_message(2, bytes, length);
}

void link_close(uint16_t code) {
    const uint64_t until_ms = clock_ms() + CLOSE_MS_MAX;
    const uint8_t bytes[2] = {(uint8_t)(code >> 8), (uint8_t)code};
    uint8_t out[sizeof bytes + 14];
    /* The gateway may have closed already. */
    if (try_to_send(out, pack(out, 8, bytes, sizeof bytes), until_ms) <= 0) return;
    SSL_shutdown(tls); /* close_notify; then FIN */
    shutdown(SSL_get_fd(tls), SHUT_WR);
    while (clock_ms() < until_ms) {
        int got = SSL_read(tls, in, sizeof in);
        if (got <= 0 && wait_for(got, until_ms) <= 0) return;
    }
}
