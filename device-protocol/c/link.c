#define _POSIX_C_SOURCE 200809L

#include "link.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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

/* WebSocket (RFC 6455) over TLS 1.3: section 1. */

static void send_all(const void *bytes, size_t length) {
    if (length > 0 && SSL_write(tls, bytes, (int)length) <= 0) fail("the connection broke");
}

/* Waits for more bytes, for about so many milliseconds; false: none have come. */
static bool receive(int wait_ms) {
    struct pollfd ready = {SSL_get_fd(tls), POLLIN, 0};
    if (in_length == sizeof in) fail("a frame is too long");
    while (SSL_pending(tls) || poll(&ready, 1, wait_ms) > 0) {
        int got = SSL_read(tls, in + in_length, (int)(sizeof in - in_length));
        if (got > 0) {
            in_length += (size_t)got;
            return true;
        }
        /* Something of TLS itself, such as a session ticket, or a part of a record. */
        if (SSL_get_error(tls, got) != SSL_ERROR_WANT_READ) fail("the gateway closed the connection");
    }
    return false;
}

static void send_message(uint8_t opcode, const uint8_t *bytes, size_t length) {
    static uint8_t out[LG_FRAME_BYTES_MAX + 14];
    size_t head = length < 126 ? 2 : length < 65536 ? 4 : 10;
    out[0] = 0x80 | opcode;
    out[1] = (uint8_t)(0x80 | (head == 2 ? length : head == 4 ? 126 : 127));
    for (size_t at = 2; at < head; at++) out[at] = (uint8_t)((uint64_t)length >> 8 * (head - 1 - at));
    random_bytes(out + head, 4);
    for (size_t at = 0; at < length; at++) out[head + 4 + at] = bytes[at] ^ out[head + at % 4];
    send_all(out, head + 4 + length);
}

/* Takes `count` bytes from the beginning of `in`. */
static void drop(size_t count) {
    memmove(in, in + count, in_length - count);
    in_length -= count;
}

/* The next frame of the gateway in `message`, which it points into; false: none within `wait_ms`. */
bool link_receive(lg_frame *frame, uint8_t message[LG_FRAME_BYTES_MAX], int wait_ms) {
    for (;;) {
        size_t head = in_length < 2 ? 2 : (in[1] & 0x7f) == 126 ? 4 : (in[1] & 0x7f) == 127 ? 10 : 2;
        uint64_t length = in_length < head ? 0 : head == 2 ? in[1] & 0x7f : 0;
        for (size_t at = 2; at < head && in_length >= head; at++) length = length << 8 | in[at];
        if (length > LG_FRAME_BYTES_MAX) fail("a message is too long");
        if (in_length < head || in_length < head + length) {
            if (!receive(wait_ms)) return false;
            continue;
        }
        if ((in[0] & 0x80) == 0 || (in[1] & 0x80)) fail("a message in pieces, or a masked one");
        uint8_t opcode = in[0] & 0x0f;
        memcpy(message, in + head, (size_t)length);
        drop(head + (size_t)length);
        if (opcode == 9) send_message(10, message, (size_t)length);
        if (opcode == 8) {
            send_message(8, message, length < 2 ? 0 : 2); /* section 10: it is answered */
            fail("the gateway closed: %u", length < 2 ? 0 : message[0] << 8 | message[1]);
        }
        if (opcode != 2) continue;
        if (!lg_read(frame, message, (size_t)length)) fail("a malformed frame");
        return true;
    }
}

void link_open(const char *gateway, uint8_t binding[32]) {
    char host[256];
    const char *colon = strrchr(gateway, ':');
    if (!colon || (size_t)(colon - gateway) >= sizeof host) fail("give the gateway as HOST:PORT");
    snprintf(host, sizeof host, "%.*s", (int)(colon - gateway), gateway);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, colon + 1, &hints, &found)) fail("%s has no address", gateway);
    int stream = socket(found->ai_family, SOCK_STREAM, 0);
    if (stream < 0 || connect(stream, found->ai_addr, found->ai_addrlen)) fail("%s: %s", gateway, strerror(errno));
    freeaddrinfo(found);

    /* No authority knows the gateway's certificate: section 6 proves who it is, bound to this very connection. */
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)) fail("TLS 1.3");
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY); /* so that `receive` never waits in SSL_read */
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    tls = SSL_new(context);
    if (!tls || !SSL_set_fd(tls, stream) || SSL_connect(tls) != 1) fail("no TLS 1.3 with %s", gateway);
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
    while (in_length < 4 || memcmp(in + in_length - 4, "\r\n\r\n", 4))
        if (!receive(5000)) fail("no answer to the upgrade");
    if (in_length < 12 || memcmp(in, "HTTP/1.1 101", 12)) fail("no WebSocket: %.*s", (int)in_length, in);
    in_length = 0;
}

void link_send(const uint8_t *bytes, size_t length) {
    if (length == 0) fail("a frame does not fit");
    send_message(2, bytes, length);
}

void link_close(void) {
    struct pollfd ready = {SSL_get_fd(tls), POLLIN, 0};
    for (int got = 1; got > 0 || SSL_get_error(tls, got) == SSL_ERROR_WANT_READ;) {
        if (!SSL_pending(tls) && poll(&ready, 1, 1000) <= 0) return;
        got = SSL_read(tls, in, sizeof in);
    }
}
