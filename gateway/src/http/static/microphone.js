// The browser's microphone as packets with capture times, and where the last word ended.

import { CaptureClock } from "./clock.js";

const PACKET_MS = 20;
/** A packet is voice when it is so much above the quietest of late, in dB. */
const VOICE_ABOVE_DB = 12;
const VOICE_DB_MIN = -55;
/** The quietest level of late rises so fast, in dB per packet: 3 dB in a second. */
const FLOOR_RISE_DB = 0.06;

/**
 * The page's one microphone. `heard({ bytes, capturedMs, levelDb, voice })` gets each packet; `ended()` is told that the
 * system took the microphone away.
 */
export class Microphone {
  #rateHz;
  #heard;
  #ended;
  /** Source that is wanted, by the browser's id, empty: the system's; null: none. */
  #wanted = null;
  /** Source that is open, likewise. */
  #source = null;
  #capture = null;
  /** The opening that is under way: it takes as long as the wearer thinks about a permission. */
  #opening = null;

  constructor(rateHz, { heard, ended }) {
    this.#rateHz = rateHz;
    this.#heard = heard;
    this.#ended = ended;
  }

  get isOpen() {
    return this.#capture !== null;
  }

  /** Whether it is open, or being opened. */
  get isWanted() {
    return this.#wanted !== null;
  }

  /** Opens a source in place of the one before. Of several calls during one opening the last one counts, for all. */
  use(source) {
    this.#wanted = source;
    this.#opening ??= this.#follow().finally(() => (this.#opening = null));
    return this.#opening;
  }

  /** Closes it. An opening that is under way is not waited for: what it opens is closed at once. */
  async close() {
    this.#wanted = null;
    await this.#release();
  }

  /** Opens and closes until the source that is wanted is the one that is open. */
  async #follow() {
    while (this.#wanted !== this.#source) {
      await this.#release();
      const source = this.#wanted;
      if (source === null) {
        return;
      }
      try {
        const capture = await openCapture(source, this.#rateHz, this.#heard);
        capture.onended(() => this.#lose());
        this.#capture = capture;
        this.#source = source;
      } catch (error) {
        if (this.#wanted === source) {
          this.#wanted = null;
          throw error;
        }
      }
    }
  }

  #lose() {
    this.close();
    this.#ended();
  }

  async #release() {
    const capture = this.#capture;
    this.#capture = null;
    this.#source = null;
    await capture?.close();
  }
}

async function openCapture(source, rateHz, onpacket) {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Error("this browser gives the page no microphone");
  }
  const wishes = { channelCount: 1, echoCancellation: true, noiseSuppression: false };
  const stream = await navigator.mediaDevices.getUserMedia({
    // One that was unplugged meanwhile is no reason to have none.
    audio: source ? { ...wishes, deviceId: { ideal: source } } : wishes,
  });
  const context = new AudioContext({ latencyHint: "interactive" });
  try {
    await context.audioWorklet.addModule("/try/capture.js");
    if (stream.getAudioTracks()[0].readyState === "ended") {
      throw new Error("it is gone");
    }
    return new Capture(stream, context, rateHz, onpacket);
  } catch (error) {
    stream.getTracks().forEach((track) => track.stop());
    await context.close();
    throw error;
  }
}

/** A microphone that is open. */
class Capture {
  #stream;
  #context;
  #node;
  #clock = new CaptureClock(PACKET_MS);
  #floorDb = -30;

  constructor(stream, context, rateHz, onpacket) {
    this.#stream = stream;
    this.#context = context;
    this.#node = new AudioWorkletNode(context, "capture", {
      numberOfOutputs: 0,
      processorOptions: { rateHz },
    });
    this.#node.port.onmessage = ({ data }) => onpacket(this.#packet(data));
    context.createMediaStreamSource(stream).connect(this.#node);
    context.resume();
  }

  /** Whether the wearer's system took the microphone away. */
  onended(handler) {
    this.#stream.getAudioTracks()[0].onended = handler;
  }

  /** Packets that are on their way are dropped. An open context would go on with silence, though its stream has ended. */
  async close() {
    this.#node.port.onmessage = null;
    this.onended(null);
    this.#stream.getTracks().forEach((track) => track.stop());
    await this.#context.close();
  }

  #packet({ pcm, atS }) {
    const samples = new Int16Array(pcm);
    const levelDb = level(samples);
    this.#floorDb = Math.min(levelDb, this.#floorDb + FLOOR_RISE_DB);
    return {
      bytes: new Uint8Array(pcm),
      capturedMs: this.#clock.capturedMs(atS * 1000, performance.now()),
      levelDb,
      voice: levelDb > Math.max(VOICE_DB_MIN, this.#floorDb + VOICE_ABOVE_DB),
    };
  }
}

function level(samples) {
  let sum = 0;
  for (const sample of samples) {
    sum += sample * sample;
  }
  return 10 * Math.log10(sum / samples.length / 32768 ** 2 + 1e-9);
}
