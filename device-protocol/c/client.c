/* Reference client of the protocol in C: pairs, says a WAV file, prints what the display shows, and keeps the speech.
 *
 *   cc -std=c11 -O2 client.c link.c lorgnette.c -lssl -lcrypto -o client
 *   ./client STATE HOST:PORT|[IPV6]:PORT [--invite TEXT] [--say FILE.wav] [--heard FILE.wav] [--wait SECONDS]
 *
 * STATE is a folder for the key of the glasses and that of their gateway. The numbers of sections are those of PROTOCOL.md. Of a
 * session it does what a device must, and leaves out what it may: no resume, no acks, no tools, PCM only. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "link.h"

#define RATE_HZ 16000
#define SPEECH_SAMPLES_MAX (60 * RATE_HZ) /* of one session */
#define SPEECH_US_MAX (60ull * 1000000)
#define SPEECHES_MAX 8
#define CLAUSES_MAX 64 /* of one speech, whose places are known */
#define SAID_SAMPLES_MAX (60 * RATE_HZ)
#define SILENCE_US 2000000     /* behind what is said, so that its end is heard */
#define START_US 60000         /* section 8: buffer before playing */
#define PLAYED_US 100000       /* at least every 200 ms */
#define HANDSHAKE_US 10000000  /* section 6: without pairing */
#define PAIRING_BEAT_US 5000000
#define HEARTBEATS_MISSED_MAX 3 /* section 7: then the link is lost */

static uint64_t zero_us; /* of the session clock */
static uint8_t frame_bytes[LG_FRAME_BYTES_MAX];
static uint8_t device_key[32];
static uint32_t control_sequence, audio_sequence, turn, control_received;
static uint64_t heard_us, held_us; /* time of the gateway's last heartbeat, on its clock and on ours */

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 - zero_us;
}

/* Keys: raw bytes in files that only their owner may read. */

static const char *in_state(const char *state, const char *name) {
    static char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", state, name) >= (int)sizeof path) fail("the path is too long");
    return path;
}

static bool load(const char *path, uint8_t bytes[32]) {
    FILE *file = fopen(path, "rb");
    if (!file && errno == ENOENT) return false;
    if (!file || fread(bytes, 1, 32, file) != 32) fail("%s has no key of 32 bytes", path);
    fclose(file);
    return true;
}

static void save(const char *path, const uint8_t bytes[32]) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0 || write(file, bytes, 32) != 32 || close(file)) fail("%s: %s", path, strerror(errno));
}

/* Frames up. */

static void send_frame(size_t length) { link_send(frame_bytes, length); }
static lg_stamp link_stamp(void) { return (lg_stamp){0, turn, now_us()}; }
static lg_stamp control_stamp(void) { return (lg_stamp){++control_sequence, turn, now_us()}; }

static void send_heartbeat(void) {
    uint64_t held = heard_us ? now_us() - held_us : 0;
    send_frame(lg_write_heartbeat(frame_bytes, sizeof frame_bytes, link_stamp(), heard_us, held));
}

/* The gateway's heartbeat, of which the next one of ours tells. */
static void note_heartbeat(const lg_frame *beat) {
    heard_us = beat->stamp.time_us;
    held_us = now_us();
}

/* Section 10: the close behind it says why, too. */
static void say_goodbye(uint16_t reason) {
    send_frame(lg_write_goodbye(frame_bytes, sizeof frame_bytes, link_stamp(), reason));
    link_close((uint16_t)(4200 + reason));
}

/* The handshake: section 6. Returns with the welcome in `message`. */

/* The value of a key of an invitation: 32 hexadecimal digits. */
static bool invited(const char *text, const char *key, uint8_t out[16]) {
    const char *at = text && !strncmp(text, "lorgnette:pair?v=1&", 19) ? strstr(text, key) : NULL;
    if (at && strspn(at + strlen(key), "0123456789abcdefABCDEF") != 32) return false;
    for (int place = 0; at && place < 16; place++) {
        unsigned byte;
        if (sscanf(at + strlen(key) + 2 * place, "%2x", &byte) != 1) return false;
        out[place] = (uint8_t)byte;
    }
    return at != NULL;
}

static lg_welcome shake(const char *state, const char *invitation, const uint8_t binding[32],
                        uint8_t message[LG_FRAME_BYTES_MAX]) {
    uint8_t nonce[32], bytes[LG_TRANSCRIPT_BYTES_MAX], digest[32], signature[64], pinned[32], fingerprint[16], code[16];
    bool is_paired = load(in_state(state, "gateway.key"), pinned);
    bool is_invited = !is_paired && invited(invitation, "&fp=", fingerprint) && invited(invitation, "&code=", code);
    if (invitation && !is_paired && !is_invited) fail("this is no invitation");
    lg_handshake handshake;
    lg_challenge challenge;
    lg_frame frame;
    random_bytes(nonce, sizeof nonce);
    memcpy(handshake.device_key, device_key, 32);
    memcpy(handshake.binding, binding, 32);
    sha256(nonce, sizeof nonce, handshake.nonce_commitment);
    lg_hello hello = {
        .device_key = device_key, .nonce_commitment = handshake.nonce_commitment,
        .device_id = "c-1", .model = "C reference client", .firmware = "1", .language = "en",
        .capabilities = {.codecs_up = LG_CODECS_PCM16, .codecs_down = LG_CODECS_PCM16, .audio_up_hz = RATE_HZ,
                         .audio_down_hz = RATE_HZ, .display = LG_DISPLAY_KIND_TEXT, .columns = 40, .rows = 6, .speakers = 1},
    };
    send_frame(lg_write_hello(frame_bytes, sizeof frame_bytes, link_stamp(), &hello));
    uint64_t until_us = now_us() + HANDSHAKE_US;
    do { /* section 5: what a later version adds is skipped */
        uint64_t us = now_us();
        if (us >= until_us || !link_receive(&frame, message, (int)((until_us - us) / 1000))) fail("no answer to hello");
    } while ((frame.kind & 0x7000) == 0 && frame.kind > LG_DOWN_GOODBYE);
    if (frame.kind != LG_DOWN_CHALLENGE || !lg_read_challenge(frame.body, &challenge)) fail("no challenge: kind %#x", frame.kind);
    memcpy(handshake.gateway_key, challenge.gateway_key, 32);
    memcpy(handshake.gateway_nonce, challenge.nonce, 32);
    if (!is_signed(challenge.gateway_key, bytes, lg_gateway_message(&handshake, bytes), challenge.signature))
        fail("the gateway's signature is wrong: somebody is in the middle");
    sha256(challenge.gateway_key, 32, digest);
    if ((is_paired && memcmp(pinned, challenge.gateway_key, 32)) || (is_invited && memcmp(fingerprint, digest, 16)))
        fail("this is another gateway");
    key_sign(bytes, lg_device_message(&handshake, nonce, bytes), signature);
    sha256(bytes, is_invited ? lg_invitation_message(&handshake, nonce, code, bytes) : 0, digest);
    send_frame(lg_write_proof(frame_bytes, sizeof frame_bytes, link_stamp(), nonce, signature, is_invited ? digest : NULL));

    bool may_pin = is_invited, is_pairing = false;
    for (uint64_t beat_us = now_us();;) {
        if (now_us() - beat_us >= PAIRING_BEAT_US) {
            send_heartbeat();
            beat_us = now_us();
        }
        if (now_us() >= until_us) fail("no welcome in time");
        if (!link_receive(&frame, message, 500)) continue;
        is_pairing |= frame.kind == LG_DOWN_PAIRING_CODE;
        /* A person takes longer, beside the gateway's heartbeats. */
        if (is_pairing) until_us = now_us() + HEARTBEATS_MISSED_MAX * PAIRING_BEAT_US;
        if (frame.kind == LG_DOWN_HEARTBEAT) {
            note_heartbeat(&frame);
        } else if (frame.kind == LG_DOWN_PAIRING_CODE && !may_pin) {
            char shown[7];
            sha256(bytes, lg_pairing_message(&handshake, nonce, bytes), digest);
            lg_pairing_code(digest, shown);
            printf("pairing code %s\n", shown);
            may_pin = true;
        } else if (frame.kind == LG_DOWN_REJECT) {
            uint16_t why = lg_get_u16(&frame.body);
            lg_slice words = lg_get_text(&frame.body, 256);
            fail("rejected (%u): %.*s", why, (int)words.length, words.bytes);
        } else if (frame.kind == LG_DOWN_WELCOME) {
            lg_welcome welcome;
            if (!lg_read_welcome(frame.body, &welcome)) fail("a malformed welcome");
            if (!is_paired && !may_pin) fail("a welcome without pairing");
            if (!is_paired) save(in_state(state, "gateway.key"), challenge.gateway_key);
            return welcome;
        }
    }
}

/* WAV files: one channel of 16 bits at RATE_HZ. */

static size_t read_wav(const char *path, int16_t *samples) {
    uint8_t head[8];
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 12, SEEK_SET)) fail("%s: %s", path, strerror(errno));
    for (;;) {
        if (fread(head, 1, 8, file) != 8) fail("%s has no sound", path);
        uint32_t length = head[4] | (uint32_t)head[5] << 8 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 24;
        uint8_t form[16];
        if (!memcmp(head, "data", 4)) break;
        bool is_form = !memcmp(head, "fmt ", 4) && length >= 16 && fread(form, 1, 16, file) == 16;
        if (is_form && (form[0] != 1 || form[2] != 1 || (form[4] | form[5] << 8) != RATE_HZ || form[14] != 16))
            fail("%s must have one channel of 16 bits at %d Hz", path, RATE_HZ);
        if (fseek(file, (long)(length + (length & 1)) - (is_form ? 16 : 0), SEEK_CUR)) fail("%s is damaged", path);
    }
    size_t count = fread(samples, 2, SAID_SAMPLES_MAX, file); /* on a little-endian machine, as all of these are */
    fclose(file);
    return count;
}

static void write_wav(const char *path, const int16_t *samples, size_t count) {
    uint32_t bytes = (uint32_t)(2 * count), riff = bytes + 36, numbers[] = {16, 1 << 16 | 1, RATE_HZ, 2 * RATE_HZ, 16 << 16 | 2};
    FILE *file = fopen(path, "wb");
    bool done = file && fwrite("RIFF", 4, 1, file) && fwrite(&riff, 4, 1, file) && fwrite("WAVEfmt ", 8, 1, file) &&
                fwrite(numbers, sizeof numbers, 1, file) && fwrite("data", 4, 1, file) && fwrite(&bytes, 4, 1, file) &&
                fwrite(samples, 2, count, file) == count && !fclose(file);
    if (!done) fail("%s: %s", path, strerror(errno));
}

/* The speaker: sections 8 and 11. It plays in real time, and says what came out. */

static struct speech {
    uint32_t number, turn;
    uint16_t clause, clauses;         /* the one that plays, and how many have come */
    uint64_t starts_us[CLAUSES_MAX]; /* where they begin */
    size_t base; /* its place in `heard` */
    uint64_t from_us, buffered_us, played_us, length_us, told_us;
    bool plays, is_complete;
} speeches[SPEECHES_MAX]; /* the first one plays, the others wait for it */
static unsigned waiting, finished;
static int16_t heard[SPEECH_SAMPLES_MAX];
static size_t heard_length;

static void tell(struct speech *speech, uint8_t state) {
    lg_stamp stamp = {++control_sequence, speech->turn, now_us()}; /* section 4: the turn of the speech, not the latest */
    speech->told_us = stamp.time_us;
    send_frame(lg_write_played(frame_bytes, sizeof frame_bytes, stamp, speech->number, speech->clause, speech->played_us,
                               state));
    if (state != LG_PLAY_STATE_FINISHED && state != LG_PLAY_STATE_STOPPED) return;
    finished += state == LG_PLAY_STATE_FINISHED;
    memmove(speech, speech + 1, (size_t)(speeches + --waiting - speech) * sizeof *speech);
}

static struct speech *find(uint32_t number) {
    for (unsigned at = 0; at < waiting; at++)
        if (speeches[at].number == number) return &speeches[at];
    return NULL;
}

static void keep(const lg_speech_chunk *chunk) {
    struct speech *speech = find(chunk->speech);
    if (!speech) return;
    speech->buffered_us = chunk->position_us + chunk->duration_us;
    while (speech->clauses < CLAUSES_MAX && speech->clauses <= chunk->clause)
        speech->starts_us[speech->clauses++] = chunk->position_us;
    /* Played all the same: only the file has an end. */
    if (chunk->position_us > SPEECH_US_MAX) return;
    size_t at = speech->base + (size_t)(chunk->position_us * RATE_HZ / 1000000), count = chunk->payload.length / 2;
    if (at + count > SPEECH_SAMPLES_MAX) return;
    memcpy(heard + at, chunk->payload.bytes, 2 * count);
    if (at + count > heard_length) heard_length = at + count;
}

static void play(void) {
    struct speech *speech = speeches;
    if (waiting == 0) return;
    if (!speech->plays) {
        if (speech->buffered_us < speech->played_us + START_US && !speech->is_complete) return;
        speech->plays = true;
        speech->from_us = now_us() - speech->played_us;
        tell(speech, LG_PLAY_STATE_PLAYING);
    }
    uint64_t reached = now_us() - speech->from_us, end = speech->is_complete ? speech->length_us : speech->buffered_us;
    speech->played_us = reached < end ? reached : end;
    bool begins = false;
    while (speech->clause + 1 < speech->clauses && speech->starts_us[speech->clause + 1] < speech->played_us) {
        speech->clause++;
        begins = true;
    }
    if (speech->is_complete && speech->played_us == speech->length_us) {
        tell(speech, LG_PLAY_STATE_FINISHED);
    } else if (reached > end) {
        speech->plays = false;
        tell(speech, LG_PLAY_STATE_STARVED);
    } else if (begins || now_us() - speech->told_us >= PLAYED_US) {
        tell(speech, LG_PLAY_STATE_PLAYING);
    }
}

/* A session. */

/* Section 4: what came before is dropped, and one that is left out ends the session. */
static bool is_next(const lg_frame *frame) {
    if ((frame->kind & 0x7000) != 0x1000) return true;
    if (frame->stamp.sequence <= control_received) return false;
    if (frame->stamp.sequence != control_received + 1) {
        say_goodbye(LG_GOODBYE_REASON_BAD_SEQUENCE);
        fail("control frame %u follows %u", (unsigned)frame->stamp.sequence, (unsigned)control_received);
    }
    control_received = frame->stamp.sequence;
    return true;
}

static void take(lg_frame *frame) {
    lg_reader *body = &frame->body;
    lg_display display;
    lg_speech_chunk chunk;
    if (!is_next(frame)) return;
    if ((frame->kind & 0x7000) == 0x1000 && frame->stamp.turn > turn) turn = frame->stamp.turn;
    switch (frame->kind) {
    case LG_DOWN_HEARTBEAT:
        note_heartbeat(frame);
        break;
    case LG_DOWN_DISPLAY:
        if (!lg_read_display(*body, &display)) fail("a malformed display");
        if (display.action == LG_DISPLAY_ACTION_CLEAR || display.view != LG_VIEW_MAIN) break;
        printf("display: %.*s", (int)display.first.length, display.first.bytes);
        printf("%s%.*s\n", display.second.length ? " | " : "", (int)display.second.length, display.second.bytes);
        break;
    case LG_DOWN_TRANSCRIPT: {
        lg_get_u32(body), lg_get_u32(body);
        bool is_final = lg_get_bool(body), addressed = lg_get_bool(body);
        lg_slice text = lg_get_text(body, 8192);
        if (is_final && addressed) printf("heard: %.*s\n", (int)text.length, text.bytes);
        break;
    }
    case LG_DOWN_SPEECH_START:
        if (waiting == SPEECHES_MAX) fail("too many speeches");
        speeches[waiting++] = (struct speech){.number = lg_get_u32(body), .turn = frame->stamp.turn, .base = heard_length};
        if (lg_get_u8(body) != LG_CODEC_PCM16 || lg_get_u32(body) != RATE_HZ) fail("speech in another format");
        break;
    case LG_DOWN_SPEECH_CHUNK:
        if (!lg_read_speech_chunk(*body, &chunk)) fail("a malformed chunk");
        keep(&chunk);
        break;
    case LG_DOWN_SPEECH_END: {
        struct speech *speech = find(lg_get_u32(body));
        lg_get_u32(body);
        uint64_t length_us = lg_get_u64(body);
        if (speech) speech->length_us = length_us, speech->is_complete = true;
        break;
    }
    case LG_DOWN_HUSH: {
        uint32_t which = lg_get_u32(body);
        for (unsigned at = waiting; at-- > 0;)
            if (which == 0 || speeches[at].number == which) tell(&speeches[at], LG_PLAY_STATE_STOPPED);
        break;
    }
    case LG_DOWN_FIRMWARE_OFFER: {
        /* This client announces no room for an image, so that none is offered. Who offers one all the same is told. */
        lg_firmware_offer offer;
        if (!lg_read_firmware_offer(*body, &offer)) fail("a malformed offer");
        send_frame(lg_write_firmware_answer(frame_bytes, sizeof frame_bytes, control_stamp(), offer.update,
                                            LG_UPDATE_ANSWER_NOT_WANTED, 0));
        break;
    }
    case LG_DOWN_GOODBYE: /* the close behind it ends this program */
        fprintf(stderr, "goodbye (%u)\n", lg_get_u16(body));
        break;
    default: /* what a device does not know, or need not: section 5 */
        break;
    }
    if (body->failed) fail("a malformed frame of kind %#x", frame->kind);
}

int main(int count, char **words) {
    const char *invitation = NULL, *say = NULL, *keep_in = NULL;
    uint64_t wait_us = 0;
    if (count < 3 || count % 2 == 0)
        fail("STATE HOST:PORT|[IPV6]:PORT [--invite TEXT] [--say WAV] [--heard WAV] [--wait SECONDS]");
    for (int at = 3; at + 1 < count; at += 2) {
        if (!strcmp(words[at], "--invite")) invitation = words[at + 1];
        else if (!strcmp(words[at], "--say")) say = words[at + 1];
        else if (!strcmp(words[at], "--heard")) keep_in = words[at + 1];
        else if (!strcmp(words[at], "--wait")) wait_us = strtoull(words[at + 1], NULL, 10) * 1000000;
        else fail("%s is no option", words[at]);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    static int16_t said[SAID_SAMPLES_MAX];
    size_t said_length = say ? read_wav(say, said) : 0;
    uint8_t seed[32], binding[32];
    mkdir(words[1], 0700);
    if (!load(in_state(words[1], "device.key"), seed)) {
        random_bytes(seed, sizeof seed);
        save(in_state(words[1], "device.key"), seed);
    }
    key_use(seed, device_key);

    static uint8_t message[LG_FRAME_BYTES_MAX];
    zero_us = now_us();
    link_open(words[2], binding);
    lg_welcome welcome = shake(words[1], invitation, binding, message);
    printf("welcomed by %.*s; the glasses belong to %.*s\n", (int)welcome.gateway_name.length, welcome.gateway_name.bytes,
           (int)welcome.user_name.length, welcome.user_name.bytes);
    if (welcome.audio_up.codec != LG_CODEC_PCM16 || welcome.audio_up.rate_hz != RATE_HZ) fail("sound in another format");

    const uint64_t packet_us = (uint64_t)welcome.audio_up.frame_ms * 1000, beat_every_us = (uint64_t)welcome.heartbeat_ms * 1000;
    const size_t packet = (size_t)(packet_us * RATE_HZ / 1000000);
    const uint64_t said_us = say ? (uint64_t)said_length * 1000000 / RATE_HZ + SILENCE_US : 0, begin_us = now_us();
    uint64_t captured_us = begin_us, beat_us = begin_us, received_us = begin_us;
    bool has_ended = !say;
    int16_t samples[48000 * 60 / 1000];
    if (packet == 0 || packet > sizeof samples / sizeof *samples) fail("packets of %u ms", welcome.audio_up.frame_ms);
    if (beat_every_us == 0) fail("a heartbeat every 0 ms");
    while (now_us() < begin_us + said_us + wait_us && !(has_ended && finished && waiting == 0)) {
        lg_frame frame;
        if (link_receive(&frame, message, 5)) { /* one at a time: who sends many does not hold up the microphone */
            received_us = now_us();
            take(&frame);
        }
        play();
        for (; captured_us - begin_us < said_us && captured_us + packet_us <= now_us(); captured_us += packet_us) {
            size_t from = (size_t)((captured_us - begin_us) * RATE_HZ / 1000000);
            for (size_t at = 0; at < packet; at++) samples[at] = from + at < said_length ? said[from + at] : 0;
            lg_stamp stamp = {++audio_sequence, turn, captured_us};
            send_frame(lg_write_audio(frame_bytes, sizeof frame_bytes, stamp, LG_CODEC_PCM16, RATE_HZ, (uint32_t)packet_us,
                                      samples, 2 * packet));
        }
        if (!has_ended && captured_us - begin_us >= said_us) {
            send_frame(lg_write_audio_end(frame_bytes, sizeof frame_bytes, control_stamp(), audio_sequence,
                                          LG_MIC_END_RELEASED));
            has_ended = true;
        }
        if (now_us() - beat_us >= beat_every_us) {
            send_heartbeat();
            beat_us = now_us();
        }
        if (now_us() - received_us > HEARTBEATS_MISSED_MAX * beat_every_us) fail("the gateway is silent");
    }
    say_goodbye(LG_GOODBYE_REASON_POWER_OFF);
    if (keep_in) write_wav(keep_in, heard, heard_length);
    if (say) printf("%u speeches, %zu ms\n", finished, heard_length * 1000 / RATE_HZ);
    return 0;
}
