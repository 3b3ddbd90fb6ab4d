// What the page says: its state in words, problems with what helps, and what it knows of the gateway.

/** Letters of a wake phrase that have room in the lens. */
const WAKE_LETTERS_MAX = 24;
const SEEN = "lorgnette-no-model-seen";

const element = (id) => document.getElementById(id);

/** Shows where the conversation stands, on the lens and at the talk button. */
export function showState({ state, held, muted, asked, about, connecting, isLost, hasMicrophone }) {
  const wake = phrase(about);
  element("wake").textContent = wake ? `${wake}, ` : "";
  element("without").textContent = wake ? `, and leave “${wake}” out` : "";
  element("controls").hidden = state === "off";
  const mute = element("mute");
  mute.hidden = !hasMicrophone;
  mute.setAttribute("aria-pressed", String(muted));
  mute.textContent = muted ? "Unmute" : "Mute";
  showHearing(about);
  showModel(about);
  element("sign-text").textContent = isLost ? "connection lost" : sign(state, hasMicrophone, wake);
  const talk = element("talk");
  const [mood, label, hint] = button({ state, held, muted, asked, connecting, hasMicrophone, wake });
  talk.dataset.state = mood;
  talk.disabled = mood === "none";
  element("talk-label").textContent = label;
  element("hint").textContent = hint;
}

function sign(state, hasMicrophone, wake) {
  if (state === "idle") {
    const spoken = wake ? `say “${cut(wake)}”` : wake === "" ? "just talk" : "ready";
    return hasMicrophone ? spoken : "type below";
  }
  // Without a microphone nobody listens, though a typed request would be taken as addressed.
  const words = { wake: hasMicrophone ? "listening" : "type below", thinking: "working" };
  return words[state] ?? state;
}

/** Mood, label and hint of the talk button. */
function button({ state, held, muted, asked, connecting, hasMicrophone, wake }) {
  if (connecting) {
    return ["none", "Connecting…", ""];
  }
  if (state === "off") {
    return ["off", "Talk", "Press, and allow the microphone."];
  }
  if (held) {
    return ["held", "Listening…", "Let go when you are done."];
  }
  if (state === "thinking" || state === "speaking") {
    const words = state === "thinking" ? "Working on it…" : "Or just talk over it.";
    return ["busy", "Stop", asked ? "Say “yes” or “no”, or press." : words];
  }
  if (muted) {
    return ["none", "Microphone off", "Unmute to talk. Typing works."];
  }
  if (!hasMicrophone) {
    return ["off", "Talk", "Typing works. Press to use the microphone as well."];
  }
  if (state === "wake" || state === "listening") {
    return ["open", "Listening…", wake ? `Go on: no “${wake}” is needed.` : ""];
  }
  const words = wake ? `Hold it while you speak, or say “${wake}, …”` : "Hold it while you speak, or just talk.";
  return ["idle", "Talk", words];
}

/** What the wearer says first, as a title; empty: nothing; null: not known. */
function phrase({ phrases, always }) {
  if (phrases === null) {
    return null;
  }
  const first = always ? undefined : phrases[0];
  return first?.replace(/(^|\s)\S/gu, (letter) => letter.toUpperCase()) ?? "";
}

function cut(text) {
  const letters = [...text];
  return letters.length > WAKE_LETTERS_MAX ? `${letters.slice(0, WAKE_LETTERS_MAX - 1).join("")}…` : text;
}

/** Where sound goes; until that is known, nothing is promised. */
function showHearing({ phrases, hears, apps }) {
  if (phrases === null) {
    return;
  }
  let where = "Sound stays on this machine, where speech is recognised.";
  if (hears && !hears.here) {
    const when = hears.always ? ", where speech is recognised" : " when recognition here fails, or does not know the language";
    where = `Sound is sent to ${hears.host}${when}.`;
  } else if (apps.length > 0) {
    where = "Speech is recognised on this machine.";
  }
  if (apps.length > 0) {
    where += ` Mini-apps at ${apps.join(", ")} may be sent sound and what is said while they run.`;
  }
  element("hears").textContent = where;
}

/** Who answers what is no command, and who else may get text; where no model answers, it is said once how to add one. */
function showModel({ phrases, model, texts }) {
  if (phrases === null) {
    return;
  }
  const others = texts.filter((host) => host !== model?.host);
  const told = [];
  if (model) {
    const where = model.here ? (others.length > 0 ? "" : " on this machine") : ` at ${model.host}, as text`;
    told.push(`Open questions are answered by ${model.name}${where}.`);
  } else if (others.length === 0) {
    told.push("The answers are made on this machine.");
  }
  if (others.length > 0) {
    told.push(`Text may ${model ? "also " : ""}be sent to ${others.join(", ")}.`);
  }
  element("model-note").textContent = told.join(" ");
  element("no-model").hidden = Boolean(model) || wasSeen();
  element("no-model-seen").onclick = () => {
    element("no-model").hidden = true;
    see();
  };
}

function wasSeen() {
  try {
    return localStorage.getItem(SEEN) === "1";
  } catch {
    return false;
  }
}

function see() {
  try {
    localStorage.setItem(SEEN, "1");
  } catch {
    // Then it is said again the next time.
  }
}

/** Says what is wrong; `help` names the button that helps: "microphone" or "key". An empty text: nothing is. */
export function problem(text, help = "") {
  element("problem").hidden = text === "";
  element("problem-text").textContent = text;
  element("retry-microphone").hidden = help !== "microphone";
  element("forget-now").hidden = help !== "key";
}

/** Shows what is understood so far, before it is certain. */
export function caption(text, isFinal) {
  const line = element("caption");
  line.textContent = text;
  line.dataset.final = String(isFinal);
  line.hidden = text === "";
}
