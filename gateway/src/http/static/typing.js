// The field for typed requests, with a history as a shell has it.

const KEPT = "lorgnette-typed";
/** Requests that come back with the arrow keys. */
const REQUESTS_MAX = 50;

export class Typing {
  #field;
  #requests = [];
  /** Which one stands in the field; one behind the last: what is being typed. */
  #at = 0;
  #draft = "";

  /** `send(text)` gets each request. */
  constructor(form, field, send) {
    this.#field = field;
    try {
      this.#requests = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]").map(String).slice(-REQUESTS_MAX);
    } catch {
      // Kept by another version: begun anew.
    }
    this.#at = this.#requests.length;
    form.onsubmit = (event) => {
      event.preventDefault();
      const text = field.value.trim();
      field.value = "";
      if (text) {
        this.#keep(text);
        send(text);
      }
    };
    field.onkeydown = (event) => {
      if (event.key === "ArrowUp" || event.key === "ArrowDown") {
        event.preventDefault();
        this.#go(event.key === "ArrowUp" ? -1 : 1);
      }
    };
  }

  #keep(text) {
    this.#requests = [...this.#requests.filter((known) => known !== text), text].slice(-REQUESTS_MAX);
    this.#at = this.#requests.length;
    this.#draft = "";
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(this.#requests));
    } catch {
      // Then they are lost with a reload.
    }
  }

  #go(step) {
    if (this.#at === this.#requests.length) {
      this.#draft = this.#field.value;
    }
    this.#at = Math.min(Math.max(this.#at + step, 0), this.#requests.length);
    const text = this.#requests[this.#at] ?? this.#draft;
    this.#field.value = text;
    this.#field.setSelectionRange(text.length, text.length);
  }
}
