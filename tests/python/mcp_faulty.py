"""An MCP server over standard input and output that does what servers should not do.

Written by hand from the specification (2025-11-25), without any library: a witness of its own.
The first argument may be `hang`: then it never answers.
"""

import json
import os
import sys
import time
import traceback

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
NOTES = sys.argv[2] if len(sys.argv) > 2 else None
KEY = os.environ.get("FAULTY_KEY", "")
RESOURCE = "test://notes/today"
renamed = False


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def note(text):
    if NOTES:
        with open(NOTES, "a", encoding="utf-8") as file:
            file.write(text + "\n")


def tool(name, **hints):
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, "annotations": hints}


def tools():
    names = ["after" if renamed else "before", "rename", "die", "flood", "huge", "confirm", "environment"]
    more = [tool("slow", readOnlyHint=True), tool("erase", destructiveHint=True), tool("stall"), tool("touch")]
    more += [tool("complain"), tool("process", readOnlyHint=True)]
    more += [tool("oversized"), tool("oversized_read", readOnlyHint=True)]
    return [tool(name) for name in names] + more + ([leaky()] if KEY else [])


def leaky():
    """A tool that tells everybody what it was sent."""
    properties = {"q": {"type": "string", "description": f"Sent with {KEY}.", "default": KEY}, f"x-{KEY}": {}}
    schema = {"type": "object", "properties": properties}
    words = {"title": f"Leak of {KEY}", "description": f"Uses the key {KEY}."}
    return {"name": "leak", "inputSchema": schema, "annotations": {"readOnlyHint": True}, **words}


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def call(identity, name, token):
    global renamed
    if name == "die":
        print("dying", file=sys.stderr, flush=True)
        os._exit(1)
    if name == "complain":
        try:
            raise ValueError("no pantry")
        except ValueError as error:
            print(f"looked with {KEY}", file=sys.stderr)
            traceback.print_exc()
            return {**text(f"it failed: {error}"), "isError": True}
    if name == "process":
        return text(str(os.getpid()))
    if name in ("oversized", "oversized_read"):
        return text("y" * 17_000_000)
    if name == "slow":
        # Answers only by noting that it was told to stop.
        note("slow")
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("method") == "notifications/cancelled":
                note(f"cancelled {message['params']['requestId'] == identity}")
                return None
    if name == "flood":
        for done in range(20_000):
            send({"method": "notifications/message", "params": {"level": "info", "data": "x" * 100}})
            if token is not None and done % 10 == 0:
                send({"method": "notifications/progress", "params": {"progressToken": token, "progress": done}})
            if done % 100 == 0:
                send({"method": "notifications/tools/list_changed"})
        return text("flooded")
    if name == "huge":
        return text("y" * 10_000_000)
    if name == "rename":
        renamed = not renamed
        send({"method": "notifications/tools/list_changed"})
        return text("renamed")
    if name == "confirm":
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        params = {"message": "Really?", "requestedSchema": schema}
        send({"id": "question", "method": "elicitation/create", "params": params})
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == "question":
                return text(json.dumps(message.get("result"), sort_keys=True))
    if name == "environment":
        return text(json.dumps(sorted(os.environ)))
    if name == "erase":
        note("erased")
    if name == "stall":
        # Begins, and never comes to an end: its gateway goes first.
        note("stalled")
        for _ in sys.stdin:
            pass
        os._exit(0)
    if name == "touch":
        send({"method": "notifications/resources/updated", "params": {"uri": RESOURCE}})
    if name == "leak":
        return {**text(f"The key is {KEY}."), "structuredContent": {"key": KEY}}
    note(f"did {name}")
    return text(f"did {name}")


def main():
    note(f"started {os.getpid()}")
    if MODE == "hang":
        time.sleep(3600)
    for line in sys.stdin:
        message = json.loads(line)
        identity, method = message.get("id"), message.get("method")
        params = message.get("params") or {}
        if identity is None or method is None:
            continue
        if method == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {
                    "tools": {"listChanged": True},
                    "logging": {},
                    "resources": {"subscribe": True},
                },
                "serverInfo": {"name": "faulty", "version": "1"},
            }
        elif method == "ping" or method == "logging/setLevel":
            result = {}
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            note(f"{method.removeprefix('resources/')} {params['uri']}")
            result = {}
        elif method == "resources/list":
            result = {"resources": [{"uri": RESOURCE, "name": "today"}]}
        elif method == "resources/templates/list":
            result = {"resourceTemplates": [{"uriTemplate": "test://notes/{day}", "name": "a day"}]}
        elif method == "resources/read":
            result = {"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": f"read {params['uri']}"}]}
        elif method == "tools/list":
            result = {"tools": tools()}
        elif method == "tools/call":
            result = call(identity, params["name"], (params.get("_meta") or {}).get("progressToken"))
            if result is None:
                continue
        else:
            send({"id": identity, "error": {"code": -32601, "message": "Method not found"}})
            continue
        send({"id": identity, "result": result})


main()
