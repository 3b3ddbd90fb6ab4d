/* Tests the C code with the vectors of the protocol: reads names of files from standard input, one a line.
 *
 * FILE.hex of a frame is read whole, cut at every byte and with every bit flipped, which the sanitizers watch; what it
 * decodes to is printed, for a comparison with FILE.json. Then frames are written from the values of their vectors. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lorgnette.h"

static size_t read_hex(const char *path, uint8_t *bytes, size_t size) {
    FILE *file = fopen(path, "r");
    char line[4096];
    size_t length = 0;
    if (!file) exit(fprintf(stderr, "%s cannot be read\n", path));
    while (fgets(line, sizeof line, file)) {
        unsigned byte;
        int used;
        for (const char *at = line; line[0] != '#' && length < size && sscanf(at, "%2x%n", &byte, &used) == 1; at += used)
            bytes[length++] = (uint8_t)byte;
    }
    fclose(file);
    return length;
}

static void print_bytes(const char *name, lg_slice slice) {
    printf(" %s=", name);
    for (size_t at = 0; at < slice.length; at++) printf("%02x", slice.bytes[at]);
}

/* Decodes what the code knows; prints it unless `quiet`. */
static void decode(const uint8_t *bytes, size_t length, int quiet) {
    lg_frame frame;
    lg_challenge challenge;
    lg_welcome welcome;
    lg_display display;
    lg_speech_chunk chunk;
    lg_firmware_offer offer;
    lg_firmware_chunk piece;
    if (!lg_read(&frame, bytes, length)) {
        if (!quiet) printf("bad\n");
        return;
    }
    if (!quiet)
        printf("kind_number=%u sequence=%u turn=%u time_us=%llu", frame.kind, frame.stamp.sequence, frame.stamp.turn,
               (unsigned long long)frame.stamp.time_us);
    int ok = 1;
    switch (frame.kind) {
    case LG_DOWN_CHALLENGE:
        ok = lg_read_challenge(frame.body, &challenge);
        if (ok && !quiet) print_bytes("gateway_key", (lg_slice){challenge.gateway_key, 32});
        break;
    case LG_DOWN_WELCOME:
        ok = lg_read_welcome(frame.body, &welcome);
        if (!ok || quiet) break;
        printf(" session=%u resume_ms=%u heartbeat_ms=%u audio_up.rate_hz=%u audio_down.frame_ms=%u", welcome.session,
               welcome.resume_ms, welcome.heartbeat_ms, welcome.audio_up.rate_hz, welcome.audio_down.frame_ms);
        if (welcome.audio_up.lc3_frame_bytes)
            printf(" audio_up.lc3_frame_us=%u audio_down.lc3_frame_bytes=%u", welcome.audio_up.lc3_frame_us,
                   welcome.audio_down.lc3_frame_bytes);
        print_bytes("gateway_name", welcome.gateway_name);
        break;
    case LG_DOWN_DISPLAY:
        ok = lg_read_display(frame.body, &display);
        if (!ok || quiet) break;
        printf(" priority=%u duration_ms=%u revision=%u", display.priority, display.duration_ms, display.revision);
        print_bytes("content.first", display.first);
        print_bytes("content.second", display.second);
        break;
    case LG_DOWN_SPEECH_CHUNK:
        ok = lg_read_speech_chunk(frame.body, &chunk);
        if (!ok || quiet) break;
        printf(" speech=%u clause=%u position_us=%llu duration_us=%u", chunk.speech, chunk.clause,
               (unsigned long long)chunk.position_us, chunk.duration_us);
        print_bytes("payload", chunk.payload);
        break;
    case LG_DOWN_FIRMWARE_OFFER:
        ok = lg_read_firmware_offer(frame.body, &offer);
        if (ok && !quiet) printf(" update=%u chunk_bytes=%u", offer.update, offer.chunk_bytes);
        break;
    case LG_DOWN_FIRMWARE_CHUNK:
        ok = lg_read_firmware_chunk(frame.body, &piece);
        if (!ok || quiet) break;
        printf(" update=%u offset=%u", piece.update, piece.offset);
        print_bytes("payload", piece.payload);
        break;
    default:
        break;
    }
    if (!quiet) printf(ok ? "\n" : " bad\n");
}

static void check(const char *folder, const char *name, const uint8_t *bytes, size_t length) {
    char path[4096];
    uint8_t wanted[4096];
    snprintf(path, sizeof path, "%s/frames/%s.hex", folder, name);
    size_t count = read_hex(path, wanted, sizeof wanted);
    if (length != count || memcmp(bytes, wanted, count)) exit(fprintf(stderr, "%s is written otherwise\n", name));
    printf("written %s\n", name);
}

static void write_all(const char *folder) {
    uint8_t out[4096], key[32], commitment[32], nonce[32], signature[64], invitation[32];
    for (uint8_t at = 0; at < 64; at++) {
        if (at < 32) key[at] = at, commitment[at] = (uint8_t)(100 + at), nonce[at] = (uint8_t)(32 + at);
        if (at < 32) invitation[at] = (uint8_t)(128 + at);
        signature[at] = (uint8_t)(64 + at);
    }
    lg_stamp stamp = {0, 0, 2000};
    check(folder, "proof", out, lg_write_proof(out, sizeof out, stamp, nonce, signature, NULL));
    check(folder, "proof.invitation", out, lg_write_proof(out, sizeof out, stamp, nonce, signature, invitation));
    stamp = (lg_stamp){0, 0, 10000000};
    check(folder, "heartbeat.up", out, lg_write_heartbeat(out, sizeof out, stamp, 9998000, 1500));
    const uint8_t opus[] = {0x48, 0x0b, 0xe4, 0xc1, 0x36, 0xec, 0xc5, 0x80}, pcm[] = {0, 0, 0xff, 0x7f, 0, 0x80, 0xff, 0xff};
    stamp = (lg_stamp){1, 0, 3000000};
    check(folder, "audio", out, lg_write_audio(out, sizeof out, stamp, LG_CODEC_OPUS, 16000, 20000, opus, sizeof opus));
    uint8_t lc3[40];
    for (size_t at = 0; at < sizeof lc3; at++) lc3[at] = (uint8_t)(200 + at);
    check(folder, "audio.lc3", out, lg_write_audio(out, sizeof out, stamp, LG_CODEC_LC3, 16000, 15000, lc3, sizeof lc3));
    stamp = (lg_stamp){UINT32_MAX, UINT32_MAX, UINT64_MAX};
    check(folder, "audio.pcm16", out, lg_write_audio(out, sizeof out, stamp, LG_CODEC_PCM16, 48000, 83, pcm, sizeof pcm));
    stamp = (lg_stamp){5, 2, 7000000};
    check(folder, "audio_end", out, lg_write_audio_end(out, sizeof out, stamp, 300, LG_MIC_END_RELEASED));
    stamp = (lg_stamp){6, 2, 8000000};
    check(folder, "played", out, lg_write_played(out, sizeof out, stamp, 3, 1, 1280000, LG_PLAY_STATE_PLAYING));
    stamp = (lg_stamp){7, 2, 9000000};
    check(folder, "firmware_answer.refused", out,
          lg_write_firmware_answer(out, sizeof out, stamp, 2, LG_UPDATE_ANSWER_NOT_WANTED, 0));
    stamp = (lg_stamp){9, 2, 9500000};
    check(folder, "firmware_progress", out, lg_write_firmware_progress(out, sizeof out, stamp, 3, 43008));
    stamp = (lg_stamp){0, 0, 60000000};
    check(folder, "goodbye.up", out, lg_write_goodbye(out, sizeof out, stamp, LG_GOODBYE_REASON_POWER_OFF));
    /* No vector has exactly what a client of this code says of itself: it is compared by the gateway. */
    lg_hello hello = {.device_key = key, .nonce_commitment = commitment, .device_id = "LG-0001", .model = "Example One",
                      .firmware = "1.2.3", .language = "en-GB",
                      .capabilities = {.codecs_up = LG_CODECS_PCM16, .audio_up_hz = 16000, .heartbeat_ms = 20000},
                      .binding = LG_CHANNEL_BINDING_CERTIFICATE};
    size_t length = lg_write_hello(out, sizeof out, (lg_stamp){0, 0, 1000}, &hello);
    printf("hello ");
    for (size_t at = 0; at < length; at++) printf("%02x", out[at]);
    printf("\n");
    for (size_t size = 0; size < length; size++)
        if (lg_write_hello(out, size, stamp, &hello)) exit(fprintf(stderr, "a hello in %zu bytes\n", size));
}

/* Reads 32 bytes of hexadecimal digits. */
static void unhex(const char *text, uint8_t *bytes, size_t count) {
    for (size_t at = 0; at < count; at++) {
        unsigned byte;
        if (sscanf(text + 2 * at, "%2x", &byte) != 1) exit(fprintf(stderr, "no digits: %s\n", text));
        bytes[at] = (uint8_t)byte;
    }
}

/* A line `handshake DEVICE_KEY GATEWAY_KEY COMMITMENT GATEWAY_NONCE BINDING NONCE CODE DIGEST`. */
static void handshake(char *line) {
    uint8_t parts[8][32] = {{0}}, out[LG_TRANSCRIPT_BYTES_MAX];
    char *rest = NULL, *word = strtok_r(line, " \n", &rest), code[7];
    for (int at = 0; at < 8 && (word = strtok_r(NULL, " \n", &rest)); at++) unhex(word, parts[at], strlen(word) / 2);
    lg_handshake h;
    memcpy(h.device_key, parts[0], 32), memcpy(h.gateway_key, parts[1], 32), memcpy(h.nonce_commitment, parts[2], 32);
    memcpy(h.gateway_nonce, parts[3], 32), memcpy(h.binding, parts[4], 32);
    printf("messages");
    print_bytes("gateway", (lg_slice){out, lg_gateway_message(&h, out)});
    print_bytes("device", (lg_slice){out, lg_device_message(&h, parts[5], out)});
    print_bytes("pairing", (lg_slice){out, lg_pairing_message(&h, parts[5], out)});
    print_bytes("invitation", (lg_slice){out, lg_invitation_message(&h, parts[5], parts[6], out)});
    lg_pairing_code(parts[7], code);
    printf(" code=%s\n", code);
}

int main(int count, char **words) {
    char line[4096];
    if (count != 2) exit(fprintf(stderr, "vectors FOLDER < LIST\n"));
    while (fgets(line, sizeof line, stdin)) {
        static uint8_t bytes[LG_FRAME_BYTES_MAX];
        if (!strncmp(line, "handshake ", 10)) {
            handshake(line);
            continue;
        }
        line[strcspn(line, "\n")] = 0;
        size_t length = read_hex(line, bytes, sizeof bytes);
        printf("%s ", line);
        decode(bytes, length, 0);
        for (size_t end = 0; end < length; end++) {
            /* Of its own size, so that a look behind its end is seen; with a header that fits, so that the body is read. */
            uint8_t *cut = malloc(end ? end : 1);
            memcpy(cut, bytes, end);
            decode(cut, end, 1);
            for (size_t at = 4; at < 8 && end >= 8; at++) cut[at] = (uint8_t)((end - 8) >> 8 * (at - 4));
            decode(cut, end, 1);
            free(cut);
        }
        for (size_t bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            decode(bytes, length, 1);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    write_all(words[1]);
    return 0;
}
