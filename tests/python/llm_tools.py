"""Whether a small language model calls the right tool of three when a JSON schema holds its answer.

    python llm_tools.py http://127.0.0.1:8080/v1 [development|held-out]

The server is llama.cpp's (any that takes `response_format` of type `json_schema`). Sentences and what they mean stand in
tests/data/llm/three_tools.tsv. Prints, for each way of asking: answers that are a call at all, the right tool, and the right
arguments. Text counts as right where the words are the same.
"""

import json
import pathlib
import re
import statistics
import sys
import time
import urllib.request

TABLE = pathlib.Path(__file__).parent.parent / "data/llm/three_tools.tsv"
TOOLS = {
    "timer_set": ("Sets a timer.", "minutes", {"type": "integer"}),
    "note_add": ("Writes a note down.", "text", {"type": "string"}),
    "volume_set": ("Sets the volume of the speaker.", "percent", {"type": "integer"}),
}
EXAMPLES = [
    ("start an eleven minute timer", {"tool": "timer_set", "arguments": {"minutes": 11}}),
    ("note that the milk is sour", {"tool": "note_add", "arguments": {"text": "the milk is sour"}}),
    ("set the sound to fifty five percent", {"tool": "volume_set", "arguments": {"percent": 55}}),
    ("ring in seventeen minutes", {"tool": "timer_set", "arguments": {"minutes": 17}}),
    ("write down that Tom has the map", {"tool": "note_add", "arguments": {"text": "Tom has the map"}}),
    ("make it louder, eighty five percent", {"tool": "volume_set", "arguments": {"percent": 85}}),
]


def schema():
    """One call of one of the tools, with that tool's own arguments."""
    calls = []
    for name, (_, argument, kind) in TOOLS.items():
        arguments = {"type": "object", "properties": {argument: kind}, "required": [argument], "additionalProperties": False}
        calls.append({
            "type": "object",
            "properties": {"tool": {"const": name}, "arguments": arguments},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        })
    return {"anyOf": calls}


def ask(base, sentence, held, examples):
    lines = [f"{name}: {about} Argument {argument}." for name, (about, argument, _) in TOOLS.items()]
    system = "You choose a tool for what the user says. Tools:\n" + "\n".join(lines)
    system += '\nAnswer with JSON only: {"tool": NAME, "arguments": {...}}'
    messages = [{"role": "system", "content": system}]
    for said, call in EXAMPLES if examples else []:
        messages += [{"role": "user", "content": said}, {"role": "assistant", "content": json.dumps(call)}]
    messages.append({"role": "user", "content": sentence})
    body = {"model": "any", "messages": messages, "temperature": 0, "max_tokens": 80}
    if held:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "call", "schema": schema()}}
    request = urllib.request.Request(
        f"{base}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def words(value):
    return re.findall(r"[a-z0-9]+", value.lower()) if isinstance(value, str) else value


def main():
    base = sys.argv[1].rstrip("/")
    half = sys.argv[2] if len(sys.argv) > 2 else "held-out"
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    rows = rows[1::2] if half == "development" else rows[0::2]
    print(f"{half}: {len(rows)} sentences")
    for held, examples in [(False, False), (True, False), (False, True), (True, True)]:
        call_count = tool_count = right_count = 0
        took = []
        for tool, sentence, arguments in rows:
            began = time.monotonic()
            answer = ask(base, sentence, held, examples)
            took.append(time.monotonic() - began)
            try:
                call = json.loads(answer)
                name, found = call["tool"], call["arguments"]
                assert name in TOOLS and isinstance(found, dict)
            except (ValueError, KeyError, TypeError, AssertionError):
                continue
            call_count += 1
            tool_count += name == tool
            wanted = {key: words(value) for key, value in json.loads(arguments).items()}
            right_count += name == tool and {key: words(value) for key, value in found.items()} == wanted
        way = f"{'held by the schema' if held else 'free'}, {'six examples' if examples else 'no example'}"
        print(
            f"{way:40} a call {call_count:3}  right tool {tool_count:3}  right arguments {right_count:3}  "
            f"median {statistics.median(took) * 1000:.0f} ms"
        )


main()
