// How long the wearer waited for an answer, from the last word or from sending.

/** What the wearer perceives first of an answer: that is when it came. */
const ANSWERS = ["display", "first sound played"];

/**
 * The waits of one turn. Where the last word was is judged by the level of the microphone alone, so that it is an
 * estimate: quiet word ends are missed. What belongs to another turn, such as the sound of the answer before, is not
 * counted.
 */
export class Waits {
  #from = null;
  #since = "";
  #turn = 0;
  #laps = new Map();

  /** A request waits for its turn, from a time of the session's clock; null where that is not known. */
  begin(fromUs, since) {
    this.#from = fromUs;
    this.#since = since;
    this.#turn = null;
    this.#laps = new Map();
  }

  /** A turn is heard of. The first one behind a request is the request's. */
  seen(turn) {
    this.#turn ??= turn;
  }

  /** A new session counts its turns anew. */
  reset() {
    this.begin(null, "");
    this.#turn = 0;
  }

  /** Something of a turn happened; whether that is news. Before the turn is known, only what precedes it happens. */
  lap(name, turn, nowUs) {
    if (this.#from === null || this.#laps.has(name) || (turn !== null && turn !== this.#turn)) {
      return false;
    }
    this.#laps.set(name, Math.max(0, Math.round((nowUs - this.#from) / 1000)));
    return true;
  }

  get turn() {
    return this.#turn ?? 0;
  }

  /** "answered in 0.6 s"; empty before there is an answer. */
  summary() {
    const times = ANSWERS.filter((name) => this.#laps.has(name)).map((name) => this.#laps.get(name));
    return times.length > 0 ? `answered in ${(Math.min(...times) / 1000).toFixed(1)} s` : "";
  }

  /** All of them, in their order. */
  details(roundTripMs) {
    const laps = [...this.#laps].map(([name, ms]) => `${name} ${ms} ms`);
    const round = roundTripMs === null ? [] : [`round trip ${roundTripMs.toFixed(1)} ms`];
    return [`${this.#since}:`, ...laps, ...round];
  }
}
