// How the wearer learns of a lost link: not of a blink, but of a second, and then of what became of the session.

/** Milliseconds without a link before it is told (PROTOCOL.md section 9). */
const TOLD_AFTER_MS = 1000;
/** How long the page says what became of the session. */
const NEWS_MS = 8000;
const BACK = "Back.";
const LESS = "Back. What was said first is too old, and lost.";
const ANEW = "Back, but the session could not go on: please say it again.";

export class Loss {
  #show;
  #chime;
  #session;
  #hears;
  #doubt = "";
  #timer = null;
  #isLost = false;
  #isTold = false;

  /** `show(state, text)` says how the link is, `chime(sound)` makes a sound, `hears()`: whether the microphone is on. */
  constructor(session, show, chime, hears) {
    this.#session = session;
    this.#show = show;
    this.#chime = chime;
    this.#hears = hears;
  }

  /** Whether the wearer knows that the link is lost. */
  get isTold() {
    return this.#isTold;
  }

  /** The link is lost. */
  begin() {
    if (this.#isLost) {
      return;
    }
    clearTimeout(this.#timer);
    this.#isLost = true;
    this.#timer = setTimeout(() => {
      this.#isTold = true;
      this.#chime("lost");
      this.refresh();
    }, TOLD_AFTER_MS);
  }

  /** An attempt to connect is made or due; `isDoubtful`: there were several. */
  trying(isFirst, isDoubtful) {
    this.#doubt = isDoubtful ? " Is the gateway running?" : "";
    if (this.#isTold) {
      this.refresh();
    } else {
      const isNew = isFirst || this.#session.isOpen;
      this.#show("connecting", isNew ? "Connecting…" : `Connection lost, trying again…${this.#doubt}`);
    }
  }

  /** Says it again, where what is kept may have changed. */
  refresh() {
    if (this.#isTold) {
      this.#show("lost", `The connection is lost. ${this.#kept()}${this.#doubt}`);
    }
  }

  /**
   * There is a link again: the session goes on, with or without the first of what was said, or another one began in its
   * place. What is lost is always told. A link that was not lost is no news.
   */
  end(goesOn) {
    const [wasLost, wasTold] = [this.#isLost, this.#isTold];
    const keepsAll = goesOn && !this.#session.hasLost;
    this.forget();
    if (wasTold || (wasLost && !keepsAll)) {
      this.#chime(keepsAll ? "back" : "error");
      this.#show("open", !goesOn ? ANEW : keepsAll ? BACK : LESS);
      this.#timer = setTimeout(() => this.#show("open", "Connected"), NEWS_MS);
    }
  }

  /** Nothing waits for the link any more. */
  forget() {
    clearTimeout(this.#timer);
    this.#isLost = false;
    this.#isTold = false;
    this.#doubt = "";
  }

  /** What becomes of what the wearer says and does meanwhile. */
  #kept() {
    if (!this.#session.isOpen) {
      return "Trying again…";
    }
    return this.#hears() ? "What you say is kept." : "What you type is kept.";
  }
}
