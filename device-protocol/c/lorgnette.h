/* Frames of the protocol between glasses and gateway (PROTOCOL.md), for firmware in C: no heap, no globals, no library but
 * memcpy. Every function is safe with bytes from anywhere: what does not fit or is malformed sets `failed`. */
#ifndef LORGNETTE_H
#define LORGNETTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "numbers.h"

#define LG_VERSION 1
#define LG_HEADER_BYTES 8
#define LG_FRAME_BYTES_MAX 65536
#define LG_AUDIO_FRAME_BYTES_MAX 4168
#define LG_PATH "/glasses"
#define LG_SUBPROTOCOL "lorgnette.v1"
#define LG_EXPORTER_LABEL "EXPORTER-lorgnette-auth-1"

/* Section 4: what every frame begins with. */
typedef struct {
    uint32_t sequence; /* in its class and direction; 0 for link frames */
    uint32_t turn;
    uint64_t time_us; /* on the sender's session clock */
} lg_stamp;

/* Writing. lg_begin, then the fields in the order of their table, then lg_end. */
typedef struct {
    uint8_t *bytes;
    size_t size, length;
    bool failed;
} lg_writer;

void lg_begin(lg_writer *writer, uint8_t *bytes, size_t size, uint16_t kind, lg_stamp stamp);
/* Length of the whole frame; 0: it did not fit. */
size_t lg_end(lg_writer *writer);
void lg_put_u8(lg_writer *writer, uint8_t value); /* u8, bool, and enumerations of one byte */
void lg_put_uint(lg_writer *writer, uint64_t value); /* u16, u32, u64, sets, other enumerations */
void lg_put_int(lg_writer *writer, int32_t value); /* i16, i32 */
void lg_put_array(lg_writer *writer, const void *bytes, size_t length); /* arrays: no length */
void lg_put_bytes(lg_writer *writer, const void *bytes, size_t length);
void lg_put_text(lg_writer *writer, const char *text);
/* A record, or a list: lg_open, its fields or records, then lg_close with what lg_open returned. */
size_t lg_open(lg_writer *writer);
void lg_close(lg_writer *writer, size_t opened);

/* Reading. Fields in the order of their table; what follows the last one that is known is left alone. */
typedef struct {
    const uint8_t *at, *end;
    bool failed;
} lg_reader;

typedef struct {
    uint16_t kind;
    lg_stamp stamp;
    lg_reader body; /* behind the stamp */
} lg_frame;

/* Texts and bytes of a frame: they point into it and have no zero at their end. */
typedef struct {
    const uint8_t *bytes;
    size_t length;
} lg_slice;

/* Exactly one frame; false: it is none. */
bool lg_read(lg_frame *frame, const uint8_t *bytes, size_t length);
uint8_t lg_get_u8(lg_reader *reader);
bool lg_get_bool(lg_reader *reader);
uint16_t lg_get_u16(lg_reader *reader);
uint32_t lg_get_u32(lg_reader *reader);
uint64_t lg_get_u64(lg_reader *reader);
void lg_get_array(lg_reader *reader, void *bytes, size_t length);
lg_slice lg_get_bytes(lg_reader *reader, size_t max);
lg_slice lg_get_text(lg_reader *reader, size_t max); /* fails unless it is UTF-8 */
lg_reader lg_get_record(lg_reader *reader); /* a record or a list: its own reader */
bool lg_get_option(lg_reader *reader, lg_reader *record); /* false: nothing */

/* Messages up. */
typedef struct {
    uint16_t codecs_up, codecs_down;
    uint32_t audio_up_hz, audio_down_hz; /* 0: none */
    uint8_t display; /* LG_DISPLAY_KIND_... */
    uint16_t columns, rows;
    uint8_t speakers;
    uint32_t buttons, sensors;
    uint32_t frame_bytes_max; /* 0: any */
    uint32_t heartbeat_ms; /* 0: as the gateway likes */
    uint32_t image_bytes_max; /* 0: the gateway does not update the firmware */
    uint16_t hardware; /* its revision */
    uint16_t lc3_frame_us, lc3_frame_bytes; /* 0: no LC3 */
} lg_capabilities;

typedef struct {
    const uint8_t *device_key, *nonce_commitment; /* 32 bytes each */
    const char *device_id, *model, *firmware, *language;
    lg_capabilities capabilities;
    uint8_t binding; /* LG_CHANNEL_BINDING_... */
} lg_hello;

/* Each writes a whole frame and returns its length; 0: it did not fit. */
size_t lg_write_hello(uint8_t *bytes, size_t size, lg_stamp stamp, const lg_hello *hello);
/* `invitation`: 32 bytes, or NULL for none. */
size_t lg_write_proof(uint8_t *bytes, size_t size, lg_stamp stamp, const uint8_t nonce[32], const uint8_t signature[64],
                      const uint8_t *invitation);
size_t lg_write_heartbeat(uint8_t *bytes, size_t size, lg_stamp stamp, uint64_t echo_us, uint64_t held_us);
size_t lg_write_audio(uint8_t *bytes, size_t size, lg_stamp stamp, uint8_t codec, uint32_t rate_hz, uint32_t duration_us,
                      const void *payload, size_t length);
size_t lg_write_audio_end(uint8_t *bytes, size_t size, lg_stamp stamp, uint32_t last_audio_sequence, uint8_t reason);
size_t lg_write_played(uint8_t *bytes, size_t size, lg_stamp stamp, uint32_t speech, uint16_t clause, uint64_t played_us,
                       uint8_t state);
/* Section 19. A device that announces `image_bytes_max` answers each offer, be it that it refuses. */
size_t lg_write_firmware_answer(uint8_t *bytes, size_t size, lg_stamp stamp, uint32_t update, uint8_t answer, uint32_t offset);
size_t lg_write_firmware_progress(uint8_t *bytes, size_t size, lg_stamp stamp, uint32_t update, uint32_t offset);
size_t lg_write_goodbye(uint8_t *bytes, size_t size, lg_stamp stamp, uint16_t reason);

/* Messages down: each reads a body, and returns false where it is malformed. */
typedef struct {
    uint8_t nonce[32], gateway_key[32], signature[64];
} lg_challenge;

typedef struct {
    uint8_t codec;
    uint32_t rate_hz;
    uint16_t frame_ms;
    uint16_t lc3_frame_us, lc3_frame_bytes; /* 0: another codec */
} lg_audio_format;

typedef struct {
    uint32_t session, resume_ms, heartbeat_ms;
    bool resumed;
    lg_slice resume_token, gateway_name, user_name;
    lg_audio_format audio_up, audio_down;
} lg_welcome;

typedef struct {
    uint8_t action, view, priority, layout;
    uint32_t duration_ms, revision;
    lg_slice first, second;
} lg_display;

typedef struct {
    uint32_t speech, duration_us;
    uint16_t clause;
    uint64_t position_us;
    lg_slice payload;
} lg_speech_chunk;

#define LG_MANIFEST_BYTES_MAX 512
#define LG_FIRMWARE_CHUNK_BYTES_MAX 1024

typedef struct {
    uint32_t update;
    lg_slice manifest;
    uint8_t signature[64];
    uint16_t chunk_bytes;
} lg_firmware_offer;

typedef struct {
    uint32_t update, offset;
    lg_slice payload;
} lg_firmware_chunk;

bool lg_read_firmware_offer(lg_reader body, lg_firmware_offer *out);
bool lg_read_firmware_chunk(lg_reader body, lg_firmware_chunk *out);
bool lg_read_challenge(lg_reader body, lg_challenge *out);
bool lg_read_welcome(lg_reader body, lg_welcome *out);
bool lg_read_display(lg_reader body, lg_display *out);
bool lg_read_speech_chunk(lg_reader body, lg_speech_chunk *out);

/* Section 6: the bytes that are signed or hashed. `device_nonce` is NULL in the message of the gateway; `code` has the 16
 * bytes of an invitation, else NULL. */
#define LG_TRANSCRIPT_BYTES_MAX 256
typedef struct {
    uint8_t device_key[32], gateway_key[32], nonce_commitment[32], gateway_nonce[32], binding[32];
} lg_handshake;

size_t lg_gateway_message(const lg_handshake *handshake, uint8_t out[LG_TRANSCRIPT_BYTES_MAX]);
size_t lg_device_message(const lg_handshake *handshake, const uint8_t nonce[32], uint8_t out[LG_TRANSCRIPT_BYTES_MAX]);
size_t lg_pairing_message(const lg_handshake *handshake, const uint8_t nonce[32], uint8_t out[LG_TRANSCRIPT_BYTES_MAX]);
size_t lg_invitation_message(const lg_handshake *handshake, const uint8_t nonce[32], const uint8_t code[16],
                             uint8_t out[LG_TRANSCRIPT_BYTES_MAX]);
/* The six digits of a SHA-256 of the pairing message, and a zero. */
void lg_pairing_code(const uint8_t digest[32], char code[7]);

#endif
