// What happened when, and how long the wearer waited.

/** Lines that stay: some minutes of talk. */
const LINES_MAX = 200;

/** The list of events; the newest is on top. */
export class Journal {
  #list;

  constructor(list) {
    this.#list = list;
  }

  note(kind, text) {
    const item = document.createElement("li");
    item.dataset.kind = kind;
    const time = document.createElement("time");
    const now = new Date();
    time.textContent = `${now.toLocaleTimeString("en-GB")}.${String(now.getMilliseconds()).padStart(3, "0")}`;
    const label = document.createElement("b");
    label.textContent = kind;
    const words = document.createElement("span");
    words.textContent = text;
    item.append(time, label, words);
    this.#list.prepend(item);
    while (this.#list.childElementCount > LINES_MAX) {
      this.#list.lastElementChild.remove();
    }
  }
}

/**
 * The waits of one turn, counted from the wearer's last word. Where that was is judged here by the
 * level of the microphone alone, so that it is an estimate: quiet word ends are missed.
 */
export class Stopwatch {
  #from = null;
  #since = "";
  #laps = new Map();

  /** A turn begins to wait at what `since` names; null where that is not known. */
  start(fromUs, since) {
    this.#from = fromUs;
    this.#since = since;
    this.#laps = new Map();
  }

  /** The first time that something happens counts. */
  lap(name, nowUs) {
    if (this.#from !== null && !this.#laps.has(name)) {
      this.#laps.set(name, Math.max(0, Math.round((nowUs - this.#from) / 1000)));
      return true;
    }
    return false;
  }

  toString() {
    const laps = [...this.#laps].map(([name, ms]) => `${name} ${ms} ms`);
    return `${this.#since}: ${laps.join(" · ")}`;
  }
}
