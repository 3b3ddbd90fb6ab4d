// The speeches of a session that are not over, and what is reported of them.

export class Speeches {
  #session;
  #conversation;
  /** { turn, clause, isHeard } by their numbers. */
  #open = new Map();

  constructor(session, conversation) {
    this.#session = session;
    this.#conversation = conversation;
  }

  /** A new session begins: what is left of the last one is not heard. */
  begin() {
    for (const [speech, { clause, isHeard }] of this.#open) {
      this.#conversation.stopped(speech, clause, isHeard);
    }
    this.#open.clear();
  }

  start({ speech, turn }) {
    this.#open.set(speech, { turn, clause: 0, isHeard: false });
  }

  /** Takes a report of the speaker; the turn of its speech, or null where that is over. */
  played({ speech, clause, playedUs, state }) {
    const known = this.#open.get(speech);
    if (!known) {
      return null;
    }
    const { turn } = known;
    this.#session.send("played", { speech, clause, played_us: playedUs, state }, { turn });
    this.#open.set(speech, { turn, clause, isHeard: playedUs > 0 });
    if (state === "stopped") {
      this.#conversation.stopped(speech, clause, playedUs > 0);
    }
    if (state === "finished" || state === "stopped") {
      this.#open.delete(speech);
    }
    return turn;
  }
}
