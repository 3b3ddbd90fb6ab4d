// What is on the lens: what the gateway shows, else what is being done.

import { Lens, View } from "./display.js";

/** A tool is shown at work once it takes longer than this, in milliseconds. */
const WORK_MS_MIN = 300;

export class Screen {
  #element;
  #lens;
  #views;
  #lookingUp = false;
  /** Labels of the tools at work, with when they began, by their call. */
  #working = new Map();
  #redraw = null;
  #connected = false;

  constructor(element) {
    this.#element = element;
    this.#lens = new Lens(element("rows"), element("display-text"));
    this.reset(false);
  }

  /** A session begins or ends: nothing of another one is shown. */
  reset(connected) {
    this.#connected = connected;
    this.#views = { main: new View(), dashboard: new View() };
    this.#working.clear();
    this.draw();
  }

  /** The link of the session is there, or lost: what is shown stays. */
  connect(connected) {
    this.#connected = connected;
    this.draw();
  }

  /** Takes a display command; whether it is for a view that these glasses have. */
  handle(command) {
    if (!Object.hasOwn(this.#views, command.view)) {
      return false;
    }
    this.#views[command.view].handle(command, performance.now());
    this.draw();
    return true;
  }

  work({ call, label, state }) {
    if (state === "started") {
      this.#working.set(call, { label, sinceMs: performance.now() });
    } else {
      this.#working.delete(call);
    }
    this.draw();
  }

  look(up) {
    this.#lookingUp = up;
    this.draw();
  }

  draw() {
    clearTimeout(this.#redraw);
    const now = performance.now();
    const view = this.#lookingUp ? this.#views.dashboard : this.#views.main;
    const content = view.content(now);
    const begun = [...this.#working.values()].map(({ label, sinceMs }) => ({ label, shownMs: sinceMs + WORK_MS_MIN }));
    const work = begun.findLast(({ shownMs }) => shownMs <= now)?.label ?? "";
    this.#element("view-name").textContent = this.#lookingUp ? "looking up" : "";
    const line = this.#element("activity");
    line.hidden = work === "";
    line.textContent = work && `Looking it up… (${work})`;
    if (content) {
      this.#lens.drawContent(content, now);
    } else if (this.#lookingUp) {
      this.#lens.draw(this.#ownDashboard());
    } else {
      this.#lens.draw(work ? ["Looking it up…", work] : []);
    }
    const nextMs = [view.nextMs(now), this.#lookingUp ? now + 1000 : Infinity, ...begun.map(({ shownMs }) => shownMs)];
    const waitMs = Math.min(...nextMs.filter((at) => at > now)) - now;
    if (Number.isFinite(waitMs)) {
      this.#redraw = setTimeout(() => this.draw(), Math.max(waitMs, 10));
    }
  }

  /** What these glasses show by themselves while the gateway has nothing for the dashboard. */
  #ownDashboard() {
    const now = new Date();
    const day = now.toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long" });
    return [now.toLocaleTimeString("en-GB"), day, "", this.#connected ? "connected" : "not connected"];
  }
}
