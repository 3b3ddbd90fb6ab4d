// The page: which part does what the wearer presses and says, and what the gateway sends.

import { fromBase64, toBase64, toSamples } from "./bytes.js";
import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { layOut } from "./display.js";
import { forgetIdentity } from "./identity.js";
import { Journal } from "./journal.js";
import { Loss } from "./loss.js";
import { Microphone } from "./microphone.js";
import { Question } from "./question.js";
import { Session } from "./resume.js";
import { Screen } from "./screen.js";
import { MICROPHONE_HZ, SPEAKER_HZ } from "./session.js";
import { SoundChoice } from "./sound.js";
import { openSpeaker } from "./speaker.js";
import { Speeches } from "./speeches.js";
import { TalkButton } from "./talk.js";
import { OFFERS, Tools } from "./tools.js";
import { Typing } from "./typing.js";
import { Waits } from "./waits.js";
import { caption, problem, showState } from "./words.js";

/** A last word so long before the gateway began to hear a voice belongs to something else. */
const NOTICED_MS_MAX = 3_000;
/** Held for less than this the talk button was pressed, not held (PROTOCOL.md section 11). */
const PRESS_MS_MAX = 400;
const PITCH_UP_CDEG = 2500;
/** Typed requests that wait for a session. */
const WAITING_MAX = 4;
/** What became of a question, in the words of the conversation. */
const SETTLED = { yes: "Allowed", no: "Refused", dismissed: "Withdrawn", expired: "Not answered in time" };

const element = (id) => document.getElementById(id);
let speaker = null;
let wantsMicrophone = true;
let muted = false;
/** The microphone is on again, and the gateway has not said so yet. */
let unmuting = false;
let lookingUp = false;
let state = "off";
/** Whether the microphone is off: here, or by the gateway, which was told so in words. */
const isMuted = () => muted || (state === "muted" && !unmuting);
let lastVoiceMs = null;
/** When the gateway began to hear a voice. */
let hearingMs = 0;
let heldMs = 0;
/** Requests that were typed before there is a session. */
const waiting = [];
/** What the page knows of the gateway before it connects. */
let about = { phrases: null, always: false, console: false };

const page = element("glasses");
const journal = new Journal(element("journal"));
const screen = new Screen(element);
const waits = new Waits();
const conversation = new Conversation(element("transcript"), counted);
const question = new Question(answered);
const sound = new SoundChoice(soundChosen);
const tools = new Tools(applyLevel);
const talk = new TalkButton(element("talk"), { down: talkDown, up: talkUp });
const session = new Session();
const microphone = new Microphone(MICROPHONE_HZ, { heard, ended: microphoneEnded });
const speeches = new Speeches(session, conversation);
const loss = new Loss(session, status, chime, () => microphone.isOpen && !isMuted());
const connection = new Connection(session, {
  trying: (isFirst, isDoubtful) => loss.trying(isFirst, isDoubtful),
  opened,
  frame: handle,
  lost,
  refused: (code, message) => journal.note("session", `refused (${code} ${message})`),
  closed,
  failed,
  pairing: (code) => problem(code && `To pair this browser, run on the gateway's machine:\nlorgnette devices pair ${code}`),
});

// ---- connection ----

async function start(withMicrophone = wantsMicrophone) {
  wantsMicrophone = withMicrophone;
  problem("");
  await connection.start(prepare, () => microphone.isOpen);
}

/** What needs the click that brought us here. */
async function prepare() {
  if (!speaker) {
    const fresh = await openSpeaker(SPEAKER_HZ, played);
    // Meanwhile the wearer may have left, or pressed once more.
    if (speaker || !connection.wanted) {
      await fresh.close();
    } else {
      speaker = fresh;
    }
  }
  speaker?.setVolume(tools.level("audio.volume"));
  await speaker?.choose(sound.loudspeaker).catch(() => {});
  if (wantsMicrophone && connection.wanted) {
    await listen();
  }
}

/** A session has a link: the one before goes on, was left by a gateway that was restarted, or another one begins. */
function opened(welcome, began) {
  const { session: number, gateway_name: gateway, user_name: user } = welcome;
  const how = { resumed: "goes on", continued: "goes on after a restart", new: `with ${gateway} as ${user}` };
  journal.note("session", `session ${number} ${how[began]}`);
  page.dataset.session = String(number);
  if (began === "resumed") {
    screen.connect(true);
  } else {
    begin();
  }
  state = welcome.listening;
  status("open", "Connected");
  loss.end(began !== "new");
  waiting.splice(0).forEach(say);
}

/** A new session begins. */
function begin() {
  // The gateway may have been started anew, with other settings.
  learnAbout().then(() => listening(state)).catch(() => {});
  unmuting = false;
  speeches.begin();
  speaker?.reset();
  tools.forgetCalls();
  question.forget();
  caption("", true);
  conversation.begin();
  waits.reset();
  screen.reset(true);
  session.send("tool_list", { revision: 1, tools: OFFERS });
  if (muted) {
    session.send("mute", { muted });
  }
}

/** Opens the chosen microphone; without one the page is for typing. */
async function listen() {
  try {
    await microphone.use(sound.microphone);
    if (microphone.isOpen) {
      journal.note("microphone", "on");
      await sound.refresh();
    }
  } catch (error) {
    problem(`No microphone: ${error.message}. Typed requests work all the same.`, "microphone");
  }
}

/** The system took the microphone away. */
function microphoneEnded() {
  session.endSound("failed");
  level(0);
  problem("The microphone is gone. Typed requests still work.", "microphone");
  listening(state);
}

/** The link is lost, and the session waits for another one. */
function lost(code, reason) {
  journal.note("session", `link lost (${code}${reason ? ` ${reason}` : ""})`);
  screen.connect(false);
  loss.begin();
}

function closed(code, reason) {
  journal.note("session", `closed (${code}${reason ? ` ${reason}` : ""})`);
  leave();
  loss.begin();
}

/** What the session leaves behind. */
function leave() {
  speaker?.hush(0, 30);
  question.forget();
  caption("", true);
  screen.reset(false);
  listening("off");
}

function failed(message, isKey) {
  journal.note("problem", message);
  dropWaiting();
  shutDown();
  const remedy = isKey ? " If that is as it should be, forget this browser's key and start again." : "";
  const whole = /[.!?…]$/u.test(message) ? message : `${message}.`;
  problem(whole.charAt(0).toUpperCase() + whole.slice(1) + remedy, isKey ? "key" : "");
  status("failed", "Not connected");
}

async function stop() {
  waiting.push(...session.unsentTexts);
  connection.stop();
  problem("");
  dropWaiting();
  await shutDown();
}

/** What was typed for a session that does not come is not kept for a later one: the wearer has turned away from it. */
function dropWaiting() {
  waiting.splice(0).forEach((text) => conversation.noted(`Not sent: ${text}`));
}

async function shutDown() {
  loss.forget();
  leave();
  status("idle", "Not connected");
  level(0);
  const used = speaker;
  speaker = null;
  await Promise.all([microphone.close(), used?.close()]);
}

// ---- frames ----

const HANDLERS = {
  listening: (frame) => listening(frame.state),
  transcript: understood,
  display(frame) {
    if (screen.handle(frame) && frame.action !== "clear") {
      lap("display", frame.turn);
      journal.note("display", layOut(frame.content).join(" / "));
    }
  },
  speech_start(frame) {
    speeches.start(frame);
    speaker?.start(frame.speech);
  },
  clause(frame) {
    conversation.said(frame);
    journal.note("speech", frame.text);
  },
  speech_chunk(frame) {
    lap("first sound arrived", frame.turn);
    speaker?.chunk(frame, toSamples(fromBase64(frame.payload)));
  },
  speech_end: (frame) => speaker?.end(frame),
  hush: (frame) => speaker?.hush(frame.speech, frame.fade_ms),
  tool_activity(frame) {
    screen.work(frame);
    lap(frame.state === "started" ? "tool started" : "tool done", frame.turn);
    journal.note("tool", `${frame.label}: ${frame.state}`);
  },
  tool_call(frame) {
    session.send("tool_result", tools.call(frame), { turn: frame.turn });
    journal.note("device", `${frame.name} ${frame.arguments}`);
  },
  approval_request(frame) {
    question.show(frame);
    listening(state);
    journal.note("question", `${frame.title} ${frame.message}`);
  },
  approval_settled(frame) {
    const title = question.settle(frame.approval);
    if (title) {
      conversation.noted(`${SETTLED[frame.choice] ?? "Settled"}: ${title}`);
    }
    journal.note("question", `settled: ${frame.choice}`);
  },
  chime: (frame) => chime(frame.sound),
  goodbye: (frame) => journal.note("goodbye", `${frame.reason} ${frame.message}`),
};

function handle(frame) {
  if (frame.turn > waits.turn) {
    waits.seen(frame.turn);
  }
  if (Object.hasOwn(HANDLERS, frame.kind)) {
    HANDLERS[frame.kind](frame);
  }
}

function understood(frame) {
  if (!frame.is_final) {
    caption(frame.text, false);
    return;
  }
  caption("", true);
  if (frame.addressed && frame.text) {
    const isOwn = lastVoiceMs !== null && lastVoiceMs > hearingMs - NOTICED_MS_MAX;
    waits.begin(isOwn ? session.toUs(lastVoiceMs) : null, "After your last word (judged by level)");
    lap("understood", null);
    conversation.asked(frame.text, "");
  }
  if (frame.text) {
    journal.note("heard", frame.addressed ? frame.text : `(not for the glasses) ${frame.text}`);
  }
}

function played(report) {
  const turn = speeches.played(report);
  if (turn === null) {
    return;
  }
  if (report.playedUs > 0) {
    lap("first sound played", turn);
  }
  if (report.state === "finished" || report.state === "stopped") {
    journal.note("played", `${(report.playedUs / 1e6).toFixed(2)} s, ${report.state}`);
  }
  page.dataset.playedMs = String(Math.round(report.playedUs / 1000));
  page.dataset.playState = report.state;
}

function chime(sound) {
  speaker?.chime(sound);
  page.dataset.chime = sound;
}

/** Something of a turn happened; null: of the request that has no turn yet. */
function lap(name, turn) {
  if (session.isOpen && turn !== 0 && waits.lap(name, turn, session.nowUs())) {
    conversation.waited(waits.turn, waits.summary(), waits.details(session.roundTripMs));
  }
}

// ---- the wearer ----

function heard(packet) {
  if (packet.voice) {
    lastVoiceMs = packet.capturedMs + 20;
  }
  level(muted || !session.isOpen ? 0 : Math.max(0, Math.min(1, (packet.levelDb + 65) / 60)));
  if (!muted) {
    const payload = toBase64(packet.bytes);
    const rateHz = (packet.bytes.length / 2) * 50;
    const sent = { codec: "pcm16", rate_hz: rateHz, duration_us: 20_000, payload };
    session.send("audio", sent, { timeUs: session.toUs(packet.capturedMs) });
  }
}

function level(value) {
  element("talk").style.setProperty("--level", value.toFixed(3));
}

function say(text) {
  if (!session.isOpen) {
    if (waiting.length === WAITING_MAX) {
      conversation.noted(`Not sent, since ${WAITING_MAX} requests wait already: ${text}`);
    } else {
      waiting.push(text);
    }
    if (!connection.wanted) {
      // Who types need not be asked for a microphone.
      start(false);
    }
    return;
  }
  session.send("text_input", { text });
  lastVoiceMs = null;
  waits.begin(session.nowUs(), "After you sent it");
  conversation.asked(text, "typed");
  journal.note("typed", text);
}

/** The talk button goes down; whether it is held from now on. */
function talkDown() {
  if (!connection.wanted || (session.isOpen && !microphone.isOpen)) {
    takeMicrophone();
  }
  if (!session.isOpen || !microphone.isOpen) {
    return false;
  }
  heldMs = performance.now();
  session.send("button", { button: "main", action: "down" });
  listening(state, true);
  return true;
}

function talkUp() {
  if (performance.now() - heldMs >= PRESS_MS_MAX) {
    session.endSound("released");
  }
  session.send("button", { button: "main", action: "up" });
  listening(state, false);
}

/** Stops what is said or done; a question that has just come is left alone. */
function halt() {
  const busy = ["thinking", "speaking"].includes(state) || question.stands;
  if (busy && (!question.stands || question.isReadable)) {
    session.send("button", { button: "main", action: "press" });
  }
}

function setMuted(now) {
  muted = now;
  unmuting = !now;
  if (muted) {
    talk.release();
    level(0);
    session.endSound("muted");
  }
  session.send("mute", { muted });
  loss.refresh();
  listening(state);
  journal.note("mute", muted ? "on" : "off");
}

function setLookingUp(now) {
  lookingUp = now;
  element("look").setAttribute("aria-pressed", String(lookingUp));
  session.send("head_position", {
    posture: lookingUp ? "up" : "level",
    pitch_cdeg: lookingUp ? PITCH_UP_CDEG : 0,
    yaw_cdeg: 0,
  });
  screen.look(lookingUp);
}

function answered(approval, choice) {
  session.send("approval_answer", { approval, choice });
}

/** The wearer chose another microphone or loudspeaker. */
async function soundChosen(which) {
  if (which === "loudspeaker") {
    await speaker?.choose(sound.loudspeaker).catch((error) => problem(`That loudspeaker cannot be used: ${error.message}.`));
  } else if (microphone.isWanted) {
    await listen();
    listening(state);
  }
}

/** Takes up the microphone after all: glasses without one are another pair of glasses, so it connects anew. */
async function takeMicrophone() {
  if (connection.wanted) {
    // It is for the session that begins.
    waiting.push(...session.unsentTexts);
    connection.stop();
    await shutDown();
  }
  await start(true);
}

// ---- what is seen ----

function listening(now, held = talk.held) {
  if (now !== state && ["thinking", "speaking"].includes(now)) {
    journal.note("state", now);
  }
  if (now !== state && now === "listening") {
    hearingMs = performance.now();
  }
  state = now;
  unmuting &&= state === "muted";
  page.dataset.listening = state;
  const [connecting, hasMicrophone] = [connection.wanted && !session.isOpen, microphone.isOpen];
  showState({ state, held, muted: isMuted(), asked: question.stands, about, connecting, isLost: loss.isTold, hasMicrophone });
}

function counted(entries) {
  element("first").hidden = entries > 0;
  element("tools").hidden = entries === 0;
}

function applyLevel(name, percent) {
  if (name === "display.brightness") {
    element("lens").style.opacity = String(0.15 + 0.85 * (percent / 100));
    element("brightness").textContent = String(percent);
  } else {
    speaker?.setVolume(percent);
    element("volume").value = String(percent);
    element("volume-percent").textContent = `${percent} %`;
  }
}

function status(now, text) {
  const line = element("status");
  line.dataset.state = now;
  line.textContent = text;
  element("leave").hidden = !connection.wanted;
  listening(state);
}

/** Asks the gateway which words wake it, who hears and who answers, and whether there is a console. */
async function learnAbout() {
  const response = await fetch("/try/about.json");
  if (response.ok) {
    about = await response.json();
    element("console").hidden = !about.console;
  }
}

// ---- wiring ----

element("leave").onclick = () => stop();
element("mute").onclick = () => setMuted(!isMuted());
element("touch").onclick = () => session.send("touch", { gesture: "tap" });
element("look").onclick = () => setLookingUp(!lookingUp);
element("retry-microphone").onclick = () => takeMicrophone();
element("volume").oninput = ({ target }) => tools.set("audio.volume", Number(target.value));
new Typing(element("typed"), element("words"), say);
element("examples").onclick = ({ target }) => {
  if (target instanceof HTMLButtonElement) {
    say(target.textContent);
  }
};
element("copy").onclick = async ({ target }) => {
  await navigator.clipboard.writeText(conversation.text());
  target.textContent = "Copied";
  setTimeout(() => (target.textContent = "Copy the conversation"), 2000);
};
element("clear").onclick = () => conversation.clear();
for (const id of ["forget", "forget-now"]) {
  element(id).onclick = async () => {
    await stop();
    await forgetIdentity();
    journal.note("key", "forgotten; the next start pairs anew");
  };
}
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    halt();
  }
});
addEventListener("pagehide", () => stop());

conversation.restore();
// Without it the page says less, and works all the same.
await learnAbout().catch(() => {});
listening(state);
// For tests and bookmarks. The browser still asks for the microphone, and shows that it is on.
if (new URLSearchParams(location.search).get("auto") === "1") {
  start();
}
