"""Foreign MCP clients list the gateway's tools and call one: the `mcp` package and fastmcp."""

import asyncio
import sys

import fastmcp
import mcp


async def through_mcp(url, mode):
    async with mcp.Client(url, mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("everything.echo", {"message": f"mcp {mode}"})
        return names, result.content[0].text


async def through_fastmcp(url):
    async with fastmcp.Client(url) as client:
        names = [tool.name for tool in await client.list_tools()]
        result = await client.call_tool("everything.echo", {"message": "fastmcp"})
        return names, result.content[0].text


async def main(url):
    for words, client in [
        ("mcp auto", through_mcp(url, "auto")),
        ("mcp legacy", through_mcp(url, "legacy")),
        ("fastmcp", through_fastmcp(url)),
    ]:
        names, said = await client
        assert "clock.time" in names and "memory.read_graph" in names, names
        assert said.endswith(words), said
        print(f"{words}: {len(names)} tools")


asyncio.run(main(sys.argv[1]))
