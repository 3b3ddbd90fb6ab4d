"""Writes lc3_golden.tsv: frames of Google's liblc3, and what its own decoder makes of them.

    pip install lc3py && python3 lc3_golden.py > lc3_golden.tsv
"""

import math

import lc3

FRAMES = 24


def voice(rate_hz, samples):
    """125 Hz with harmonics that fall off, below half of the lowest rate."""
    return [
        int(6000 * sum(math.sin(2 * math.pi * 125 * k * n / rate_hz) / k for k in range(1, 9)) / 1.5)
        for n in range(samples)
    ]


print("rate_hz\tframe_us\tframe_bytes\tsnr_db\tframes")
for rate_hz in (8000, 16000, 24000, 48000):
    for frame_us, frame_bytes in ((10000, 40), (7500, 30)):
        encoder = lc3.Encoder(frame_us, rate_hz, 1)
        decoder = lc3.Decoder(frame_us, rate_hz, 1)
        size = encoder.get_frame_samples()
        pcm = voice(rate_hz, size * FRAMES)
        coded, out = b"", []
        for at in range(0, len(pcm), size):
            frame = encoder.encode([sample / 32768 for sample in pcm[at : at + size]], frame_bytes)
            coded += frame
            out += [round(sample * 32768) for sample in decoder.decode(frame)]
        delay = encoder.get_delay_samples()
        pairs = list(zip(pcm, out[delay:]))[size * 2 :]
        noise = sum((a - b) ** 2 for a, b in pairs)
        snr = 10 * math.log10(sum(a * a for a, _ in pairs) / noise)
        print(f"{rate_hz}\t{frame_us}\t{frame_bytes}\t{snr:.2f}\t{coded.hex()}")
