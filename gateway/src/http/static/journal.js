// What happened when.

/** Lines that stay: some minutes of talk. */
const LINES_MAX = 200;

/** The list of events; the newest is on top. */
export class Journal {
  #list;

  constructor(list) {
    this.#list = list;
  }

  note(kind, text) {
    const item = document.createElement("li");
    item.dataset.kind = kind;
    const time = document.createElement("time");
    const now = new Date();
    time.textContent = `${now.toLocaleTimeString("en-GB")}.${String(now.getMilliseconds()).padStart(3, "0")}`;
    const label = document.createElement("b");
    label.textContent = kind;
    const words = document.createElement("span");
    words.textContent = text;
    item.append(time, label, words);
    this.#list.prepend(item);
    while (this.#list.childElementCount > LINES_MAX) {
      this.#list.lastElementChild.remove();
    }
  }
}
