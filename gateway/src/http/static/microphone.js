// The browser's microphone as packets with capture times, and where the last word ended.

const PACKET_MS = 20;
/** A packet is voice when it is so much above the quietest of late, in dB. */
const VOICE_ABOVE_DB = 12;
const VOICE_DB_MIN = -55;
/** The quietest level of late rises so fast, in dB per packet: 3 dB in a second. */
const FLOOR_RISE_DB = 0.06;
/** Clocks of sound and browser drift apart by less than this, in milliseconds per packet. */
const DRIFT_MS = 0.004;

/**
 * Opens a microphone, by the browser's id of it or, with an empty one, the system's; `onpacket({ bytes, capturedMs,
 * levelDb, voice })` gets each packet.
 */
export async function openMicrophone(id, rateHz, onpacket) {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Error("this browser gives the page no microphone");
  }
  const wishes = { channelCount: 1, echoCancellation: true, noiseSuppression: false };
  const stream = await navigator.mediaDevices.getUserMedia({
    // One that was unplugged meanwhile is no reason to have none.
    audio: id ? { ...wishes, deviceId: { ideal: id } } : wishes,
  });
  const context = new AudioContext({ latencyHint: "interactive" });
  try {
    await context.audioWorklet.addModule("/try/capture.js");
    return new Microphone(stream, context, rateHz, onpacket);
  } catch (error) {
    stream.getTracks().forEach((track) => track.stop());
    await context.close();
    throw error;
  }
}

class Microphone {
  #stream;
  #context;
  #offsetMs = Infinity;
  #floorDb = -30;

  constructor(stream, context, rateHz, onpacket) {
    this.#stream = stream;
    this.#context = context;
    const node = new AudioWorkletNode(context, "capture", {
      numberOfOutputs: 0,
      processorOptions: { rateHz },
    });
    node.port.onmessage = ({ data }) => onpacket(this.#packet(data));
    context.createMediaStreamSource(stream).connect(node);
    context.resume();
  }

  /** Whether the wearer's system took the microphone away. */
  onended(handler) {
    this.#stream.getAudioTracks()[0].onended = handler;
  }

  async close() {
    this.#stream.getTracks().forEach((track) => track.stop());
    await this.#context.close();
  }

  #packet({ pcm, atS }) {
    const samples = new Int16Array(pcm);
    const levelDb = level(samples);
    this.#floorDb = Math.min(levelDb, this.#floorDb + FLOOR_RISE_DB);
    return {
      bytes: new Uint8Array(pcm),
      capturedMs: this.#capturedMs(atS * 1000),
      levelDb,
      voice: levelDb > Math.max(VOICE_DB_MIN, this.#floorDb + VOICE_ABOVE_DB),
    };
  }

  /**
   * The sound's own clock is even, the arrival of packets is not: the shortest journey so far tells
   * how the two clocks stand to each other.
   */
  #capturedMs(soundMs) {
    const offsetMs = performance.now() - (soundMs + PACKET_MS);
    this.#offsetMs = Math.min(offsetMs, this.#offsetMs + DRIFT_MS);
    return soundMs + this.#offsetMs;
  }
}

function level(samples) {
  let sum = 0;
  for (const sample of samples) {
    sum += sample * sample;
  }
  return 10 * Math.log10(sum / samples.length / 32768 ** 2 + 1e-9);
}
