// One connection in the JSON form: frames, heartbeats, and whether the gateway is still there.

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
/** By their number; others are not counted. */
const CLASSES = ["link", "control", "audio"];
const HEARTBEAT_MS_PAIRING = 5000;
const HEARTBEATS_MISSED_MAX = 3;
/** More than this in the socket means that the gateway no longer keeps up: sound is dropped. */
const BUFFERED_BYTES_MAX = 256 * 1024;
/** Close codes of this side (RFC 6455): nothing more is to be said; the link is lost. */
const CLOSE_NORMAL = 1000;
const CLOSE_LOST = 1006;

/** Ticks for all links of the page, from the first one on. */
let ticker = null;

/** Browsers slow the timers of a hidden page down to one a minute, and those of a worker not at all. */
function startedTicker() {
  ticker ??= new Worker("/try/ticker.js");
  return ticker;
}

/** The class of a message: "link", "control" or "audio". */
export function classOf(kind, kindNumber = KINDS[kind]) {
  return CLASSES[(kindNumber >> 12) & 7] ?? "link";
}

/** A message as the text of a frame. */
export function encode(kind, { sequence, turn, timeUs }, fields) {
  return JSON.stringify({ kind, kind_number: KINDS[kind], sequence, turn, time_us: timeUs, ...fields });
}

/**
 * A link to the gateway, with the clock and the turn of its session. `onframe(frame)` gets every frame but heartbeats,
 * `onclose(code, reason, isOver)` the end, once; `isOver`: one side said goodbye for good.
 */
export class Link {
  #socket;
  #session;
  #onclose;
  #heartbeatMs = HEARTBEAT_MS_PAIRING;
  #beatSentMs = performance.now();
  #beatReceived = null;
  #heardMs = performance.now();
  #ontick = () => this.tick();
  #isOver = false;

  constructor(url, session, onframe, onclose) {
    this.#session = session;
    this.#onclose = onclose;
    this.roundTripMs = null;
    /** Called with each tick of a link that stands. */
    this.ontick = () => {};
    this.#socket = new WebSocket(url, SUBPROTOCOL);
    this.#socket.onmessage = (event) => this.#handle(event.data, onframe);
    this.#socket.onclose = (event) => this.#end(event.code, event.reason);
    this.opened = new Promise((resolve) => {
      this.#socket.onopen = resolve;
    });
  }

  /** Heartbeats begin; before the welcome at the pace of pairing. */
  keepAlive(heartbeatMs = HEARTBEAT_MS_PAIRING) {
    this.#heartbeatMs = heartbeatMs;
    // The same function is added once only.
    startedTicker().addEventListener("message", this.#ontick);
  }

  /** Sends a message of the link itself, which has no sequence. */
  send(kind, fields, turn = this.#session.turn) {
    this.put(encode(kind, { sequence: 0, turn, timeUs: this.#session.nowUs() }, fields));
  }

  /** Sends a frame. Sound is left out if too much waits: the gateway sees a gap and conceals it. */
  put(text, isSound = false) {
    const isFull = isSound && this.#socket.bufferedAmount > BUFFERED_BYTES_MAX;
    if (this.#socket.readyState === WebSocket.OPEN && !isFull) {
      this.#socket.send(text);
    }
  }

  /** What is due. */
  tick() {
    const now = performance.now();
    if (now - this.#heardMs > this.#heartbeatMs * HEARTBEATS_MISSED_MAX) {
      // Without a goodbye: the session may go on. No close frame would arrive either, so that none is waited for.
      this.#end(CLOSE_LOST, "nothing was heard of the gateway");
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
    this.ontick();
  }

  /** Ends the session with a reason. */
  close(reason, message) {
    this.#isOver = true;
    this.send("goodbye", { reason, message, retry_after_ms: 0 });
    this.#end(CLOSE_NORMAL, message);
  }

  /** Closes a connection that no session has. Nothing is said: before the welcome there is no goodbye. */
  drop() {
    this.#end(CLOSE_NORMAL, "");
  }

  #end(code, reason) {
    ticker?.removeEventListener("message", this.#ontick);
    this.#socket.onmessage = null;
    this.#socket.onclose = null;
    this.#socket.close(CLOSE_NORMAL);
    const onclose = this.#onclose;
    this.#onclose = () => {};
    onclose(code, reason, this.#isOver);
  }

  #handle(text, onframe) {
    this.#heardMs = performance.now();
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      this.close("malformed", "a message that is no JSON");
      return;
    }
    if (frame.kind === "heartbeat") {
      this.#beatReceived = { timeUs: frame.time_us, atMs: this.#heardMs };
      if (frame.echo_us > 0) {
        this.roundTripMs = (this.#session.nowUs() - frame.echo_us - frame.held_us) / 1000;
      }
      return;
    }
    // A gateway that is restarted goes on with what is left of the session.
    this.#isOver ||= frame.kind === "goodbye" && frame.reason !== "shutting_down";
    onframe(frame);
  }
}
