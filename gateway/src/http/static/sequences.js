// The frames of one session, both ways: their numbers, what is kept for a replay, and what is acknowledged
// (PROTOCOL.md sections 4, 7 and 9). Time is an argument, in milliseconds.

/** Control frames that are kept until they are acknowledged, and their characters. */
const CONTROL_FRAMES_MAX = 256;
const CONTROL_CHARACTERS_MAX = 256 * 1024;
/** Microphone sound that is kept, by its capture times; of a gateway that says with what it has dealt, the rest. */
const SOUND_KEPT_US = 10e6;
const OPEN_SOUND_KEPT_US = 30e6;
/** What may stay unacknowledged. */
const ACK_CONTROL_MAX = 16;
const ACK_AUDIO_MAX = 50;
const ACK_MS_MAX = 1000;

export class Sequences {
  /** Whether frames are kept: not where the gateway resumes nothing. */
  #keeps;
  #sent = { control: 0, audio: 0 };
  #received = { control: 0, audio: 0 };
  #acknowledged = { control: 0, audio: 0 };
  /** When the oldest frame came that is not acknowledged. */
  #newSinceMs = null;
  /** Kept frames as { sequence, timeUs, soundUs, text }. */
  #control = [];
  #characters = 0;
  #audio = [];
  #overflowed = false;
  /** The last sound that was dropped because it was too old, as { sequence, timeUs }. */
  #dropped = null;
  /** Capture time before which the gateway has dealt with all sound; 0: it says nothing of that. */
  #dealtWithUs;

  /** `dealtWithUs`: that of the session with which this one goes on after a restart. */
  constructor(keeps, dealtWithUs = 0) {
    this.#keeps = keeps;
    this.#dealtWithUs = dealtWithUs;
  }

  get dealtWithUs() {
    return this.#dealtWithUs;
  }

  /** Number of the next frame of "control" or "audio". */
  next(frameClass) {
    return (this.#sent[frameClass] += 1);
  }

  get lastAudio() {
    return this.#sent.audio;
  }

  /** Last control sequence without a gap and highest audio sequence, as { control, audio }. */
  get received() {
    return { ...this.#received };
  }

  /** Whether nothing is missing that a replay might need. */
  get canResume() {
    return this.#keeps && !this.#overflowed;
  }

  /** Keeps a sent frame until it is acknowledged. */
  keep(frameClass, frame) {
    if (!this.#keeps) {
      return;
    }
    if (frameClass === "audio") {
      this.#audio.push(frame);
      const mostUs = this.#dealtWithUs > 0 ? OPEN_SOUND_KEPT_US : SOUND_KEPT_US;
      while (this.#audio[0].timeUs + mostUs < frame.timeUs) {
        const { sequence, timeUs } = this.#audio.shift();
        this.#dropped = { sequence, timeUs };
      }
      return;
    }
    this.#control.push(frame);
    this.#characters += frame.text.length;
    while (this.#control.length > CONTROL_FRAMES_MAX || this.#characters > CONTROL_CHARACTERS_MAX) {
      this.#characters -= this.#control.shift().text.length;
      this.#overflowed = true;
    }
  }

  /** The gateway has every control frame up to this one, and has dealt with the sound before this time (0: nothing new). */
  acknowledged(control, soundUntilUs = 0) {
    while (this.#control.length > 0 && this.#control[0].sequence <= control) {
      this.#characters -= this.#control.shift().text.length;
    }
    // Other sound is kept, whether the gateway has it or not: one that is restarted may ask for it.
    this.#dealtWithUs = Math.max(this.#dealtWithUs, soundUntilUs);
    while (this.#audio.length > 0 && this.#audio[0].timeUs < this.#dealtWithUs) {
      this.#audio.shift();
    }
  }

  /** Control frames of this time and later that are kept. */
  controlSince(timeUs) {
    return this.#control.filter((frame) => frame.timeUs >= timeUs);
  }

  /** Whether sound was too old to be kept which a gateway lacks that has received this much. */
  hasLostBehind(audio) {
    return this.#dropped !== null && this.#dropped.sequence > audio;
  }

  /** Whether sound was too old to be kept with which a restarted gateway has not dealt, as far as that is known. */
  hasLostSince(soundUntilUs) {
    const isKnown = this.#dropped !== null && this.#dealtWithUs > 0;
    return isKnown && this.#dropped.timeUs >= Math.max(this.#dealtWithUs, soundUntilUs);
  }

  /** What the gateway lacks, in the order of times, so that it meets everything where it stood. */
  replay(control, audio) {
    return this.#after(control, ({ sequence }) => sequence > audio);
  }

  /** What a gateway that was restarted has not dealt with, in the same order. */
  notDealtWith({ control_received: control, sound_until_us: soundUntilUs }) {
    return this.#after(control, ({ timeUs }) => timeUs >= soundUntilUs);
  }

  #after(control, lacks) {
    const frames = [];
    const sound = this.#audio.filter(lacks);
    for (const frame of this.#control.filter(({ sequence }) => sequence > control)) {
      while (sound.length > 0 && sound[0].timeUs <= frame.timeUs) {
        frames.push(sound.shift());
      }
      frames.push(frame);
    }
    return [...frames, ...sound];
  }

  /** A frame arrived: "new", "again" (a replay of one that is here), or "gap" (one before it is missing). */
  receive(frameClass, sequence, nowMs) {
    if (sequence <= this.#received[frameClass]) {
      return "again";
    }
    if (frameClass === "control" && sequence !== this.#received.control + 1) {
      return "gap";
    }
    this.#received[frameClass] = sequence;
    this.#newSinceMs ??= nowMs;
    return "new";
  }

  /** The `ack` that is due, or null. */
  takeAck(nowMs) {
    const controls = this.#received.control - this.#acknowledged.control;
    const sounds = this.#received.audio - this.#acknowledged.audio;
    const isLate = this.#newSinceMs !== null && nowMs - this.#newSinceMs >= ACK_MS_MAX;
    if (!this.#keeps || !(isLate || controls >= ACK_CONTROL_MAX || sounds >= ACK_AUDIO_MAX)) {
      return null;
    }
    this.#acknowledged = this.received;
    this.#newSinceMs = null;
    return this.received;
  }
}
