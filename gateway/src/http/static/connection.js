// Holds a session with the gateway while the wearer wants one: connects, and connects again.

import { loadIdentity } from "./identity.js";
import { connect, Refused, Unreached, WrongGateway } from "./session.js";

/** Waits before each new attempt, in seconds (PROTOCOL.md section 7). */
const BACK_OFF_S = [0, 0.5, 1, 2, 4, 8];
/** Longest time that a timer of the browser takes. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** Attempts that a restart of the gateway takes. */
const DOUBT_AFTER = 3;
/** Reasons after which a new attempt would only be refused again. */
const FINAL_GOODBYES = {
  replaced: "Another tab took over. Press Talk to talk here again.",
  revoked: "The operator revoked this browser's key.",
};
const FINAL_REJECTS = ["revoked", "pairing_failed", "unsupported_version", "no_common_format"];
/** The only ones that end a session (PROTOCOL.md section 9). */
const ENDING_REJECTS = ["revoked", "not_paired", "pairing_failed"];

/**
 * Connections of a session. `on` is told: `trying(isFirst, isDoubtful)` with each attempt that goes on or is due,
 * `opened(welcome, began)` with how the session began ("resumed", "continued", "new"), `frame(frame)`, `lost(code, reason)`:
 * the session waits for the next connection, `refused(code, message)`: it asks again later, `closed(code, reason)`: it is over,
 * `failed(message, isKey)` for good, and `pairing(code)`, with "" once it is done.
 */
export class Connection {
  #session;
  #on;
  #wanted = false;
  #hasMicrophone = () => false;
  #attempts = 0;
  /** Number of the attempt: what an older one still says is not heard. */
  #number = 0;
  /** The gateway's goodbye, until the connection closes. */
  #goodbye = null;

  constructor(session, on) {
    this.#session = session;
    this.#on = on;
  }

  /** Whether the wearer wants to be connected. */
  get wanted() {
    return this.#wanted;
  }

  /** Connects once `prepare()` is done, which may take as long as the wearer thinks about a permission. */
  async start(prepare, hasMicrophone) {
    this.#wanted = true;
    this.#hasMicrophone = hasMicrophone;
    this.#attempts = 0;
    const mine = (this.#number += 1);
    this.#on.trying(true, false);
    try {
      await prepare();
    } catch (error) {
      if (mine === this.#number) {
        this.#failed(error);
      }
      return;
    }
    if (mine === this.#number) {
      await this.#open();
    }
  }

  stop() {
    this.#wanted = false;
    this.#number += 1;
    this.#session.end("power_off", "the page was switched off");
  }

  async #open() {
    const mine = (this.#number += 1);
    const current = (act) => (...what) => mine === this.#number && act(...what);
    try {
      const { link, welcome } = await connect(await loadIdentity(), this.#session, this.#hasMicrophone(), {
        frame: current((frame) => this.#frame(frame)),
        close: current((...what) => this.#closed(...what)),
        pairing: current(this.#on.pairing),
      });
      if (mine !== this.#number) {
        link.close("power_off", "");
        return;
      }
      this.#attempts = 0;
      this.#goodbye = null;
      this.#on.opened(welcome, this.#session.attach(link, welcome));
    } catch (error) {
      if (mine === this.#number) {
        this.#failed(error);
      }
    }
  }

  #frame(frame) {
    if (frame.kind === "goodbye") {
      this.#goodbye = frame;
    }
    if (this.#session.handle(frame)) {
      this.#on.frame(frame);
    }
  }

  #closed(code, reason, isOver) {
    this.#session.detach();
    if (isOver || !this.#session.canResume) {
      this.#over(code, reason);
    } else {
      this.#on.lost(code, reason);
    }
    const { reason: said, retry_after_ms: retryAfterMs } = this.#goodbye ?? { reason: "", retry_after_ms: 0 };
    if (Object.hasOwn(FINAL_GOODBYES, said)) {
      this.#failed(new Error(FINAL_GOODBYES[said]));
    } else {
      this.#again(retryAfterMs);
    }
  }

  #over(code, reason) {
    this.#session.end("unspecified", "");
    this.#on.closed(code, reason);
  }

  /** Tries again after the back-off, and not before the gateway wishes. */
  #again(retryAfterMs) {
    const delayS = BACK_OFF_S[Math.min(this.#attempts, BACK_OFF_S.length - 1)];
    this.#attempts += 1;
    this.#on.trying(false, this.#attempts > DOUBT_AFTER);
    const delayMs = Math.max(delayS * 1000 * (1 + Math.random() / 4), Math.min(retryAfterMs, TIMER_MS_MAX));
    const mine = this.#number;
    setTimeout(() => {
      if (this.#wanted && mine === this.#number) {
        this.#open();
      }
    }, delayMs);
  }

  #failed(error) {
    const isRefused = error instanceof Refused;
    const endsSession = isRefused && ENDING_REJECTS.includes(error.code);
    const goesOn = this.#session.canResume && !endsSession;
    const isFinal = isRefused ? FINAL_REJECTS.includes(error.code) && !goesOn : !(error instanceof Unreached);
    if (isFinal || !this.#wanted) {
      this.stop();
      this.#on.failed(error.message, error instanceof WrongGateway || error.code === "revoked");
      return;
    }
    if (endsSession && this.#session.isOpen) {
      this.#over(error.code, error.message);
    } else if (isRefused) {
      this.#on.refused(error.code, error.message);
    }
    this.#again(isRefused ? error.retryAfterMs : 0);
  }
}
