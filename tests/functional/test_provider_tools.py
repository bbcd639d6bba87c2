"""Tools that a provider runs: the official SDKs' own requests for them are noted, or refused as their users expect."""

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args, get_type_hints

from aileron.features.provider_tools.scan import ToolScan
from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.script import Say
from tests.functional.sdks import ASKED, Api

SERVER = {"type": "url", "url": "https://mcp.example.com/sse", "name": "x", "authorization_token": "canary-token"}
RULES = """\
gateway:
  providers:
    anthropic: {provider_tools: {remote_mcp: refuse, others: note}}
"""
# By the beginning of a type that a library declares; the empty one last, of which none is known to be the provider's.
KINDS = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_": "code_execution",
    "mcp": "remote_mcp",
    "computer": "computer_use",
    "browser": "computer_use",
    "file_search": "file_search",
    "image_generation": "image_generation",
    "advisor": "other",
}
OF_THE_CLIENT = (
    *("function", "custom", "bash", "text_editor", "memory", "local_shell", "shell", "apply_patch", "namespace"),
    *("tool_search", "programmatic_tool_calling"),
)


def declared(union: Any) -> Iterator[str]:
    """The types of tools that a library declares."""
    for each in get_args(union):
        found = get_type_hints(each, include_extras=False).get("type")
        yield from (text for text in _literals(found) if isinstance(text, str))


def _literals(annotation: Any) -> Iterator[Any]:
    for each in get_args(annotation):
        yield from _literals(each) if get_args(each) else (each,)


def found(document: Any) -> list[str]:
    """What the gateway finds in a request."""
    scan = ToolScan()
    scan.feed(json.dumps(document).encode())
    scan.finish()
    return [str(tool) for tool in scan.found]


class ShapeTests(GatewayedTestCase):
    """The types that the libraries declare."""

    def test_declared(self) -> None:
        """Each type that a library declares is known: as the client's own, or as one kind of the provider's."""
        unions = (
            import_module("anthropic.types.beta").BetaToolUnionParam,
            import_module("openai.types.responses").ToolParam,
        )
        types = {each for union in unions for each in declared(union)}
        self.assertGreater(len(types), 20)
        for each in sorted(types):
            kind = next((kind for start, kind in KINDS.items() if each.startswith(start)), None)
            if kind is None:
                self.assertTrue(each.startswith(OF_THE_CLIENT), f"{each} is new: is it the client's or the provider's?")
            self.assertEqual(found({"tools": [{"type": each}]}), [] if kind is None else [kind], each)


class AnthropicTests(GatewayedTestCase):
    """A daemon with rules, and Anthropic's library."""

    provider = "anthropic"

    async def test_rules(self) -> None:
        """A remote MCP server is refused with the library's own error, which names the setting; the rest is noted."""
        llm = self.llm({"m": [Say("hello")]})
        sdk = self.through(await self.own_gateway(llm))
        await self.set_config(RULES)

        def with_server(api: Api) -> Any:
            return api.client.beta.messages.create(**ASKED, max_tokens=9, mcp_servers=[SERVER])

        problem = await sdk.problem(with_server)
        self.assertEqual(type(problem).__name__, "PermissionDeniedError")
        for part in ("remote_mcp at mcp.example.com", "gateway.provider_tools"):
            self.assertIn(part, str(problem))
        self.assertEqual(llm.script.received, [])
        search = [{"type": "web_search_20250305", "name": "web_search"}]
        self.assertEqual((await sdk.use(lambda api: api.generate(tools=search))).content[0].text, "hello")
        told = (await self.command("gateway")).stdout
        self.assertIn("anthropic was asked to run remote_mcp: 1 request (refused: 1)", told)
        self.assertIn("anthropic was asked to run web_search: 1 request (refused: 0)", told)
        recorded = (await self.operator("audit", "list", "--json")).stdout
        for part in ("tool.refused", "tool.noted", "mcp.example.com"):
            self.assertIn(part, recorded)
        self.assertNotIn("canary-token", recorded)
