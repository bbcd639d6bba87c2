"""Of the tools of an MCP server as operations: what their schemas describe can be given, or is marked."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import parse
from aileron.features.importing.files import WrittenFiles, write_connector
from aileron.features.importing.tools import ServerTools

TEXT = {"type": "string"}
FILE = '[connector]\nname = "local://me/x"\nversion = "1.0.0"\nkind = "mcp"\n\n[mcp]\nurl = "https://mcp.example/mcp"\n'


def written(schema: Any) -> WrittenFiles:
    """The files of a server with one tool, whose arguments are described so."""
    tool = {"name": "find", "description": "Finds.", "inputSchema": schema, "pin": f"sha256:{'a' * 64}"}
    tools = ServerTools("X", (tool,), {})
    return write_connector(tools.describe("local://me/x", tools.list_operations()), existing=FILE)


class ToolTests(SynchronousTestCase):
    def inputs(self, schema: Any) -> dict[str, bool]:
        """The inputs of the action, and whether they are required."""
        (action,) = written(schema).actions
        return {each.name: each.required for each in parse(action.text.encode(), action.name).inputs}

    def test_alternatives(self) -> None:
        """Members of alternatives at the top are inputs: required is what each alternative requires."""
        one = {"properties": {"id": TEXT, "all": TEXT}, "required": ["id"]}
        other = {"properties": {"name": TEXT}, "required": ["name"]}
        for key in ("anyOf", "oneOf"):
            schema = {"type": "object", "properties": {"all": TEXT}, "required": ["all"], key: [one, other]}
            self.assertEqual(self.inputs(schema), {"id": False, "name": False, "all": True})
            self.assertEqual(
                self.inputs({"type": "object", key: [one, other]}), {"id": False, "all": False, "name": False}
            )
            self.assertIn(f"`{key}` of its body is not checked", " ".join(written(schema).marks))
        self.assertEqual(self.inputs({"allOf": [one, other]}), {"id": True, "all": False, "name": True})

    def test_not_described(self) -> None:
        """Arguments that are not described are marked; a tool without arguments is whole."""
        self.assertIn("does not describe", " ".join(written({"type": "object", "additionalProperties": True}).marks))
        for schema in (
            {"type": "object"},
            {},
            None,
            {"type": "object", "properties": {}, "additionalProperties": False},
        ):
            self.assertEqual(written(schema).marks, ())

    def test_words(self) -> None:
        """An action of a tool that says little still tells the model what it calls."""
        tool: dict[str, Any] = {"name": "find", "inputSchema": {"properties": {"q": TEXT}}, "pin": f"sha256:{'a' * 64}"}
        tools = ServerTools("X", (tool,), {})
        (action,) = write_connector(tools.describe("local://me/x", tools.list_operations()), existing=FILE).actions
        self.assertIn("\n# Find\n\nFind. Calls find. It takes q (optional).\n", action.text)
