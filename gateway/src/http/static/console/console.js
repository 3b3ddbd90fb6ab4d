// Live parts of the console's pages. Without this script the pages work, and show what was the case when they were loaded.

const pause = document.querySelector("#pause");
const streams = new Map();

// On a narrow screen the navigation is longer than the screen. `scrollIntoView` would move where the Tab key begins.
const here = document.querySelector("nav [aria-current]");
const navigation = here?.closest("nav");
if (here) { navigation.scrollLeft = here.offsetLeft - (navigation.clientWidth - here.offsetWidth) / 2; }

/** Replaces a part of the page, unless somebody is using it. */
function replace(part, html) {
  const used = part.contains(document.activeElement) || part.querySelector("details[open]");
  if (!used) { part.innerHTML = html; }
}

/** Follows all parts that the gateway updates. */
function follow() {
  for (const part of document.querySelectorAll("[data-live]")) {
    const source = new EventSource(part.dataset.live);
    source.addEventListener("open", () => part.classList.remove("stale"));
    source.addEventListener("message", (event) => replace(part, event.data));
    source.addEventListener("error", () => part.classList.add("stale"));
    streams.set(part, source);
  }
}

function stop() {
  for (const source of streams.values()) { source.close(); }
  streams.clear();
}

if (pause && document.querySelector("[data-live]")) {
  pause.hidden = false;
  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume" : "Pause";
    if (paused) { stop(); } else { follow(); }
  });
  follow();
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
