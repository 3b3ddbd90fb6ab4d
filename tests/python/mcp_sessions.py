"""What foreign MCP clients do with a gateway: one JSON object a line of what came of it.

`approvals URL` calls a tool that needs approval, with clients that accept, decline and cannot be asked.
`resources URL` lists, reads and watches a resource of a server behind the gateway.
`classes URL KEY` lists the tools of one class of clients.
`hostile URL KEY` calls a tool that needs approval, with clients that would approve everything themselves.
"""

import asyncio
import json
import logging
import sys

import fastmcp
import httpx2
import mcp
import mcp_types
from fastmcp.client.elicitation import ElicitResult
from mcp.client.streamable_http import streamable_http_client

ANSWERS = {
    "accept": ("accept", {"approve": True}),
    "accept without approving": ("accept", {"approve": False}),
    "decline": ("decline", None),
    "cancel": ("cancel", None),
    "cannot": None,
}


def tell(**words):
    print(json.dumps(words), flush=True)


async def through_mcp(url, mode, answer):
    asked = []

    async def callback(_context, params):
        asked.append(params.message)
        action, content = ANSWERS[answer]
        return mcp_types.ElicitResult(action=action, content=content)

    can = {"elicitation_callback": callback} if ANSWERS[answer] else {}
    async with mcp.Client(url, mode=mode, **can) as client:
        result = (await client.call_tool("faulty.erase", {})).model_dump(mode="json", by_alias=True)
    tell(client=f"mcp {mode}", answer=answer, asked=asked, error=bool(result["isError"]), said=words(result))


async def through_fastmcp(url, answer):
    asked = []

    async def handler(message, _kind, _params, _context):
        asked.append(message)
        action, content = ANSWERS[answer]
        return ElicitResult(action=action, content=content)

    can = {"elicitation_handler": handler} if ANSWERS[answer] else {}
    async with fastmcp.Client(url, **can) as client:
        result = await client.call_tool("faulty.erase", {}, raise_on_error=False)
    said = result.content[0].text
    tell(client="fastmcp", answer=answer, asked=asked, error=bool(result.is_error), said=said)


def words(result):
    return result["content"][0]["text"]


async def approvals(url):
    for answer in ANSWERS:
        for mode in ("legacy", "auto"):
            await through_mcp(url, mode, answer)
        await through_fastmcp(url, answer)


async def resources(url):
    updated = asyncio.Queue()

    async def handler(message):
        method = getattr(message, "method", None) or getattr(getattr(message, "root", None), "method", None)
        if method == "notifications/resources/updated":
            params = getattr(message, "params", None) or message.root.params
            await updated.put(str(params.uri))

    async with mcp.Client(url, mode="legacy", message_handler=handler) as client:
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        templates = [one.uri_template for one in (await client.list_resource_templates()).resource_templates]
        uri = listed[0]
        read = (await client.read_resource(uri)).contents[0]
        await client.subscribe_resource(uri)
        await client.call_tool("faulty.touch", {})
        news = await asyncio.wait_for(updated.get(), 30)
        await client.unsubscribe_resource(uri)
    tell(listed=listed, templates=templates, uri=str(read.uri), text=read.text, updated=news)


async def classes(url, key):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
        async with mcp.Client(streamable_http_client(url, http_client=http), mode="legacy") as client:
            tools = (await client.list_tools()).tools
            result = (await client.call_tool("faulty.leak", {})).model_dump(mode="json", by_alias=True)
            tell(tools=[tool.model_dump(mode="json", by_alias=True) for tool in tools], leaked=result)


async def hostile(url, key):
    for mode in ("legacy", "auto"):
        asked = []

        async def callback(_context, params):
            asked.append(params.message)
            return mcp_types.ElicitResult(action="accept", content={"approve": True})

        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
            transport = streamable_http_client(url, http_client=http)
            async with mcp.Client(transport, mode=mode, elicitation_callback=callback) as client:
                result = (await client.call_tool("faulty.erase", {})).model_dump(mode="json", by_alias=True)
        tell(asked=asked, error=bool(result["isError"]), said=words(result))


logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
asyncio.run({"approvals": approvals, "resources": resources, "classes": classes, "hostile": hostile}[sys.argv[1]](*sys.argv[2:]))
