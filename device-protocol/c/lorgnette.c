#include "lorgnette.h"

#include <string.h>

/* Writing: sections 2 to 4. */

static void put(lg_writer *writer, const void *bytes, size_t length) {
    if (writer->failed || length > writer->size - writer->length) {
        writer->failed = true;
        return;
    }
    if (length > 0) memcpy(writer->bytes + writer->length, bytes, length);
    writer->length += length;
}

static void put_le(lg_writer *writer, uint64_t value, size_t length) {
    uint8_t bytes[8];
    for (size_t at = 0; at < length; at++) bytes[at] = (uint8_t)(value >> (8 * at));
    put(writer, bytes, length);
}

void lg_begin(lg_writer *writer, uint8_t *bytes, size_t size, uint16_t kind, lg_stamp stamp) {
    *writer = (lg_writer){bytes, size < LG_FRAME_BYTES_MAX ? size : LG_FRAME_BYTES_MAX, 0, false};
    lg_put_u8(writer, LG_VERSION);
    lg_put_u8(writer, 0);
    put_le(writer, kind, 2);
    put_le(writer, 0, 4); /* the length, by lg_end */
    lg_put_uint(writer, stamp.sequence);
    lg_put_uint(writer, stamp.turn);
    lg_put_uint(writer, stamp.time_us);
}

size_t lg_end(lg_writer *writer) {
    if (writer->failed) return 0;
    size_t body = writer->length - LG_HEADER_BYTES;
    for (size_t at = 0; at < 4; at++) writer->bytes[4 + at] = (uint8_t)(body >> (8 * at));
    return writer->length;
}

void lg_put_u8(lg_writer *writer, uint8_t value) { put(writer, &value, 1); }

void lg_put_uint(lg_writer *writer, uint64_t value) {
    if (value <= 250) {
        put_le(writer, value, 1);
        return;
    }
    size_t length = value <= UINT16_MAX ? 2 : value <= UINT32_MAX ? 4 : 8;
    lg_put_u8(writer, length == 2 ? 251 : length == 4 ? 252 : 253);
    put_le(writer, value, length);
}

void lg_put_int(lg_writer *writer, int32_t value) {
    uint32_t twice = (uint32_t)value << 1;
    lg_put_uint(writer, value < 0 ? ~twice : twice);
}

void lg_put_array(lg_writer *writer, const void *bytes, size_t length) { put(writer, bytes, length); }

void lg_put_bytes(lg_writer *writer, const void *bytes, size_t length) {
    lg_put_uint(writer, length);
    put(writer, bytes, length);
}

void lg_put_text(lg_writer *writer, const char *text) { lg_put_bytes(writer, text, strlen(text)); }

size_t lg_open(lg_writer *writer) {
    lg_put_u8(writer, 0);
    return writer->length;
}

void lg_close(lg_writer *writer, size_t opened) {
    if (writer->failed) return;
    size_t length = writer->length - opened;
    uint8_t bytes[9];
    lg_writer before = {bytes, sizeof bytes, 0, false};
    lg_put_uint(&before, length);
    /* One byte was kept for the length: a longer one moves what is behind it. */
    if (before.length - 1 > writer->size - writer->length) {
        writer->failed = true;
        return;
    }
    memmove(writer->bytes + opened + before.length - 1, writer->bytes + opened, length);
    memcpy(writer->bytes + opened - 1, bytes, before.length);
    writer->length += before.length - 1;
}

/* Reading. */

static const uint8_t *get(lg_reader *reader, size_t length) {
    if (reader->failed || length > (size_t)(reader->end - reader->at)) {
        reader->failed = true;
        return NULL;
    }
    const uint8_t *bytes = reader->at;
    reader->at += length;
    return bytes;
}

static uint64_t get_le(lg_reader *reader, size_t length) {
    const uint8_t *bytes = get(reader, length);
    uint64_t value = 0;
    for (size_t at = 0; bytes && at < length; at++) value |= (uint64_t)bytes[at] << (8 * at);
    return value;
}

/* A varint of a type with so many bytes. */
static uint64_t get_uint(lg_reader *reader, size_t width) {
    uint64_t first = get_le(reader, 1);
    size_t length = first == 251 ? 2 : first == 252 ? 4 : first == 253 ? 8 : 0;
    if (first <= 250) return first;
    if (length == 0 || length > width) reader->failed = true;
    return get_le(reader, length);
}

bool lg_read(lg_frame *frame, const uint8_t *bytes, size_t length) {
    lg_reader reader = {bytes, bytes + length, false};
    uint64_t version = get_le(&reader, 1);
    get_le(&reader, 1); /* flags */
    frame->kind = (uint16_t)get_le(&reader, 2);
    uint64_t body = get_le(&reader, 4);
    if (reader.failed || version != LG_VERSION || length > LG_FRAME_BYTES_MAX || body != length - LG_HEADER_BYTES) return false;
    frame->stamp.sequence = lg_get_u32(&reader);
    frame->stamp.turn = lg_get_u32(&reader);
    frame->stamp.time_us = lg_get_u64(&reader);
    frame->body = reader;
    return !reader.failed;
}

uint8_t lg_get_u8(lg_reader *reader) { return (uint8_t)get_le(reader, 1); }
uint16_t lg_get_u16(lg_reader *reader) { return (uint16_t)get_uint(reader, 2); }
uint32_t lg_get_u32(lg_reader *reader) { return (uint32_t)get_uint(reader, 4); }
uint64_t lg_get_u64(lg_reader *reader) { return get_uint(reader, 8); }

bool lg_get_bool(lg_reader *reader) {
    uint8_t value = lg_get_u8(reader);
    if (value > 1) reader->failed = true;
    return value == 1;
}

void lg_get_array(lg_reader *reader, void *bytes, size_t length) {
    const uint8_t *from = get(reader, length);
    if (from) memcpy(bytes, from, length);
}

lg_slice lg_get_bytes(lg_reader *reader, size_t max) {
    uint64_t length = get_uint(reader, 8);
    if (length > max) reader->failed = true;
    const uint8_t *bytes = reader->failed ? NULL : get(reader, (size_t)length);
    return bytes ? (lg_slice){bytes, (size_t)length} : (lg_slice){(const uint8_t *)"", 0};
}

/* RFC 3629, section 4. */
static bool is_utf8(const uint8_t *at, size_t length) {
    const uint8_t *end = at + length;
    while (at < end) {
        uint8_t first = *at++;
        if (first < 0x80) continue;
        size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        if (first < 0xc2 || first > 0xf4 || (size_t)(end - at) < more) return false;
        uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        for (; more > 0; more--, at++, low = 0x80, high = 0xbf)
            if (*at < low || *at > high) return false;
    }
    return true;
}

lg_slice lg_get_text(lg_reader *reader, size_t max) {
    lg_slice text = lg_get_bytes(reader, max);
    if (!is_utf8(text.bytes, text.length)) reader->failed = true;
    return text;
}

lg_reader lg_get_record(lg_reader *reader) {
    lg_slice record = lg_get_bytes(reader, LG_FRAME_BYTES_MAX);
    return (lg_reader){record.bytes, record.bytes + record.length, reader->failed};
}

bool lg_get_option(lg_reader *reader, lg_reader *record) {
    if (!lg_get_bool(reader)) return false;
    *record = lg_get_record(reader);
    return !reader->failed;
}

/* Messages up: section 13. */

size_t lg_write_hello(uint8_t *bytes, size_t size, lg_stamp stamp, const lg_hello *hello) {
    const lg_capabilities *can = &hello->capabilities;
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_HELLO, stamp);
    lg_put_array(&writer, hello->device_key, 32);
    lg_put_array(&writer, hello->nonce_commitment, 32);
    lg_put_text(&writer, hello->device_id);
    lg_put_text(&writer, hello->model);
    lg_put_text(&writer, hello->firmware);
    lg_put_text(&writer, hello->language);
    size_t capabilities = lg_open(&writer);
    lg_put_uint(&writer, can->codecs_up);
    lg_put_uint(&writer, can->codecs_down);
    lg_put_uint(&writer, can->audio_up_hz);
    lg_put_uint(&writer, can->audio_down_hz);
    size_t screen = lg_open(&writer);
    lg_put_u8(&writer, can->display);
    lg_put_uint(&writer, 0); /* pixels: not known */
    lg_put_uint(&writer, 0);
    lg_put_uint(&writer, can->columns);
    lg_put_uint(&writer, can->rows);
    lg_put_u8(&writer, can->display == LG_DISPLAY_KIND_NONE ? 0 : 1);
    lg_close(&writer, screen);
    lg_put_u8(&writer, can->speakers);
    lg_put_uint(&writer, can->buttons);
    lg_put_uint(&writer, can->sensors);
    lg_put_u8(&writer, 0); /* the microphone hears the speaker */
    lg_put_uint(&writer, 0); /* no tools */
    /* Appended fields at the end that have their default are left out (section 5, rule 3). */
    const uint32_t appended[] = {can->frame_bytes_max, can->heartbeat_ms, can->image_bytes_max, can->hardware,
                                 can->lc3_frame_us, can->lc3_frame_bytes};
    size_t count = sizeof appended / sizeof *appended;
    while (count && !appended[count - 1]) count--;
    for (size_t at = 0; at < count; at++) lg_put_uint(&writer, appended[at]);
    lg_close(&writer, capabilities);
    lg_put_u8(&writer, 0); /* no session to go on with */
    if (hello->binding != LG_CHANNEL_BINDING_EXPORTER) lg_put_u8(&writer, hello->binding);
    return lg_end(&writer);
}

size_t lg_write_proof(uint8_t *bytes, size_t size, lg_stamp stamp, const uint8_t nonce[32], const uint8_t signature[64],
                      const uint8_t *invitation) {
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_PROOF, stamp);
    lg_put_array(&writer, nonce, 32);
    lg_put_array(&writer, signature, 64);
    if (invitation) lg_put_array(&writer, invitation, 32);
    return lg_end(&writer);
}

size_t lg_write_heartbeat(uint8_t *bytes, size_t size, lg_stamp stamp, uint64_t echo_us, uint64_t held_us) {
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_HEARTBEAT, stamp);
    lg_put_uint(&writer, echo_us);
    lg_put_uint(&writer, held_us);
    return lg_end(&writer);
}

size_t lg_write_audio(uint8_t *bytes, size_t size, lg_stamp stamp, uint8_t codec, uint32_t rate_hz, uint32_t duration_us,
                      const void *payload, size_t length) {
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_AUDIO, stamp);
    lg_put_u8(&writer, codec);
    lg_put_uint(&writer, rate_hz);
    lg_put_uint(&writer, duration_us);
    lg_put_bytes(&writer, payload, length);
    return lg_end(&writer);
}

size_t lg_write_audio_end(uint8_t *bytes, size_t size, lg_stamp stamp, uint32_t last_audio_sequence, uint8_t reason) {
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_AUDIO_END, stamp);
    lg_put_uint(&writer, last_audio_sequence);
    lg_put_u8(&writer, reason);
    return lg_end(&writer);
}

size_t lg_write_played(uint8_t *bytes, size_t size, lg_stamp stamp, uint32_t speech, uint16_t clause, uint64_t played_us,
                       uint8_t state) {
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_PLAYED, stamp);
    lg_put_uint(&writer, speech);
    lg_put_uint(&writer, clause);
    lg_put_uint(&writer, played_us);
    lg_put_u8(&writer, state);
    return lg_end(&writer);
}

size_t lg_write_firmware_answer(uint8_t *bytes, size_t size, lg_stamp stamp, uint32_t update, uint8_t answer, uint32_t offset) {
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_FIRMWARE_ANSWER, stamp);
    lg_put_uint(&writer, update);
    lg_put_u8(&writer, answer);
    lg_put_uint(&writer, offset);
    return lg_end(&writer);
}

size_t lg_write_firmware_progress(uint8_t *bytes, size_t size, lg_stamp stamp, uint32_t update, uint32_t offset) {
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_FIRMWARE_PROGRESS, stamp);
    lg_put_uint(&writer, update);
    lg_put_uint(&writer, offset);
    return lg_end(&writer);
}

size_t lg_write_goodbye(uint8_t *bytes, size_t size, lg_stamp stamp, uint16_t reason) {
    lg_writer writer;
    lg_begin(&writer, bytes, size, LG_UP_GOODBYE, stamp);
    lg_put_uint(&writer, reason);
    lg_put_text(&writer, "");
    lg_put_uint(&writer, 0);
    return lg_end(&writer);
}

/* Messages down: section 14. */

bool lg_read_challenge(lg_reader body, lg_challenge *out) {
    lg_get_array(&body, out->nonce, 32);
    lg_get_array(&body, out->gateway_key, 32);
    lg_get_array(&body, out->signature, 64);
    return !body.failed;
}

static bool get_format(lg_reader *body, lg_audio_format *out) {
    lg_reader record = lg_get_record(body);
    out->codec = lg_get_u8(&record);
    out->rate_hz = lg_get_u32(&record);
    out->frame_ms = lg_get_u16(&record);
    /* Appended: not there in a record of an older gateway, or of one that wants another codec. */
    out->lc3_frame_us = record.at == record.end ? 0 : lg_get_u16(&record);
    out->lc3_frame_bytes = record.at == record.end ? 0 : lg_get_u16(&record);
    return !record.failed;
}

bool lg_read_welcome(lg_reader body, lg_welcome *out) {
    lg_reader resumed;
    out->session = lg_get_u32(&body);
    out->resume_token = lg_get_bytes(&body, 64);
    out->resume_ms = lg_get_u32(&body);
    out->resumed = lg_get_option(&body, &resumed);
    out->gateway_name = lg_get_text(&body, 64);
    out->user_name = lg_get_text(&body, 64);
    out->heartbeat_ms = lg_get_u32(&body);
    bool formats = get_format(&body, &out->audio_up) && get_format(&body, &out->audio_down);
    return formats && !body.failed;
}

bool lg_read_display(lg_reader body, lg_display *out) {
    out->action = lg_get_u8(&body);
    out->view = lg_get_u8(&body);
    out->priority = lg_get_u8(&body);
    out->duration_ms = lg_get_u32(&body);
    out->revision = lg_get_u32(&body);
    lg_reader content = lg_get_record(&body);
    out->layout = lg_get_u8(&content);
    out->first = lg_get_text(&content, 4096);
    out->second = lg_get_text(&content, 4096);
    return !content.failed && !body.failed;
}

bool lg_read_speech_chunk(lg_reader body, lg_speech_chunk *out) {
    out->speech = lg_get_u32(&body);
    out->clause = lg_get_u16(&body);
    out->position_us = lg_get_u64(&body);
    out->duration_us = lg_get_u32(&body);
    out->payload = lg_get_bytes(&body, 4096);
    return !body.failed;
}

bool lg_read_firmware_offer(lg_reader body, lg_firmware_offer *out) {
    out->update = lg_get_u32(&body);
    out->manifest = lg_get_bytes(&body, LG_MANIFEST_BYTES_MAX);
    lg_get_array(&body, out->signature, 64);
    out->chunk_bytes = lg_get_u16(&body);
    return !body.failed;
}

bool lg_read_firmware_chunk(lg_reader body, lg_firmware_chunk *out) {
    out->update = lg_get_u32(&body);
    out->offset = lg_get_u32(&body);
    out->payload = lg_get_bytes(&body, LG_FIRMWARE_CHUNK_BYTES_MAX);
    return !body.failed;
}

/* The handshake: section 6. */

static size_t join(uint8_t *out, const char *label, const uint8_t *const parts[], size_t count) {
    size_t length = strlen(label);
    memcpy(out, label, length);
    for (size_t at = 0; at < count; at++, length += 32) memcpy(out + length, parts[at], 32);
    return length;
}

size_t lg_gateway_message(const lg_handshake *h, uint8_t out[LG_TRANSCRIPT_BYTES_MAX]) {
    const uint8_t *const parts[] = {h->device_key, h->gateway_key, h->nonce_commitment, h->gateway_nonce, h->binding};
    return join(out, "lorgnette-auth-1 gateway", parts, 5);
}

size_t lg_device_message(const lg_handshake *h, const uint8_t nonce[32], uint8_t out[LG_TRANSCRIPT_BYTES_MAX]) {
    const uint8_t *const parts[] = {h->device_key, h->gateway_key, h->nonce_commitment, h->gateway_nonce, nonce, h->binding};
    return join(out, "lorgnette-auth-1 device", parts, 6);
}

size_t lg_pairing_message(const lg_handshake *h, const uint8_t nonce[32], uint8_t out[LG_TRANSCRIPT_BYTES_MAX]) {
    const uint8_t *const parts[] = {h->device_key, h->gateway_key, h->gateway_nonce, nonce, h->binding};
    return join(out, "lorgnette-pairing-1", parts, 5);
}

size_t lg_invitation_message(const lg_handshake *h, const uint8_t nonce[32], const uint8_t code[16],
                             uint8_t out[LG_TRANSCRIPT_BYTES_MAX]) {
    const char label[] = "lorgnette-invitation-1";
    const uint8_t *const parts[] = {h->device_key, h->gateway_key, h->gateway_nonce, nonce, h->binding};
    memcpy(out, label, sizeof label - 1);
    memcpy(out + sizeof label - 1, code, 16);
    return sizeof label - 1 + 16 + join(out + sizeof label - 1 + 16, "", parts, 5);
}

void lg_pairing_code(const uint8_t digest[32], char code[7]) {
    uint32_t number = (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 | (uint32_t)digest[2] << 8 | digest[3];
    number %= 1000000;
    for (int at = 5; at >= 0; at--, number /= 10) code[at] = (char)('0' + number % 10);
    code[6] = 0;
}
