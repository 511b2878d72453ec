# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks `probing mcp` the questions of a person in trouble, by MCP's own SDK, and prints the answers as JSON.

asks_by_mcp.py COMMAND WORDS…, with the questions as JSON on stdin: [[tool, {argument: value}], …]; a value "$N" is the
next_cursor of answer N."""
import sys

del sys.path[0]  # where other programs have the names of modules

import asyncio
import json

from mcp import ClientSession, StdioServerParameters, stdio_client


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main():
    answers = []
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        greeting = await session.initialize()
        tools, prompts = await session.list_tools(), await session.list_prompts()
        for tool, arguments in json.load(sys.stdin):
            for name, value in arguments.items():
                if isinstance(value, str) and value.startswith("$"):
                    arguments[name] = answers[int(value[1:])]["structuredContent"]["next_cursor"]
            # The session itself refuses an answer that breaks its tool's outputSchema.
            answers.append(plain(await session.call_tool(tool, arguments)))
        prompt = await session.get_prompt("hang", {"target": "1"})
    print(json.dumps({"greeting": plain(greeting), "tools": [plain(tool) for tool in tools.tools],
                      "prompts": [plain(each) for each in prompts.prompts], "prompt": plain(prompt), "answers": answers}))


asyncio.run(main())
