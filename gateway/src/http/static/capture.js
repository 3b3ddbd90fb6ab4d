// On the browser's audio thread: the microphone's samples to PCM16 packets of 20 ms at the agreed rate.

/** 44,100 Hz to 16,000 Hz is 441 to 160, and 48,000 Hz is 3 to 1: both fall on a phase exactly. */
const PHASES = 160;
/** Zero crossings of the filter on each side: more than 60 dB against aliases. */
const CROSSINGS = 16;
/** Share of the narrower band that passes. */
const PASS = 0.9;
const PACKET_MS = 20;

/** A windowed sinc with one set of taps for each phase. */
class Resampler {
  constructor(fromHz, toHz) {
    this.step = fromHz / toHz;
    const cutoff = Math.min(1, toHz / fromHz) * PASS;
    this.half = Math.ceil(CROSSINGS / cutoff);
    this.filters = Array.from({ length: PHASES }, (_, phase) =>
      taps(phase / PHASES, this.half, cutoff),
    );
    this.input = new Float32Array(0);
    /** Frame of the first sample of `input`. */
    this.first = 0;
    /** Samples put out since `origin`, the frame of the first of them. */
    this.count = 0;
    this.origin = null;
  }

  /** Calls `emit(sample, frame)` for each sample that can be computed. */
  push(samples, frame, emit) {
    if (this.origin === null || frame !== this.first + this.input.length) {
      // The first sound, or the browser left some out: the capture times show the gap.
      this.input = new Float32Array(this.half);
      this.first = frame - this.half;
      this.origin = frame;
      this.count = 0;
    }
    const input = new Float32Array(this.input.length + samples.length);
    input.set(this.input);
    input.set(samples, this.input.length);
    for (;;) {
      const place = this.count * this.step;
      let whole = Math.floor(place);
      let phase = Math.round((place - whole) * PHASES);
      if (phase === PHASES) {
        whole += 1;
        phase = 0;
      }
      const centre = this.origin + whole - this.first;
      if (centre + this.half >= input.length) {
        const done = Math.max(0, centre - this.half);
        this.input = input.slice(done);
        this.first += done;
        return;
      }
      const filter = this.filters[phase];
      let sum = 0;
      for (let tap = 0; tap < filter.length; tap += 1) {
        sum += filter[tap] * input[centre - this.half + 1 + tap];
      }
      emit(sum, this.origin + place);
      this.count += 1;
    }
  }
}

function taps(fraction, half, cutoff) {
  const filter = Array.from({ length: 2 * half }, (_, tap) => {
    const x = tap + 1 - half - fraction;
    const angle = Math.PI * x * cutoff;
    const sinc = angle === 0 ? 1 : Math.sin(angle) / angle;
    const window = 0.42 + 0.5 * Math.cos((Math.PI * x) / half) + 0.08 * Math.cos((2 * Math.PI * x) / half);
    return Math.abs(x) < half ? sinc * window : 0;
  });
  const sum = filter.reduce((total, tap) => total + tap, 0);
  return Float32Array.from(filter, (tap) => tap / sum);
}

class Capture extends AudioWorkletProcessor {
  constructor({ processorOptions: { rateHz } }) {
    super();
    this.resampler = new Resampler(sampleRate, rateHz);
    this.length = (rateHz * PACKET_MS) / 1000;
    this.packet = new Int16Array(this.length);
    this.filled = 0;
    this.frame = 0;
  }

  process([input]) {
    const samples = input[0];
    if (samples) {
      this.resampler.push(samples, currentFrame, (sample, frame) => this.put(sample, frame));
    }
    return true;
  }

  put(sample, frame) {
    if (this.filled === 0) {
      this.frame = frame;
    }
    const scaled = Math.round(sample * 32768);
    this.packet[this.filled] = Math.max(-32768, Math.min(32767, scaled));
    this.filled += 1;
    if (this.filled === this.length) {
      const { buffer } = this.packet;
      this.port.postMessage({ pcm: buffer, atS: this.frame / sampleRate }, [buffer]);
      this.packet = new Int16Array(this.length);
      this.filled = 0;
    }
  }
}

registerProcessor("capture", Capture);
