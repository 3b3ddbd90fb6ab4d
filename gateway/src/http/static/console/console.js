// Live parts of the console's pages. Without this script the pages work, and show what was the case when they were loaded.

const pause = document.querySelector("#pause");
const parts = document.querySelectorAll("[data-live]");

// On a narrow screen the navigation is longer than the screen. `scrollIntoView` would move where the Tab key begins.
const here = document.querySelector("nav [aria-current]");
const navigation = here?.closest("nav");
if (here) { navigation.scrollLeft = here.offsetLeft - (navigation.clientWidth - here.offsetWidth) / 2; }

/** Where it is said that updates have ended. */
const told = document.querySelector("#updates");
const ENDED = "Not updated any more: load this page again.";
/** After so long, updates that have ended are tried again: there may be room for them by then. */
const AGAIN_MS = 15_000;
let again;
const streams = new Map();
/** The newest content of each part that somebody is using. */
const pending = new Map();
/** Nobody can have read what was there for less than this: the glasses take no answer either. */
const UNREAD_MS = 500;
/** When each part was replaced, on the clock of events. */
const replaced = new Map();
/** Where there is none, `:hover` stays where a finger was. */
const pointer = matchMedia("(hover: hover)");

function isUsed(part) {
  const using = pointer.matches ? "details[open], button:hover, summary:hover" : "details[open]";
  return part.contains(document.activeElement) || part.querySelector(using) !== null;
}

/** Shows what is new in a part, unless somebody is using it. */
function settle(part) {
  const html = pending.get(part);
  if (html === undefined || isUsed(part)) { return; }
  pending.delete(part);
  const next = part.cloneNode(false);
  next.innerHTML = html;
  // What is there already stays, also for a screen reader, which would read it out again.
  if (next.isEqualNode(part)) { return; }
  part.replaceChildren(...next.childNodes);
  replaced.set(part, performance.now());
}

/** Keeps a click from what has just come under the pointer. */
function refuseUnread(part, event) {
  const isUnread = event.timeStamp - (replaced.get(part) ?? -UNREAD_MS) < UNREAD_MS;
  if (isUnread && event.target.closest("form button")) { event.preventDefault(); }
}

/** Says where no stream comes any more, until all do again. */
function tell() {
  const states = [...streams.values()].map((source) => source.readyState);
  if (states.includes(EventSource.CLOSED)) {
    told.textContent ||= ENDED;
    clearTimeout(again);
    again = setTimeout(follow, AGAIN_MS);
  } else if (states.every((state) => state === EventSource.OPEN)) {
    told.textContent = "";
  }
}

/** Follows all parts that the gateway updates, unless they are followed. */
function follow() {
  for (const part of parts) {
    const before = streams.get(part);
    if (before && before.readyState !== EventSource.CLOSED) { continue; }
    const source = new EventSource(part.dataset.live);
    streams.set(part, source);
    source.addEventListener("open", () => {
      part.classList.remove("stale");
      tell();
    });
    source.addEventListener("message", (event) => {
      pending.set(part, event.data);
      settle(part);
    });
    source.addEventListener("error", () => {
      part.classList.add("stale");
      tell();
    });
  }
}

/** The next stream begins with what is the case then: what came before it is not kept. */
function stop() {
  clearTimeout(again);
  for (const source of streams.values()) { source.close(); }
  streams.clear();
  pending.clear();
  told.textContent = "";
}

/** Follows while the page is seen and not paused: all pages of a browser have six connections to a gateway. */
function adjust() {
  if (document.hidden || pause.getAttribute("aria-pressed") === "true") { stop(); } else { follow(); }
}

for (const part of parts) {
  // Behind the event: only then is known where the focus goes, and what the pointer is on.
  const later = () => setTimeout(settle, 0, part);
  part.addEventListener("focusout", later);
  part.addEventListener("pointerout", later);
  // It does not bubble.
  part.addEventListener("toggle", later, { capture: true });
  if (part.dataset.guarded !== undefined) {
    part.addEventListener("click", (event) => refuseUnread(part, event), { capture: true });
  }
}

if (parts.length > 0) {
  pause.hidden = false;
  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume" : "Pause";
    adjust();
  });
  document.addEventListener("visibilitychange", adjust);
  adjust();
}

/** Words of a wearer, shown only while an operator wants to see them. */
const words = document.querySelector("#words");
const button = document.querySelector("#words-button");
const LINES_MAX = 50;
let captions = null;

function write(list, { utterance, text, last }) {
  let line = list.querySelector(`[data-utterance="${CSS.escape(utterance)}"]`);
  if (!line) {
    line = document.createElement("li");
    line.dataset.utterance = utterance;
    list.append(line);
  }
  line.textContent = text;
  line.dataset.last = String(last);
  // The same number may come again, with other words.
  if (last) { line.removeAttribute("data-utterance"); }
  while (list.children.length > LINES_MAX) { list.firstElementChild.remove(); }
}

if (words && button) {
  const note = document.querySelector("#words-note");
  const list = document.querySelector("#words-list");
  const hide = () => {
    captions?.close();
    captions = null;
    list.replaceChildren();
    note.hidden = true;
    button.textContent = "Show words";
  };
  button.disabled = false;
  button.addEventListener("click", () => {
    if (captions) { hide(); return; }
    captions = new EventSource(words.dataset.words);
    captions.addEventListener("message", (event) => write(list, JSON.parse(event.data)));
    captions.addEventListener("error", () => { if (captions?.readyState === EventSource.CLOSED) { hide(); } });
    note.hidden = false;
    button.textContent = "Hide words";
  });
}
