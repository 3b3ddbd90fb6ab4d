// The page: what the wearer presses and sees, and which part does it.

import { fromBase64, toBase64, toSamples } from "./bytes.js";
import { layOut, Lens, View } from "./display.js";
import { forgetIdentity, loadIdentity } from "./identity.js";
import { Journal, Stopwatch } from "./journal.js";
import { openMicrophone } from "./microphone.js";
import { connect, Refused, SPEAKER_HZ, WrongGateway } from "./session.js";
import { openSpeaker } from "./speaker.js";
import { OFFERS, Tools } from "./tools.js";

/** Waits before each new attempt, in seconds (PROTOCOL.md section 7). */
const BACK_OFF_S = [0, 0.5, 1, 2, 4, 8];
/** Attempts that a restart of the gateway takes. */
const DOUBT_AFTER = 3;
/** Reasons after which a new attempt would only be refused again. */
const FINAL_GOODBYES = {
  replaced: "Another tab took over. Press Start to talk here again.",
  revoked: "The operator revoked this browser's key.",
};
const FINAL_REJECTS = ["revoked", "pairing_failed", "unsupported_version", "no_common_format"];
/** Letters of a wake phrase that have room beside the name of the view. */
const WAKE_LETTERS_MAX = 24;
/** A last word longer ago than this belongs to something else. */
const LAST_WORD_MS_MAX = 10_000;
const PITCH_UP_CDEG = 2500;

const element = (id) => document.getElementById(id);
const page = element("glasses");
const journal = new Journal(element("journal"));
const lens = new Lens(element("rows"), element("display-text"));
const stopwatch = new Stopwatch();

let views = newViews();
let link = null;
let microphone = null;
let speaker = null;
let wanted = false;
let attempts = 0;
let muted = false;
let lookingUp = false;
let lastVoiceMs = null;
let approval = null;
let speechTurns = new Map();
let redraw = null;
/** Number of the connection: what an older one still says is not heard. */
let connection = 0;
/** Why the gateway said goodbye, until the connection closes. */
let goodbye = "";
let volume = 80;
/** What the wearer says first; empty: nothing; null: not known yet. */
let wakePhrase = null;
const tools = new Tools(applyLevel);

function newViews() {
  return { main: new View(), dashboard: new View() };
}

// ---- connection ----

async function start() {
  wanted = true;
  problem("");
  try {
    // Both need the click that brought us here, so they come first.
    speaker ??= await openSpeaker(SPEAKER_HZ, played);
    speaker.setVolume(volume);
    await open();
  } catch (error) {
    failed(error);
  }
}

async function open() {
  status("connecting", "Connecting…");
  const mine = (connection += 1);
  const current = (act) => (...what) => mine === connection && act(...what);
  const identity = await loadIdentity();
  let opened;
  try {
    opened = await connect(identity, {
      frame: current(handle),
      close: current(closed),
      pairing: current(showCode),
    });
  } catch (error) {
    if (mine === connection) {
      throw error;
    }
    return;
  }
  if (mine !== connection) {
    opened.link.close("power_off", "");
    return;
  }
  link = opened.link;
  attempts = 0;
  goodbye = "";
  views = newViews();
  speechTurns = new Map();
  tools.forgetCalls();
  const { welcome } = opened;
  problem("");
  status("open", `Connected to ${welcome.gateway_name} as ${welcome.user_name}`);
  journal.note("session", `session ${welcome.session} with ${welcome.gateway_name}`);
  link.send("tool_list", { revision: 1, tools: OFFERS });
  if (muted) {
    link.send("mute", { muted });
  }
  listening(welcome.listening);
  enable(true);
  draw();
  for (const first of document.querySelectorAll(".first")) {
    first.hidden = true;
  }
  await listen(welcome.audio_up.rate_hz);
}

async function listen(rateHz) {
  try {
    if (!microphone) {
      const fresh = await openMicrophone(rateHz, heard);
      if (!link || microphone) {
        await fresh.close();
        return;
      }
      microphone = fresh;
    }
    microphone.onended(() => {
      link?.send("audio_end", { last_audio_sequence: link.lastAudioSequence, reason: "failed" });
      problem("The microphone is gone. Typed requests still work.");
    });
    journal.note("microphone", "on");
  } catch (error) {
    problem(`No microphone: ${error.message}. Typed requests work all the same.`);
  }
}

function closed(code, reason) {
  journal.note("session", `closed (${code}${reason ? ` ${reason}` : ""})`);
  leave();
  if (Object.hasOwn(FINAL_GOODBYES, goodbye)) {
    failed(new Error(FINAL_GOODBYES[goodbye]));
  } else {
    again();
  }
}

/** What the session leaves behind. */
function leave() {
  link = null;
  speaker?.hush(0, 30);
  listening("off");
  settle(null);
  enable(false);
  element("activity").hidden = true;
}

function again() {
  const delayS = BACK_OFF_S[Math.min(attempts, BACK_OFF_S.length - 1)];
  attempts += 1;
  const doubt = attempts > DOUBT_AFTER ? " Is the gateway running?" : "";
  status("connecting", `Connection lost, trying again…${doubt}`);
  const delayMs = delayS * 1000 * (1 + Math.random() / 4);
  const mine = connection;
  setTimeout(() => wanted && mine === connection && open().catch(failed), delayMs);
}

function failed(error) {
  const isFinal =
    error instanceof WrongGateway ||
    (error instanceof Refused && FINAL_REJECTS.includes(error.code)) ||
    !(error instanceof Refused || error.message.startsWith("the gateway closed"));
  journal.note("problem", error.message);
  if (!isFinal && wanted) {
    again();
    return;
  }
  const remedy =
    error instanceof WrongGateway || error.code === "revoked"
      ? "\nIf that is as it should be, forget this browser's key (below) and start again."
      : "";
  problem(error.message + remedy);
  stop();
  status("failed", "Not connected");
}

async function stop() {
  wanted = false;
  connection += 1;
  link?.close("power_off", "the page was switched off");
  leave();
  status("idle", "Not connected");
  element("meter").style.transform = "scaleX(0)";
  const used = [microphone, speaker];
  microphone = null;
  speaker = null;
  await Promise.all(used.map((part) => part?.close()));
}

function showCode(code) {
  problem(`To pair this browser, run on the gateway's machine:\nlorgnette devices pair ${code}`);
}

// ---- frames ----

const HANDLERS = {
  listening: (frame) => listening(frame.state),
  transcript: caption,
  display(frame) {
    if (Object.hasOwn(views, frame.view)) {
      views[frame.view].handle(frame, performance.now());
      draw();
      if (frame.action !== "clear") {
        lap("display");
        journal.note("display", layOut(frame.content).join(" / "));
      }
    }
  },
  speech_start(frame) {
    speechTurns.set(frame.speech, frame.turn);
    speaker?.start(frame.speech);
    journal.note("speech", frame.text);
  },
  speech_chunk(frame) {
    lap("first sound arrived");
    const samples = toSamples(fromBase64(frame.payload));
    speaker?.chunk(frame.speech, frame.clause, frame.position_us, samples);
  },
  speech_end: (frame) => speaker?.end(frame.speech),
  hush: (frame) => speaker?.hush(frame.speech, frame.fade_ms),
  tool_activity(frame) {
    const line = element("activity");
    line.hidden = frame.state !== "started";
    line.textContent = `${frame.label}…`;
    lap(frame.state === "started" ? "tool started" : "tool done");
    journal.note("tool", `${frame.label}: ${frame.state}`);
  },
  tool_call(frame) {
    link.send("tool_result", tools.call(frame), { turn: frame.turn });
    journal.note("device", `${frame.name} ${frame.arguments}`);
  },
  approval_request(frame) {
    approval = frame.approval;
    element("approval-title").textContent = frame.title;
    element("approval-message").textContent = frame.message;
    element("approval").hidden = false;
    element("yes").focus();
  },
  approval_settled: (frame) => settle(frame.approval),
  chime: (frame) => speaker?.chime(frame.sound),
  goodbye(frame) {
    goodbye = frame.reason;
    journal.note("goodbye", `${frame.reason} ${frame.message}`);
  },
};

function handle(frame) {
  if (Object.hasOwn(HANDLERS, frame.kind)) {
    HANDLERS[frame.kind](frame);
  }
}

function caption(frame) {
  const line = element("caption");
  line.textContent = frame.text;
  line.dataset.final = String(frame.is_final);
  if (frame.is_final) {
    const since = performance.now() - (lastVoiceMs ?? -Infinity);
    const from = since < LAST_WORD_MS_MAX ? link.toUs(lastVoiceMs) : null;
    stopwatch.start(from, "After your last word (judged by level)");
    lap("understood");
    if (frame.text) {
      journal.note("heard", frame.addressed ? frame.text : `(not for the glasses) ${frame.text}`);
    }
  }
}

function played(report) {
  link?.send(
    "played",
    {
      speech: report.speech,
      clause: report.clause,
      played_us: report.playedUs,
      state: report.state,
    },
    { turn: speechTurns.get(report.speech) ?? 0 },
  );
  if (report.playedUs > 0) {
    lap("first sound played");
  }
  if (report.state === "finished" || report.state === "stopped") {
    speechTurns.delete(report.speech);
    journal.note("played", `${(report.playedUs / 1e6).toFixed(2)} s, ${report.state}`);
  }
  page.dataset.playedMs = String(Math.round(report.playedUs / 1000));
  page.dataset.playState = report.state;
}

function lap(name) {
  if (link && stopwatch.lap(name, link.nowUs())) {
    const line = element("latency");
    const round = link.roundTripMs === null ? "" : ` · round trip ${link.roundTripMs.toFixed(1)} ms`;
    line.hidden = false;
    line.textContent = `${stopwatch}${round}`;
  }
}

// ---- the wearer ----

function heard(packet) {
  if (!wanted) {
    return;
  }
  if (packet.voice) {
    lastVoiceMs = packet.capturedMs + 20;
  }
  const level = muted ? 0 : Math.max(0, Math.min(1, (packet.levelDb + 65) / 60));
  element("meter").style.transform = `scaleX(${level})`;
  if (!link) {
    return;
  }
  link.tick();
  if (!muted) {
    const payload = toBase64(packet.bytes);
    const rateHz = (packet.bytes.length / 2) * 50;
    const sound = { codec: "pcm16", rate_hz: rateHz, duration_us: 20_000, payload };
    link.send("audio", sound, { timeUs: link.toUs(packet.capturedMs) });
  }
}

function say(text) {
  const words = text.trim();
  if (!words || !link) {
    return;
  }
  link.send("text_input", { text: words });
  lastVoiceMs = null;
  stopwatch.start(link.nowUs(), "After you sent it");
  element("caption").textContent = words;
  element("caption").dataset.final = "true";
  journal.note("typed", words);
}

function setMuted(now) {
  muted = now;
  element("mute").setAttribute("aria-pressed", String(muted));
  if (muted) {
    link?.send("audio_end", { last_audio_sequence: link.lastAudioSequence, reason: "muted" });
  }
  link?.send("mute", { muted });
  journal.note("mute", muted ? "on" : "off");
}

function setLookingUp(now) {
  lookingUp = now;
  element("look").setAttribute("aria-pressed", String(lookingUp));
  link?.send("head_position", {
    posture: lookingUp ? "up" : "level",
    pitch_cdeg: lookingUp ? PITCH_UP_CDEG : 0,
    yaw_cdeg: 0,
  });
  draw();
}

function answer(choice) {
  if (approval !== null) {
    link?.send("approval_answer", { approval, choice });
    settle(approval);
  }
}

function settle(which) {
  if (which === null || which === approval) {
    approval = null;
    element("approval").hidden = true;
  }
}

// ---- what is seen ----

function draw() {
  clearTimeout(redraw);
  const now = performance.now();
  const view = lookingUp ? views.dashboard : views.main;
  const content = view.content(now);
  element("view-name").textContent = lookingUp ? "dashboard" : "main";
  if (content) {
    lens.drawContent(content);
  } else {
    lens.draw(lookingUp ? ownDashboard() : []);
  }
  const waitMs = Math.min(view.nextMs() - now, lookingUp ? 1000 : Infinity);
  if (Number.isFinite(waitMs)) {
    redraw = setTimeout(draw, Math.max(waitMs, 10));
  }
}

/** What these glasses show by themselves while the gateway has nothing for the dashboard. */
function ownDashboard() {
  const now = new Date();
  const day = now.toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long" });
  return [now.toLocaleTimeString("en-GB"), day, "", link ? "connected" : "not connected"];
}

function listening(state) {
  page.dataset.listening = state;
  const idle = wakePhrase ? `say “${cut(wakePhrase)}”` : wakePhrase === "" ? "just talk" : "ready";
  const words = { idle, wake: "listening" };
  element("sign-text").textContent = words[state] ?? state;
  if (state === "thinking" || state === "speaking") {
    journal.note("state", state);
  }
}

function cut(text) {
  const letters = [...text];
  return letters.length > WAKE_LETTERS_MAX ? `${letters.slice(0, WAKE_LETTERS_MAX - 1).join("")}…` : text;
}

/** Asks the gateway which words wake it. */
async function learnWakePhrase() {
  const response = await fetch("/try/wake.json");
  if (!response.ok) {
    return;
  }
  const { phrases, always } = await response.json();
  wakePhrase = "";
  if (!always && phrases.length > 0) {
    wakePhrase = phrases[0].replace(/(^|\s)\S/gu, (letter) => letter.toUpperCase());
    element("wake").textContent = `${wakePhrase}, `;
  }
}

function applyLevel(name, percent) {
  if (name === "display.brightness") {
    element("lens").style.opacity = String(0.15 + 0.85 * (percent / 100));
    element("brightness").textContent = String(percent);
  } else {
    volume = percent;
    speaker?.setVolume(percent);
    element("volume").textContent = String(percent);
  }
}

function status(state, text) {
  const line = element("status");
  line.dataset.state = state;
  line.textContent = text;
  element("start").textContent = wanted ? "Stop" : "Start";
  element("start").classList.toggle("primary", !wanted);
}

function problem(text) {
  element("problem").hidden = text === "";
  element("problem").textContent = text;
}

function enable(on) {
  const parts = ["main", "mute", "words", "send"].map(element);
  for (const part of [...parts, ...element("examples").children]) {
    part.disabled = !on;
  }
}

// ---- wiring ----

element("start").onclick = () => (wanted ? stop() : start());
element("main").onclick = () => link?.send("button", { button: "main", action: "press" });
element("mute").onclick = () => setMuted(!muted);
element("look").onclick = () => setLookingUp(!lookingUp);
element("yes").onclick = () => answer("yes");
element("no").onclick = () => answer("no");
element("typed").onsubmit = (event) => {
  event.preventDefault();
  say(element("words").value);
  element("words").value = "";
};
element("examples").onclick = ({ target }) => {
  if (target instanceof HTMLButtonElement) {
    say(target.textContent);
  }
};
element("forget").onclick = async () => {
  await stop();
  await forgetIdentity();
  problem("");
  journal.note("key", "forgotten; the next start pairs anew");
};
addEventListener("pagehide", () => link?.close("power_off", "the page was closed"));

draw();
// Without it the page says less, and works all the same.
await learnWakePhrase().catch(() => {});
// For tests and bookmarks. The browser still asks for the microphone, and shows that it is on.
if (new URLSearchParams(location.search).get("auto") === "1") {
  start();
}
