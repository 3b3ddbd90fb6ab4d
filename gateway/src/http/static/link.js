// One connection in the JSON form: stamps, sequences, acknowledgements, heartbeats.

const SUBPROTOCOL = "lorgnette.v1+json";
/** Kind numbers of what this page sends (PROTOCOL.md section 13). */
const KINDS = {
  hello: 0x0001,
  proof: 0x0002,
  heartbeat: 0x0003,
  ack: 0x0004,
  goodbye: 0x0005,
  audio_end: 0x1001,
  played: 0x1002,
  button: 0x1003,
  touch: 0x1004,
  head_position: 0x1005,
  mute: 0x1008,
  approval_answer: 0x1009,
  tool_list: 0x100a,
  tool_result: 0x100b,
  text_input: 0x100d,
  audio: 0x2001,
};
const CLASS_CONTROL = 1;
const CLASS_AUDIO = 2;
/** Section 7: what may stay unacknowledged. */
const ACK_CONTROL_MAX = 16;
const ACK_AUDIO_MAX = 50;
const ACK_MS_MAX = 1000;
const HEARTBEAT_MS_PAIRING = 5000;
const HEARTBEATS_MISSED_MAX = 3;
/** More than this in the socket means that the gateway no longer keeps up: sound is dropped. */
const BUFFERED_BYTES_MAX = 256 * 1024;

function classOf(kindNumber) {
  return (kindNumber >> 12) & 7;
}

/** A link to the gateway; `onframe(frame)` gets what is new, `onclose(code, reason)` the end. */
export class Link {
  #socket;
  #began = performance.now();
  #sent = { control: 0, audio: 0 };
  #received = { control: 0, audio: 0 };
  #acked = { control: 0, audio: 0 };
  #newSinceMs = null;
  #turn = 0;
  #heartbeatMs = HEARTBEAT_MS_PAIRING;
  #beatSentMs = performance.now();
  #beatReceived = null;
  #heardMs = performance.now();
  #ticker = null;

  constructor(url, onframe, onclose) {
    this.roundTripMs = null;
    this.soundDropped = 0;
    this.#socket = new WebSocket(url, SUBPROTOCOL);
    this.#socket.onmessage = (event) => this.#handle(event.data, onframe);
    this.#socket.onclose = (event) => {
      clearInterval(this.#ticker);
      onclose(event.code, event.reason);
    };
    this.opened = new Promise((resolve) => {
      this.#socket.onopen = resolve;
    });
  }

  /** Microseconds on this session's clock. */
  nowUs() {
    return this.toUs(performance.now());
  }

  /** A reading of performance.now() on this session's clock. */
  toUs(milliseconds) {
    return Math.max(0, Math.round((milliseconds - this.#began) * 1000));
  }

  /** Heartbeats begin; before the welcome at the pace of pairing. */
  keepAlive(heartbeatMs = HEARTBEAT_MS_PAIRING) {
    this.#heartbeatMs = heartbeatMs;
    clearInterval(this.#ticker);
    this.#ticker = setInterval(() => this.tick(), 250);
  }

  send(kind, fields, { turn = this.#turn, timeUs = this.nowUs() } = {}) {
    if (this.#socket.readyState !== WebSocket.OPEN) {
      return;
    }
    const number = KINDS[kind];
    let sequence = 0;
    if (classOf(number) === CLASS_AUDIO) {
      // The number counts all the same: the gateway sees a gap and conceals it.
      sequence = this.#sent.audio += 1;
      if (this.#socket.bufferedAmount > BUFFERED_BYTES_MAX) {
        this.soundDropped += 1;
        return;
      }
    } else if (classOf(number) === CLASS_CONTROL) {
      sequence = this.#sent.control += 1;
    }
    const stamp = { kind, kind_number: number, sequence, turn, time_us: timeUs };
    this.#socket.send(JSON.stringify({ ...stamp, ...fields }));
  }

  get lastAudioSequence() {
    return this.#sent.audio;
  }

  /** What is due. Called by a timer, and by the microphone: timers of a hidden page are slowed. */
  tick() {
    const now = performance.now();
    if (now - this.#heardMs > this.#heartbeatMs * HEARTBEATS_MISSED_MAX) {
      this.close("silent", "nothing was heard of the gateway");
      return;
    }
    if (now - this.#beatSentMs >= this.#heartbeatMs) {
      this.#beatSentMs = now;
      const last = this.#beatReceived;
      this.send("heartbeat", {
        echo_us: last ? last.timeUs : 0,
        held_us: last ? Math.round((now - last.atMs) * 1000) : 0,
      });
    }
    if (this.#newSinceMs !== null && now - this.#newSinceMs >= ACK_MS_MAX) {
      this.#acknowledge();
    }
  }

  /** Ends the session with a reason. */
  close(reason, message) {
    this.send("goodbye", { reason, message, retry_after_ms: 0 });
    this.#socket.close(1000);
  }

  #handle(text, onframe) {
    if (typeof text !== "string") {
      this.close("malformed", "a binary message where JSON was agreed");
      return;
    }
    this.#heardMs = performance.now();
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      this.close("malformed", "a message that is no JSON");
      return;
    }
    if (!this.#count(frame)) {
      return;
    }
    if (frame.kind === "heartbeat") {
      this.#beatReceived = { timeUs: frame.time_us, atMs: this.#heardMs };
      if (frame.echo_us > 0) {
        this.roundTripMs = (this.nowUs() - frame.echo_us - frame.held_us) / 1000;
      }
      return;
    }
    onframe(frame);
  }

  /** Counts the sequence; whether the frame is new and in order. */
  #count(frame) {
    const frameClass = classOf(frame.kind_number);
    if (frameClass === CLASS_CONTROL) {
      if (frame.sequence <= this.#received.control) {
        return false;
      }
      if (frame.sequence !== this.#received.control + 1) {
        this.close("bad_sequence", `control frame ${frame.sequence} came too early`);
        return false;
      }
      this.#received.control = frame.sequence;
      this.#turn = Math.max(this.#turn, frame.turn);
    } else if (frameClass === CLASS_AUDIO) {
      this.#received.audio = Math.max(this.#received.audio, frame.sequence);
    } else {
      return true;
    }
    this.#newSinceMs ??= this.#heardMs;
    const controls = this.#received.control - this.#acked.control;
    const sounds = this.#received.audio - this.#acked.audio;
    if (controls >= ACK_CONTROL_MAX || sounds >= ACK_AUDIO_MAX) {
      this.#acknowledge();
    }
    return true;
  }

  #acknowledge() {
    this.#acked = { ...this.#received };
    this.#newSinceMs = null;
    this.send("ack", this.#acked);
  }
}
