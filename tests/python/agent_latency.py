"""A Python agent on the mock of tests/benches/models.rs: when it was asked, and when it had the first text.

agent_latency.py BASE_URL TOOLS ROUNDS prints a line of JSON for each round, in nanoseconds of the system's clock.
"""

import asyncio
import json
import sys
import time

from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

SCHEMA = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string", "description": "What to be reminded of"},
        "time": {"type": "string", "description": "When, as ISO 8601"},
        "kind": {"type": "string", "enum": ["once", "daily", "weekly"]},
        "urgent": {"type": "boolean"},
    },
}


def tool(number: int) -> Tool:
    def run(**arguments):
        return "done"

    description = "Adds a reminder for the user, and says when it will ring."
    return Tool.from_schema(run, name=f"bench_tool_{number}", description=description, json_schema=SCHEMA)


async def main(url: str, tools: int, rounds: int) -> None:
    model = OpenAIChatModel("mock", provider=OpenAIProvider(base_url=url, api_key="none"))
    agent = Agent(model, instructions="Answer briefly, for the ear.", tools=[tool(n) for n in range(tools)])
    for _ in range(rounds):
        asked = time.time_ns()
        text = None
        async with agent.run_stream("Tell me something nice.") as answer:
            async for piece in answer.stream_text(delta=True, debounce_by=None):
                if piece and text is None:
                    text = time.time_ns()
        print(json.dumps({"asked_ns": asked, "text_ns": text}), flush=True)


asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
