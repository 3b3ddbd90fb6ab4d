// The talk button, and the space bar in its place: held, it is down until it is let go.

/** Where the space bar is for typing or for pressing something else. */
const OWN_SPACE = "input, textarea, select, button, summary, a, [contenteditable]";

/** `down()` answers whether the button is held from then on; `up()` ends that. */
export class TalkButton {
  #button;
  #down;
  #up;
  #held = false;

  constructor(button, { down, up }) {
    this.#button = button;
    this.#down = down;
    this.#up = up;
    button.addEventListener("pointerdown", (event) => {
      if (event.button === 0) {
        button.setPointerCapture(event.pointerId);
        this.#press();
      }
    });
    for (const end of ["pointerup", "pointercancel"]) {
      button.addEventListener(end, () => this.release());
    }
    // On the button itself Enter is a press as well.
    button.addEventListener("keydown", (event) => {
      if (event.key === " " || event.key === "Enter") {
        event.preventDefault();
        this.#pressKey(event);
      }
    });
    // Assistive programs click without a pointer or a key.
    button.addEventListener("click", (event) => {
      if (event.detail === 0 && !this.#held) {
        this.#press();
        this.release();
      }
    });
    addEventListener("keydown", (event) => {
      const elsewhere = event.target instanceof Element && event.target.closest(OWN_SPACE);
      if (event.key === " " && !elsewhere && !event.ctrlKey && !event.metaKey && !event.altKey && !button.disabled) {
        event.preventDefault();
        this.#pressKey(event);
      }
    });
    addEventListener("keyup", (event) => {
      if (event.key === " " || event.key === "Enter") {
        this.release();
      }
    });
    // A key that comes up in another window is never heard of here.
    addEventListener("blur", () => this.release());
  }

  get held() {
    return this.#held;
  }

  release() {
    if (this.#held) {
      this.#held = false;
      this.#up();
    }
  }

  #pressKey(event) {
    if (!event.repeat) {
      this.#press();
    }
  }

  #press() {
    if (!this.#held && !this.#button.disabled) {
      this.#held = this.#down();
    }
  }
}
