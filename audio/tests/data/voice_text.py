"""Write the phoneme ids that the package hibari-tts 0.2.1 gives for the sentences of voice_text.tsv.

    pip install hibari-tts==0.2.1 && python voice_text.py

voice_text_reference.tsv gets one line a sentence: the sentence, a tab, the ids (without the two pads) of each chunk
that the package would synthesise at once, chunks apart by " | "; and the same for the sentence in words, if it has one.
"""
import pathlib

from hibari import Hibari

HERE = pathlib.Path(__file__).parent
tts = Hibari()


def ids(text):
    return " | ".join(" ".join(map(str, tts.ids(chunk)[1:-1])) for chunk in tts.phonemize(text))


lines = (HERE / "voice_text.tsv").read_text(encoding="utf-8").splitlines()
with open(HERE / "voice_text_reference.tsv", "w", encoding="utf-8") as out:
    for line in lines:
        if not line.startswith("#"):
            _, sentence, *said = line.split("\t")
            out.write("\t".join([sentence, ids(sentence), *map(ids, said)]) + "\n")
