// The browser's speaker: speech by the worklet, chimes by oscillators, one volume for both.

/** Notes of the short sounds: hertz and seconds each. */
const CHIMES = {
  wake: [[660, 0.07], [880, 0.09]],
  done: [[880, 0.08]],
  error: [[330, 0.12], [247, 0.2]],
  alarm: [[880, 0.14], [880, 0.14], [1175, 0.3]],
  attention: [[740, 0.1], [740, 0.1]],
};
const CHIME_GAIN = 0.15;
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

  constructor(context, onplayed) {
    this.#context = context;
    this.#gain = context.createGain();
    this.#gain.connect(context.destination);
    this.#node = new AudioWorkletNode(context, "playout", {
      numberOfInputs: 0,
      outputChannelCount: [1],
    });
    this.#node.connect(this.#gain);
    this.#node.port.onmessage = ({ data }) => this.#later(() => onplayed(data));
    context.resume();
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

  start(speech) {
    this.#context.resume();
    this.#node.port.postMessage({ kind: "start", speech });
  }

  chunk(speech, clause, positionUs, samples) {
    this.#node.port.postMessage({ kind: "chunk", speech, clause, positionUs, samples }, [
      samples.buffer,
    ]);
  }

  end(speech) {
    this.#node.port.postMessage({ kind: "end", speech });
  }

  hush(speech, fadeMs) {
    this.#node.port.postMessage({ kind: "hush", speech, fadeMs });
  }

  chime(sound) {
    let at = this.#context.currentTime + 0.01;
    for (const [hertz, seconds] of CHIMES[sound] ?? CHIMES.attention) {
      const oscillator = this.#context.createOscillator();
      const envelope = this.#context.createGain();
      oscillator.frequency.value = hertz;
      envelope.gain.setValueAtTime(0, at);
      envelope.gain.linearRampToValueAtTime(CHIME_GAIN, at + 0.01);
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

  /** What the worklet made is heard after the machine's own delay; reports keep their order. */
  #later(act) {
    const latencyMs = Math.min((this.#context.outputLatency || 0) * 1000, LATENCY_MS_MAX);
    this.#dueMs = Math.max(this.#dueMs, performance.now() + latencyMs);
    setTimeout(act, this.#dueMs - performance.now());
  }
}
