// The session, which outlives its connections (PROTOCOL.md section 9): its clock, and its frames, which are kept until
// the gateway has them and sent again over the next connection.

import { classOf, encode } from "./link.js";
import { Sequences } from "./sequences.js";

/** What a gateway that was restarted is sent again. */
const OF_THE_WEARER = ["audio", "audio_end", "button", "touch", "mute", "head_position", "text_input"];
/** Replayed sound is sent so many times as fast as it was captured. */
const REPLAY_SPEED = 4;
const REPLAY_TICK_MS = 10;
/** A replay that was held up makes up for so much of its time at once. */
const REPLAY_BURST_MS = 40;

export class Session {
  /** null: the link is lost, or there is no session. */
  #link = null;
  /** null: there is no session. */
  #sequences = null;
  /** The secret to resume with, in base64; empty: there is none. */
  #token = "";
  #hasMicrophone = false;
  #beganMs = performance.now();
  #turn = 0;
  /**
   * What is sent again, and behind it what is newer, as { text, soundUs }: at first what is kept, then it grows more
   * slowly than it is sent.
   */
  #replay = [];
  #replayMs = 0;
  #replayTimer = null;
  #hasLost = false;
  /** When the link was lost last, on this session's clock. */
  #lostUs = 0;

  /** Whether there is a session, be it that its link is lost. */
  get isOpen() {
    return this.#sequences !== null;
  }

  /** Whether the session may go on over another connection. */
  get canResume() {
    return this.#token !== "" && (this.#sequences?.canResume ?? false);
  }

  /** Whether the session went on last without sound that was too old to be kept. */
  get hasLost() {
    return this.#hasLost;
  }

  /** The latest turn that is known. */
  get turn() {
    return this.#turn;
  }

  get roundTripMs() {
    return this.#link?.roundTripMs ?? null;
  }

  /** Microseconds on this session's clock. */
  nowUs() {
    return this.toUs(performance.now());
  }

  /** A reading of performance.now() on this session's clock. */
  toUs(milliseconds) {
    return Math.max(0, Math.round((milliseconds - this.#beganMs) * 1000));
  }

  /**
   * Before each connection: what `hello` says, as { resume, hasMicrophone }. A session that goes on has the
   * capabilities that it began with.
   */
  ask(hasMicrophone) {
    if (!this.isOpen) {
      this.#beganMs = performance.now();
    }
    if (!this.canResume) {
      this.#hasMicrophone = hasMicrophone;
      return { resume: null, hasMicrophone };
    }
    const { control, audio } = this.#sequences.received;
    const resume = { token: this.#token, control_received: control, audio_received: audio };
    return { resume, hasMicrophone: this.#hasMicrophone };
  }

  /**
   * A connection is welcomed: the session is "resumed", "continued" in a new one by a gateway that was restarted, or a
   * "new" one begins.
   */
  attach(link, { resume_token: token, resumed, continued }) {
    const before = this.#sequences;
    this.detach();
    this.#link = link;
    this.#token = token;
    link.ontick = () => this.#tick();
    this.#replayMs = performance.now();
    this.#hasLost = false;
    if (before && resumed) {
      this.#hasLost = before.hasLostBehind(resumed.audio_received);
      this.#replay = before.replay(resumed.control_received, resumed.audio_received);
      this.#sendReplay();
      return "resumed";
    }
    const goesOn = before && continued;
    this.#sequences = new Sequences(token !== "", goesOn ? before.dealtWithUs : 0);
    this.#turn = 0;
    if (!goesOn) {
      return "new";
    }
    this.#hasLost = before.hasLostSince(continued.sound_until_us);
    // By its time the gateway knows how old the sound is that comes behind it.
    link.send("heartbeat", { echo_us: 0, held_us: 0 });
    for (const frame of before.notDealtWith(continued)) {
      this.#repeat(JSON.parse(frame.text));
    }
    this.#sendReplay();
    return "continued";
  }

  /** Queues what the wearer did before, as a frame of this session. */
  #repeat({ kind, kind_number: _, sequence: __, turn: ___, time_us: timeUs, ...fields }) {
    if (OF_THE_WEARER.includes(kind)) {
      if (kind === "audio_end") {
        fields.last_audio_sequence = this.#sequences.lastAudio;
      }
      this.#replay.push(this.#numbered(kind, fields, 0, timeUs));
    }
  }

  /** The link is lost. From now on frames are only kept. */
  detach() {
    clearTimeout(this.#replayTimer);
    this.#lostUs = this.#link ? this.nowUs() : this.#lostUs;
    this.#link = null;
    this.#replay = [];
  }

  /** Ends the session for good. */
  end(reason, message) {
    const link = this.#link;
    this.detach();
    this.#sequences = null;
    this.#token = "";
    link?.close(reason, message);
  }

  /** Sends a message of the session, or keeps it until there is a link. */
  send(kind, fields, { turn = this.#turn, timeUs = this.nowUs() } = {}) {
    if (!this.isOpen) {
      return;
    }
    const frame = this.#numbered(kind, fields, turn, timeUs);
    if (this.#replay.length > 0) {
      this.#replay.push(frame);
      // What is new keeps the replay going where timers are slow: in a hidden page.
      this.#sendReplay();
    } else {
      this.#link?.put(frame.text, frame.soundUs > 0);
    }
  }

  /** What was typed while the link is lost, and has certainly not reached the gateway. */
  get unsentTexts() {
    const frames = this.#link ? [] : (this.#sequences?.controlSince(this.#lostUs) ?? []);
    const fields = frames.map(({ text }) => JSON.parse(text));
    return fields.filter(({ kind }) => kind === "text_input").map(({ text }) => text);
  }

  /** The next frame of the session, which is kept. */
  #numbered(kind, fields, turn, timeUs) {
    const frameClass = classOf(kind);
    const sequence = this.#sequences.next(frameClass);
    const text = encode(kind, { sequence, turn, timeUs }, fields);
    const frame = { sequence, timeUs, text, soundUs: frameClass === "audio" ? fields.duration_us : 0 };
    this.#sequences.keep(frameClass, frame);
    return frame;
  }

  /** The microphone pauses. */
  endSound(reason) {
    this.send("audio_end", { last_audio_sequence: this.#sequences?.lastAudio ?? 0, reason });
  }

  /** Takes a frame of the gateway; whether it is one for the wearer, and new. */
  handle(frame) {
    if (frame.kind === "ack") {
      this.#sequences?.acknowledged(frame.control, frame.sound_until_us);
      return false;
    }
    const frameClass = classOf(frame.kind, frame.kind_number);
    if (frameClass === "link" || !this.isOpen) {
      return this.isOpen;
    }
    const verdict = this.#sequences.receive(frameClass, frame.sequence, performance.now());
    if (verdict === "gap") {
      this.#link?.close("bad_sequence", `control frame ${frame.sequence} came too early`);
    }
    if (verdict !== "new") {
      return false;
    }
    if (frameClass === "control") {
      this.#turn = Math.max(this.#turn, frame.turn);
    }
    this.#acknowledge();
    return true;
  }

  #tick() {
    this.#acknowledge();
    this.#sendReplay();
  }

  #acknowledge() {
    const ack = this.#link && this.#sequences.takeAck(performance.now());
    if (ack) {
      this.#link.send("ack", ack);
    }
  }

  #sendReplay() {
    clearTimeout(this.#replayTimer);
    const nowMs = performance.now();
    this.#replayMs = Math.max(this.#replayMs, nowMs - REPLAY_BURST_MS);
    while (this.#replay.length > 0 && this.#replayMs <= nowMs) {
      const { text, soundUs } = this.#replay.shift();
      this.#replayMs += soundUs / 1000 / REPLAY_SPEED;
      this.#link.put(text, soundUs > 0);
    }
    if (this.#replay.length > 0) {
      this.#replayTimer = setTimeout(() => this.#sendReplay(), REPLAY_TICK_MS);
    }
  }
}
