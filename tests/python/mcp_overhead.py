"""Tool calls through the gateway's MCP server and to one of the `mcp` package, by the same client, in turn.

    python mcp_overhead.py http://127.0.0.1:8460/mcp [calls]

The gateway needs `mcp.without_key = true`, and `limits.tool_calls_per_min` and `limits.tool_calls_per_min_per_source` at 0. Prints medians and 99th percentiles in milliseconds.
"""

import asyncio
import socket
import statistics
import subprocess
import sys
import time

import mcp

SERVER = """
import datetime, sys
from mcp.server import MCPServer
server = MCPServer("clock")

@server.tool()
def time() -> str:
    return datetime.datetime.now().strftime("It's %H:%M.")

server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


async def answers(port):
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.05)
    raise SystemExit("the peer did not start")


async def call(client, name):
    began = time.perf_counter()
    result = await client.call_tool(name, {})
    assert not result.is_error and result.content[0].text, result
    return (time.perf_counter() - began) * 1000


async def main(url, count):
    port = free_port()
    peer = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await answers(port)
        for mode in ["auto", "legacy"]:
            ours, theirs = [], []
            async with mcp.Client(url, mode=mode) as gateway, mcp.Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as other:
                for turn in range(count + 20):
                    one, two = await call(gateway, "clock.time"), await call(other, "time")
                    if turn >= 20:
                        ours.append(one)
                        theirs.append(two)
            for name, taken in [("gateway", ours), ("mcp package", theirs)]:
                last = sorted(taken)[int(len(taken) * 0.99)]
                print(f"{mode:7} {name:12} n {len(taken)}  median {statistics.median(taken):6.2f}  p99 {last:6.2f} ms")
            print(f"{mode:7} ratio of medians {statistics.median(theirs) / statistics.median(ours):.2f}")
    finally:
        peer.terminate()
        peer.wait()


asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 300))
