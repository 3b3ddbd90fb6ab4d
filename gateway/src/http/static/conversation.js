// The conversation as people know it: what was asked on one side, what was answered on the other. It is kept in
// this tab, over a reload, and nowhere else.

const KEPT = "lorgnette-conversation";
/** Entries that stay: an hour of talk. */
const ENTRIES_MAX = 200;
/** Characters of one entry that are kept. */
const TEXT_MAX = 4000;

export class Conversation {
  #list;
  #changed;
  /** What is kept of each entry, beside its place on the page. */
  #entries = [];
  /** Entries of this session's speeches and turns. */
  #speeches = new Map();
  #turns = new Map();

  /** `changed(count)` is told how many entries there are. */
  constructor(list, changed) {
    this.#list = list;
    this.#changed = changed;
  }

  /** Brings back what this tab has kept. */
  restore() {
    let kept = [];
    try {
      kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    } catch {
      // Kept by another version: begun anew.
    }
    for (const { side, text, about, at } of Array.isArray(kept) ? kept : []) {
      this.#add({ side, clauses: [String(text)], about: String(about ?? ""), at: Number(at) || Date.now() });
    }
    this.#changed(this.#entries.length);
  }

  /** A new session counts its turns and speeches anew. */
  begin() {
    this.#speeches.clear();
    this.#turns.clear();
  }

  /** The wearer asked for something. */
  asked(text, about) {
    this.#put(this.#add({ side: "wearer", clauses: [text], about }));
  }

  /** Something happened that nobody said. */
  noted(text) {
    this.#put(this.#add({ side: "note", clauses: [text], about: "" }));
  }

  /** A clause of what the glasses say. All speeches of a turn are one answer; what has no turn stands alone. */
  said({ turn, speech, clause, text }) {
    let entry = this.#speeches.get(speech) ?? (turn > 0 ? this.#turns.get(turn) : undefined);
    entry ??= this.#add({ side: "assistant", clauses: [], about: "" });
    this.#speeches.set(speech, entry);
    if (turn > 0) {
      this.#turns.set(turn, entry);
    }
    // What was cut off is said again from its beginning.
    const again = entry.clauses.findIndex((known, at) => known === text && entry.unheard.has(at));
    if (again >= 0) {
      entry.unheard.delete(again);
      entry.places.set(`${speech}.${clause}`, again);
    } else {
      entry.places.set(`${speech}.${clause}`, entry.clauses.length);
      entry.clauses.push(text);
    }
    this.#put(entry);
  }

  /** A speech was stopped in the middle of this clause, or before anything of it came out. */
  stopped(speech, clause, played) {
    const entry = this.#speeches.get(speech);
    if (!entry) {
      return;
    }
    for (const [place, at] of entry.places) {
      const [number, part] = place.split(".").map(Number);
      if (number === speech && (part > clause || !played)) {
        entry.unheard.add(at);
      }
    }
    this.#put(entry);
  }

  /** How long a turn took, in a word and in detail. */
  waited(turn, summary, laps) {
    const entry = this.#turns.get(turn);
    if (entry) {
      entry.about = summary;
      entry.laps = laps;
      this.#put(entry);
    }
  }

  /** All of it as a text to paste elsewhere. */
  text() {
    const who = { wearer: "You: ", assistant: "Glasses: ", note: "" };
    return this.#entries.map(({ side, clauses }) => `${who[side]}${clauses.join(" ")}`).join("\n");
  }

  clear() {
    this.#entries = [];
    this.begin();
    this.#list.replaceChildren();
    this.#save();
  }

  #add({ side, clauses, about, at = Date.now() }) {
    const item = document.createElement("li");
    const known = ["wearer", "assistant"].includes(side);
    item.className = known ? side : "note-entry";
    const entry = {
      side: known ? side : "note",
      clauses,
      about,
      at,
      laps: [],
      unheard: new Set(),
      places: new Map(),
      item,
    };
    this.#entries.push(entry);
    this.#list.append(item);
    while (this.#entries.length > ENTRIES_MAX) {
      this.#entries.shift().item.remove();
    }
    this.#draw(entry);
    return entry;
  }

  #put(entry) {
    this.#draw(entry);
    this.#save();
  }

  #draw({ side, clauses, about, at, laps, unheard, item }) {
    if (side === "note") {
      item.textContent = clauses.join(" ");
      return;
    }
    const bubble = document.createElement("p");
    bubble.className = "bubble";
    const who = document.createElement("span");
    who.className = "sr";
    who.textContent = side === "wearer" ? "You: " : "Glasses: ";
    bubble.append(who);
    clauses.forEach((text, index) => {
      const part = document.createElement("span");
      part.textContent = index > 0 ? ` ${text}` : text;
      if (unheard.has(index)) {
        part.className = "unheard";
        part.title = "not heard";
      }
      bubble.append(part);
    });
    const meta = document.createElement("div");
    meta.className = "meta";
    const time = new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
    const line = about ? `${time} · ${about}` : time;
    if (laps.length > 0) {
      meta.append(details(line, laps, item.querySelector("details")?.open ?? false));
    } else {
      meta.textContent = line;
    }
    item.replaceChildren(bubble, meta);
    const log = item.closest(".log");
    if (log) {
      log.scrollTop = log.scrollHeight;
    }
  }

  #save() {
    const kept = this.#entries.map(({ side, clauses, about, at }) => ({
      side,
      text: clauses.join(" ").slice(0, TEXT_MAX),
      about,
      at,
    }));
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(kept));
    } catch {
      // The browser keeps nothing for this page: the conversation is lost with a reload, and that is all.
    }
    this.#changed(this.#entries.length);
  }
}

function details(line, laps, open) {
  const fold = document.createElement("details");
  fold.open = open;
  const summary = document.createElement("summary");
  summary.textContent = line;
  const list = document.createElement("ul");
  for (const lap of laps) {
    const item = document.createElement("li");
    item.textContent = lap;
    list.append(item);
  }
  fold.append(summary, list);
  return fold;
}
