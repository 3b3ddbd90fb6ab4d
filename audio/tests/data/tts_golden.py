"""Write the phoneme ids that the package hibari-tts 0.2.1 gives for the sentences of tts_sentences.txt.

    pip install hibari-tts==0.2.1 && python tts_golden.py

tts_golden.tsv gets one line a sentence: the sentence, a tab, then the ids (without the two pads) of each
chunk that the package would synthesise at once, chunks apart by " | ".
"""
import pathlib

from hibari import Hibari

HERE = pathlib.Path(__file__).parent
tts = Hibari()
lines = (HERE / "tts_sentences.txt").read_text(encoding="utf-8").splitlines()
with open(HERE / "tts_golden.tsv", "w", encoding="utf-8") as out:
    for line in lines:
        if not line or line.startswith("#"):
            continue
        chunks = [tts.ids(phonemes)[1:-1] for phonemes in tts.phonemize(line)]
        out.write(line + "\t" + " | ".join(" ".join(map(str, ids)) for ids in chunks) + "\n")
