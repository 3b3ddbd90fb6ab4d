// The browser's speaker: speech by the worklet, chimes by oscillators, one volume for both.

/** Notes of the short sounds: hertz and seconds each. */
const CHIMES = {
  wake: [[660, 0.07], [880, 0.09]],
  done: [[880, 0.08]],
  error: [[330, 0.12], [247, 0.2]],
  alarm: [[880, 0.14], [880, 0.14], [1175, 0.3]],
  attention: [[740, 0.1], [740, 0.1]],
  working: [[523, 0.05]],
  // The page's own: the link is lost, and the session goes on.
  lost: [[440, 0.09], [330, 0.16]],
  back: [[330, 0.09], [440, 0.16]],
};
const CHIME_GAIN = 0.15;
const SOFT_GAIN = 0.08;
/** Sessions number their speeches from 1; for the worklet the numbers of each begin so much higher. */
const SPEECHES_OF_A_SESSION = 2 ** 32;
/** Longest delay between the worklet and the ear that is believed, in milliseconds. */
const LATENCY_MS_MAX = 500;

/** Opens the speaker; `onplayed(report)` gets each report when its sound has come out. */
export async function openSpeaker(rateHz, onplayed) {
  const context = new AudioContext({ latencyHint: "interactive", sampleRate: rateHz });
  await context.audioWorklet.addModule("/try/playout.js");
  return new Speaker(context, onplayed);
}

class Speaker {
  #context;
  #node;
  #gain;
  #dueMs = 0;
  /** What is added to the numbers of this session's speeches. */
  #base = 0;

  constructor(context, onplayed) {
    this.#context = context;
    this.#gain = context.createGain();
    this.#gain.connect(context.destination);
    this.#node = new AudioWorkletNode(context, "playout", {
      numberOfInputs: 0,
      outputChannelCount: [1],
    });
    this.#node.connect(this.#gain);
    this.#node.port.onmessage = ({ data }) => this.#later(() => this.#report(data, onplayed));
    // A call, another program or the system may take the speaker away in the middle of an answer.
    context.onstatechange = () => this.#run();
    this.#run();
  }

  /** Plays on; no effect while the browser waits for a gesture, or something else has the speaker. */
  #run() {
    if (!["running", "closed"].includes(this.#context.state)) {
      this.#context.resume().catch(() => {});
    }
  }

  /** Sounds where the browser's id says; empty: where the system does. */
  async choose(id) {
    if (this.#context.setSinkId && id !== this.#context.sinkId) {
      await this.#context.setSinkId(id);
    }
  }

  setVolume(percent) {
    // The ear hears levels as ratios: the square is close to that and reaches silence.
    const gain = (percent / 100) ** 2;
    this.#gain.gain.setTargetAtTime(gain, this.#context.currentTime, 0.02);
  }

  /** Another session begins: what is left of the last one fades, and is reported no more. */
  reset() {
    this.hush(0, 30);
    this.#base += SPEECHES_OF_A_SESSION;
  }

  start(speech) {
    this.#run();
    this.#node.port.postMessage({ kind: "start", speech: this.#base + speech });
  }

  /** A `speech_chunk` with its samples. */
  chunk({ sequence, speech, clause, position_us: positionUs }, samples) {
    const chunk = { kind: "chunk", speech: this.#base + speech, sequence, clause, positionUs, samples };
    this.#node.port.postMessage(chunk, [samples.buffer]);
  }

  /** A `speech_end`. */
  end({ speech, last_audio_sequence: sequence, duration_us: durationUs }) {
    this.#node.port.postMessage({ kind: "end", speech: this.#base + speech, sequence, durationUs });
  }

  hush(speech, fadeMs) {
    this.#node.port.postMessage({ kind: "hush", speech: speech === 0 ? 0 : this.#base + speech, fadeMs });
  }

  chime(sound) {
    const gain = ["lost", "back"].includes(sound) ? SOFT_GAIN : CHIME_GAIN;
    let at = this.#context.currentTime + 0.01;
    for (const [hertz, seconds] of CHIMES[sound] ?? []) {
      const oscillator = this.#context.createOscillator();
      const envelope = this.#context.createGain();
      oscillator.frequency.value = hertz;
      envelope.gain.setValueAtTime(0, at);
      envelope.gain.linearRampToValueAtTime(gain, at + 0.01);
      envelope.gain.linearRampToValueAtTime(0, at + seconds);
      oscillator.connect(envelope).connect(this.#gain);
      oscillator.start(at);
      oscillator.stop(at + seconds);
      at += seconds;
    }
  }

  async close() {
    await this.#context.close();
  }

  #report(report, onplayed) {
    if (report.speech > this.#base) {
      onplayed({ ...report, speech: report.speech - this.#base });
    }
  }

  /** What the worklet made is heard after the machine's own delay; reports keep their order. */
  #later(act) {
    const latencyMs = Math.min((this.#context.outputLatency || 0) * 1000, LATENCY_MS_MAX);
    this.#dueMs = Math.max(this.#dueMs, performance.now() + latencyMs);
    setTimeout(act, this.#dueMs - performance.now());
  }
}
