// The conversation as people know it: what was asked on one side, what was answered on the other. It is kept in
// this tab, over a reload, and nowhere else.

const KEPT = "lorgnette-conversation";
/** Entries that stay: an hour of talk. */
const ENTRIES_MAX = 200;
/** Characters of one entry that are kept. */
const TEXT_MAX = 4000;
/** The end is in view where less than so many pixels of it are not. */
const END_PX = 24;

export class Conversation {
  #list;
  #changed;
  /** What is kept of each entry, beside its place on the page. */
  #entries = [];
  /** Entries of this session's speeches and turns. */
  #speeches = new Map();
  #turns = new Map();
  /** Whether what is new is scrolled to: until the wearer scrolls away from the end. */
  #follows = true;
  /** Where the list stood last. */
  #scrollTop = 0;

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
      const entry = newEntry(String(side), [String(text)], String(about ?? ""), Number(at) || Date.now());
      this.#draw(entry);
      this.#place(entry);
    }
    this.#changed(this.#entries.length);
    this.#showEnd();
  }

  /** A new session counts its turns and speeches anew. */
  begin() {
    this.#speeches.clear();
    this.#turns.clear();
  }

  /** The wearer asked for something. */
  asked(text, about) {
    this.#put(newEntry("wearer", [text], about));
  }

  /** Something happened that nobody said. */
  noted(text) {
    this.#put(newEntry("note", [text], ""));
  }

  /** A clause of what the glasses say. All speeches of a turn are one answer; what has no turn stands alone. */
  said({ turn, speech, clause, text }) {
    let entry = this.#speeches.get(speech) ?? (turn > 0 ? this.#turns.get(turn) : undefined);
    entry ??= newEntry("assistant", [], "");
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

  /** Shows what is new of an entry. Who reads further up is left there. */
  #put(entry) {
    const log = this.#list.closest(".log");
    // What is shown beside the conversation makes it lower, and moves nobody from its end.
    if (log.scrollTop !== this.#scrollTop) {
      this.#follows = this.#isEndSeen();
    }
    this.#draw(entry);
    if (!entry.isPlaced) {
      this.#place(entry);
    }
    this.#save();
    if (this.#follows) {
      this.#showEnd();
    }
    this.#scrollTop = log.scrollTop;
  }

  #place(entry) {
    entry.isPlaced = true;
    this.#entries.push(entry);
    this.#list.append(entry.item);
    while (this.#entries.length > ENTRIES_MAX) {
      this.#entries.shift().item.remove();
    }
  }

  /**
   * Changes only what has changed: a screen reader reads aloud what is added to the list, and the focus goes with an
   * element that is replaced.
   */
  #draw({ side, clauses, about, at, laps, unheard, item }) {
    if (side === "note") {
      item.textContent = clauses.join(" ");
    } else {
      const [bubble, meta] = item.children;
      drawClauses(bubble, clauses, unheard);
      const time = new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
      drawMeta(meta, about ? `${time} · ${about}` : time, laps);
    }
  }

  #showEnd() {
    const log = this.#list.closest(".log");
    log.scrollTop = log.scrollHeight;
    this.#scrollTop = log.scrollTop;
  }

  #isEndSeen() {
    const log = this.#list.closest(".log");
    const end = this.#list.getBoundingClientRect().bottom;
    return end < log.getBoundingClientRect().bottom + END_PX;
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

function newEntry(side, clauses, about, at = Date.now()) {
  const isNote = !["wearer", "assistant"].includes(side);
  return {
    side: isNote ? "note" : side,
    clauses,
    about,
    at,
    laps: [],
    unheard: new Set(),
    places: new Map(),
    item: isNote ? emptyNote() : emptyItem(side),
    isPlaced: false,
  };
}

function emptyNote() {
  const item = document.createElement("li");
  item.className = "note-entry";
  return item;
}

/** The item of a wearer's or an assistant's entry, without the words. */
function emptyItem(side) {
  const item = document.createElement("li");
  item.className = side;
  const bubble = document.createElement("p");
  bubble.className = "bubble";
  const who = document.createElement("span");
  who.className = "sr";
  who.textContent = side === "wearer" ? "You: " : "Glasses: ";
  bubble.append(who);
  const meta = document.createElement("div");
  meta.className = "meta";
  // Times are there to be looked at, and would be read aloud in the middle of an answer.
  meta.setAttribute("aria-live", "off");
  item.append(bubble, meta);
  return item;
}

/** The clauses behind the name of who says them. A clause keeps its words. */
function drawClauses(bubble, clauses, unheard) {
  clauses.forEach((text, index) => {
    let part = bubble.children[index + 1];
    if (!part) {
      part = document.createElement("span");
      part.textContent = index > 0 ? ` ${text}` : text;
      bubble.append(part);
    }
    part.className = unheard.has(index) ? "unheard" : "";
    part.title = unheard.has(index) ? "not heard" : "";
  });
}

function drawMeta(meta, line, laps) {
  if (laps.length === 0) {
    meta.textContent = line;
    return;
  }
  let fold = meta.querySelector("details");
  if (!fold) {
    fold = document.createElement("details");
    fold.append(document.createElement("summary"), document.createElement("ul"));
    meta.replaceChildren(fold);
  }
  const [summary, list] = fold.children;
  summary.textContent = line;
  list.replaceChildren(
    ...laps.map((lap) => {
      const item = document.createElement("li");
      item.textContent = lap;
      return item;
    }),
  );
}
