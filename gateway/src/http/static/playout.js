// On the browser's audio thread: plays speeches and counts what came out.

/** Sound that is waited for before a speech begins (PROTOCOL.md section 8). */
const BEGIN_MS = 60;
/** A speech whose last chunk does not come is complete so long after its end. */
const END_WAIT_MS = 200;
/** Longest silence put in for chunks that are missing. */
const GAP_MS_MAX = 1000;
/** More than this of one speech is not kept: the gateway sends at most 600 ms ahead. */
const KEPT_MS_MAX = 2000;
const REPORT_MS = 100;
const SPEECHES_MAX = 4;

function frames(milliseconds) {
  return Math.round((milliseconds * sampleRate) / 1000);
}

class Speech {
  constructor(id) {
    this.id = id;
    this.parts = [];
    this.waiting = 0;
    this.at = 0;
    this.end = 0;
    /** Sequence of its latest chunk; how it ends, once that is known: { sequence, durationUs, frame }. */
    this.sequence = 0;
    this.ending = null;
    this.state = "waiting";
    this.clause = 0;
    /** Place in the speech up to which it came out, in samples. */
    this.played = 0;
    this.fade = null;
  }

  /** Whether no more sound comes. Over a resume the end may come before the last chunks. */
  get isComplete() {
    return (
      this.ending !== null &&
      (this.sequence >= this.ending.sequence || currentFrame >= this.ending.frame + frames(END_WAIT_MS))
    );
  }

  push({ sequence, clause, positionUs, samples }) {
    this.sequence = sequence;
    const position = Math.round((positionUs * sampleRate) / 1e6);
    const gap = Math.min(position - this.end, frames(GAP_MS_MAX));
    if (gap > 0) {
      this.parts.push({ clause, samples: new Float32Array(gap), from: position - gap });
      this.waiting += gap;
    }
    this.parts.push({ clause, samples, from: position });
    this.waiting += samples.length;
    this.end = position + samples.length;
  }

  /** The next sample, or null. */
  next() {
    const part = this.parts[0];
    if (!part) {
      return null;
    }
    const sample = part.samples[this.at];
    this.at += 1;
    this.waiting -= 1;
    this.clause = part.clause;
    this.played = part.from + this.at;
    if (this.at >= part.samples.length) {
      this.parts.shift();
      this.at = 0;
    }
    return sample ?? 0;
  }
}

class Playout extends AudioWorkletProcessor {
  constructor() {
    super();
    this.speeches = [];
    this.reported = { at: 0, clause: 0 };
    this.port.onmessage = ({ data }) => this.handle(data);
  }

  handle(message) {
    const speech = this.speeches.find(({ id }) => id === message.speech);
    switch (message.kind) {
      case "start":
        if (this.speeches.length < SPEECHES_MAX) {
          this.speeches.push(new Speech(message.speech));
        } else {
          this.report(new Speech(message.speech), "stopped");
        }
        break;
      case "chunk":
        speech?.push(message);
        if (speech && speech.waiting > frames(KEPT_MS_MAX)) {
          this.drop(speech);
        }
        break;
      case "end":
        if (speech) {
          speech.ending = { sequence: message.sequence, durationUs: message.durationUs, frame: currentFrame };
        }
        break;
      case "hush":
        for (const each of [...this.speeches]) {
          if (message.speech === 0 || each.id === message.speech) {
            this.hush(each, frames(message.fadeMs));
          }
        }
        break;
    }
  }

  hush(speech, fade) {
    if (speech.state === "playing" && fade > 0) {
      speech.fade ??= { left: fade, whole: fade };
    } else {
      this.drop(speech);
    }
  }

  drop(speech) {
    this.speeches = this.speeches.filter((each) => each !== speech);
    this.report(speech, "stopped");
  }

  process(_inputs, [[output]]) {
    const speech = this.speeches[0];
    if (speech) {
      this.play(speech, output);
    }
    return true;
  }

  play(speech, output) {
    if (speech.state === "waiting" && speech.waiting < frames(BEGIN_MS) && !speech.isComplete) {
      return;
    }
    const waitingBefore = speech.waiting;
    for (let index = 0; index < output.length; index += 1) {
      const sample = speech.next();
      if (sample === null) {
        break;
      }
      output[index] = sample;
      if (speech.fade) {
        output[index] *= speech.fade.left / speech.fade.whole;
        speech.fade.left -= 1;
        if (speech.fade.left === 0) {
          this.drop(speech);
          return;
        }
      }
    }
    this.tell(speech, waitingBefore - speech.waiting);
  }

  /** Says where the speech stands, where that is news or long ago. */
  tell(speech, added) {
    if (speech.parts.length === 0 && (speech.isComplete || speech.fade)) {
      this.speeches.shift();
      this.report(speech, speech.fade ? "stopped" : "finished");
    } else if (speech.parts.length === 0 && added === 0) {
      if (speech.state !== "starved") {
        speech.state = "starved";
        this.report(speech, "starved");
      }
    } else if (
      speech.state !== "playing" ||
      speech.clause !== this.reported.clause ||
      currentFrame - this.reported.at >= frames(REPORT_MS)
    ) {
      speech.state = "playing";
      this.report(speech, "playing");
    }
  }

  report(speech, state) {
    this.reported = { at: currentFrame, clause: speech.clause };
    this.port.postMessage({
      speech: speech.id,
      clause: speech.clause,
      playedUs: state === "finished" ? speech.ending.durationUs : Math.round((speech.played * 1e6) / sampleRate),
      state,
    });
  }
}

registerProcessor("playout", Playout);
