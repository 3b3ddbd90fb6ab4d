"""Write the levels of the package's samples: hibari-tts 0.2.1, dB of full scale for each 25 ms.

    pip install hibari-tts==0.2.1 scipy && python tts_levels.py

tts_levels.tsv gets one line a sentence: the sentence, a tab, the levels.
"""
import pathlib

import numpy as np
from hibari import Hibari

HERE = pathlib.Path(__file__).parent
SENTENCES = [
    "Done.",
    "Timer set for ten minutes.",
    "The quick brown fox jumps over the lazy dog near the river bank.",
    "Sorry, I didn't catch that.",
]
tts = Hibari()
with open(HERE / "tts_levels.tsv", "w", encoding="utf-8") as out:
    for sentence in SENTENCES:
        audio = tts(sentence, seed=1)
        frames = audio[: len(audio) // 600 * 600].reshape(-1, 600)
        levels = 10 * np.log10((frames**2).mean(axis=1) + 1e-10)
        out.write(sentence + "\t" + " ".join(f"{level:.1f}" for level in levels) + "\n")
