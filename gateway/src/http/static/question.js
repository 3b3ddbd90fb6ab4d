// A question that wants a yes. It never takes the focus, and nothing of its first moment counts: who types or clicks
// then is in the middle of something else.

/** Milliseconds before anything counts (PROTOCOL.md section 11). */
const READ_MS = 500;

const element = (id) => document.getElementById(id);

export class Question {
  #card = element("approval");
  /** The latest one, as { number, title }, until the gateway has settled it. */
  #asked = null;
  #shownMs = 0;
  #untilMs = 0;
  #pressedMs = new Map();
  #ticker = null;
  #answered;

  /** `answered(number, choice)` is told what the wearer chose. */
  constructor(answered) {
    this.#answered = answered;
    for (const choice of ["yes", "no"]) {
      const button = element(choice);
      const pressed = () => this.#pressedMs.set(choice, performance.now());
      button.addEventListener("pointerdown", pressed);
      button.addEventListener("keydown", (event) => event.repeat || pressed());
      button.addEventListener("click", () => this.#choose(choice));
    }
  }

  /** Whether one stands. */
  get stands() {
    return !this.#card.hidden;
  }

  /** Whether it stands long enough to have been read. */
  get isReadable() {
    return this.stands && performance.now() >= this.#shownMs + READ_MS;
  }

  show({ approval, title, message, expires_ms: expiresMs }) {
    this.#asked = { number: approval, title };
    this.#shownMs = performance.now();
    this.#untilMs = this.#shownMs + expiresMs;
    this.#pressedMs.clear();
    element("approval-title").textContent = title;
    element("approval-message").textContent = message;
    this.#card.hidden = false;
    clearInterval(this.#ticker);
    this.#ticker = setInterval(() => this.#tick(), 100);
    this.#tick();
  }

  /** The gateway has settled it, by whatever answer came first; its title, or null where it is not known. */
  settle(number) {
    if (this.#asked?.number !== number) {
      return null;
    }
    const { title } = this.#asked;
    this.forget();
    return title;
  }

  /** It is of a session that is over. */
  forget() {
    this.#asked = null;
    this.#hide();
  }

  #hide() {
    if (!this.stands) {
      return;
    }
    clearInterval(this.#ticker);
    // Who was on one of its buttons goes on typing.
    if (this.#card.contains(document.activeElement)) {
      element("words").focus();
    }
    this.#card.hidden = true;
  }

  #tick() {
    this.#card.dataset.ready = String(this.isReadable);
    const leftS = Math.max(0, Math.ceil((this.#untilMs - performance.now()) / 1000));
    element("approval-left").textContent = `${leftS} s left`;
  }

  #choose(choice) {
    // A press that began before the question could be read is none, however long it was held. Where nobody pressed
    // anything, a program of the wearer's clicked: that counts from now.
    const pressedMs = this.#pressedMs.get(choice) ?? performance.now();
    this.#pressedMs.delete(choice);
    if (!this.stands || pressedMs < this.#shownMs + READ_MS) {
      return;
    }
    // Whether the answer comes in time, the gateway says.
    this.#hide();
    this.#answered(this.#asked.number, choice);
  }
}
