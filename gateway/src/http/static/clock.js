// When sound was captured, by the browser's clock.

/** Clocks of sound and browser drift apart by less than this, in milliseconds per packet. */
const DRIFT_MS = 0.004;
/** Where all packets come so much later than expected, for so long, the sound's clock has stood still, in milliseconds. */
const LATE_MS = 100;
const LATE_FOR_MS = 500;

/**
 * The sound's own clock is even, the arrival of packets is not: the shortest journey so far tells how the two clocks
 * stand to each other. A page that was held up gets late packets in a burst, and the last of them are on time; a clock
 * that has stood still makes all packets late from then on.
 */
export class CaptureClock {
  #packetMs;
  #offsetMs = Infinity;
  /** When the first of the late packets came, and the shortest journey of them. */
  #lateSinceMs = null;
  #lateOffsetMs = Infinity;

  /** `packetMs`: the length of a packet. */
  constructor(packetMs) {
    this.#packetMs = packetMs;
  }

  /** When the first sample of a packet was captured that has come now; `soundMs` is its time by the sound's clock. */
  capturedMs(soundMs, nowMs) {
    const offsetMs = nowMs - (soundMs + this.#packetMs);
    this.#offsetMs = Math.min(offsetMs, this.#offsetMs + DRIFT_MS);
    if (offsetMs <= this.#offsetMs + LATE_MS) {
      this.#lateSinceMs = null;
      this.#lateOffsetMs = Infinity;
    } else {
      this.#lateSinceMs ??= nowMs;
      this.#lateOffsetMs = Math.min(offsetMs, this.#lateOffsetMs);
      if (nowMs - this.#lateSinceMs >= LATE_FOR_MS) {
        this.#offsetMs = this.#lateOffsetMs;
      }
    }
    return soundMs + this.#offsetMs;
  }
}
