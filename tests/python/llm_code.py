"""What a small language model makes of `code.run` in a real gateway.

    python llm_code.py http://127.0.0.1:8080/v1 PATH/OF/lorgnette [development|held-out]

The server is llama.cpp's, started with `--jinja -n 256` (a small model may never come to an end by itself). The sentences are those of tests/data/llm/three_tools.tsv. The gateway has its
built-in tools, and offers the model programs beside them and instead of them. Prints how many turns led to a program, how many of the
programs ran to their end, how many called a tool, and how many called a right one. Every question is answered with yes.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TABLE = pathlib.Path(__file__).parent.parent / "data/llm/three_tools.tsv"
# The built-in tools that do what the table's tools would.
RIGHT = {
    "timer_set": ("timers.", "timer.", "reminders.", "reminder."),
    "note_add": ("notes.", "note."),
    "volume_set": ("device.", "volume."),
}
ASK_S_MAX = 120


def configure(folder, base, mode):
    path = folder / f"{mode}.toml"
    path.write_text(f"""
data_dir = {json.dumps(str(folder / mode))}
discovery.enabled = false
[listen]
web = "127.0.0.1:0"
quic = "127.0.0.1:0"
[model]
kind = "chat_completions"
base_url = {json.dumps(base)}
model = "any"
[assistant]
offline_fallback = false
[code]
enabled = true
mode = "{mode}"
local_models = true
""")
    return path


def lorgnette(binary, config, *words):
    command = [binary, *words[:1], "--config", str(config), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=ASK_S_MAX, check=False)


def runs(binary, config):
    out = subprocess.run([binary, "code", "runs", "--json", "--config", str(config)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


def show(binary, config, number):
    command = [binary, "code", "show", str(number), "--json", "--config", str(config)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def trial(binary, config, rows):
    counts = {"answered in words": 0, "a program": 0, "ran to its end": 0, "called a tool": 0, "a right tool": 0, "no answer in time": 0}
    took = []
    for tool, sentence, _ in rows:
        before = len(runs(binary, config))
        began = time.monotonic()
        try:
            asked = lorgnette(binary, config, "ask", "--json", "--yes", *sentence.split())
            counts["answered in words"] += '"event":"text"' in asked.stdout
        except subprocess.TimeoutExpired:
            counts["no answer in time"] += 1
        took.append(time.monotonic() - began)
        made = [show(binary, config, run["id"]) for run in runs(binary, config)[: len(runs(binary, config)) - before]]
        calls = [call for run in made for call in run.get("calls", []) if call.get("outcome") == "done"]
        counts["a program"] += bool(made)
        counts["ran to its end"] += any(not run.get("error") for run in made)
        counts["called a tool"] += bool(calls)
        counts["a right tool"] += any(call["tool"].startswith(RIGHT[tool]) for call in calls)
        if os.environ.get("VERBOSE"):
            print(sentence, json.dumps(made), flush=True)
    return counts, statistics.median(took)


def main():
    base, binary = sys.argv[1].rstrip("/"), sys.argv[2]
    half = sys.argv[3] if len(sys.argv) > 3 else "held-out"
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    rows = rows[1::2] if half == "development" else rows[0::2]
    print(f"{half}: {len(rows)} sentences")
    for mode in ("beside", "instead"):
        with tempfile.TemporaryDirectory() as folder:
            config = configure(pathlib.Path(folder), base, mode)
            gateway = subprocess.Popen([binary, "serve", "--config", str(config)], stdout=subprocess.PIPE, text=True)
            try:
                # Its first line says that it is ready.
                gateway.stdout.readline()
                counts, median_s = trial(binary, config, rows)
            finally:
                gateway.terminate()
                gateway.wait()
        print(f"{mode:8}", *(f"{what} {count:3} " for what, count in counts.items()), f"median {median_s:.1f} s", flush=True)


main()
