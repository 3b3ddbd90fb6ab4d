/* What the reference client needs besides the frames: TLS 1.3 with its exporter, WebSocket, and cryptography. This is the file
 * to replace on other platforms: OpenSSL stands here for mbedTLS or wolfSSL with Monocypher, say. */
#ifndef LORGNETTE_LINK_H
#define LORGNETTE_LINK_H

#include "lorgnette.h"

/* Ends the program with a message. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Connects to HOST:PORT or [IPV6]:PORT over wss://, and computes the binding of this connection (section 6). */
void link_open(const char *gateway, uint8_t binding[32]);
/* Sends one envelope, for which the gateway has 5 s; length 0: it did not fit its buffer, which is a mistake. */
void link_send(const uint8_t *bytes, size_t length);
/* The next frame, whose slices point into `message`; false: none has come within so many milliseconds. What WebSocket does not
 * allow, or section 17 calls flooding, ends the program. */
bool link_receive(lg_frame *frame, uint8_t message[LG_FRAME_BYTES_MAX], int wait_ms);
/* Behind `goodbye`: sends a close frame with this code, ends its direction, and reads on until the gateway has closed, for at most
 * 1 s, so that the last frame is not lost (section 10). */
void link_close(uint16_t code);

void random_bytes(uint8_t *bytes, size_t length);
void sha256(const void *bytes, size_t length, uint8_t out[32]);
/* Ed25519 (RFC 8032) with the key of the device. */
void key_use(const uint8_t seed[32], uint8_t public_key[32]);
void key_sign(const uint8_t *bytes, size_t length, uint8_t signature[64]);
bool is_signed(const uint8_t key[32], const uint8_t *bytes, size_t length, const uint8_t signature[64]);

#endif
