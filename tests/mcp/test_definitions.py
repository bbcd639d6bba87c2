"""The tools as they are offered."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.mcp._definitions import ToolDefinition, own_definitions, read_definitions
from tests.mcp.case import action

WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(action())), inner, max_size=9),
    max_leaves=12,
)


class CardsTests(SynchronousTestCase):
    """One tool for each enabled action."""

    def definition(self, **more: Any) -> ToolDefinition:
        """The tool of one action."""
        [definition] = read_definitions([action(**more)])
        return definition

    def test_card(self) -> None:
        """Name, heading, body and schema become name, title, description and schema."""
        schema: JSON = {"type": "object", "properties": {"text": {"type": "string"}}}
        definition = self.definition()
        self.assertEqual(
            (definition.name, definition.title, definition.description),
            ("ship_update", "Ship update", "Posts a message."),
        )
        self.assertEqual((definition.input_schema, definition.action), (schema, "ship-update"))

    def test_without_a_body(self) -> None:
        """An action without a body is described by its intent, one without a heading is titled by its name."""
        definition = self.definition(description="")
        self.assertEqual((definition.title, definition.description), ("ship-update", "tell the team"))
        self.assertEqual(self.definition(description="## Two\nx").description, "## Two\nx")
        self.assertEqual(self.definition(description="# Only a heading").description, "tell the team")

    def test_gated(self) -> None:
        """A gated action says that it may answer pending, and must not be reported as done."""
        description = self.definition(gated=True).description
        self.assertTrue(description.startswith("Posts a message.\n\n"))
        for word in ("approval", "pending", "check_action_status", "do not report"):
            self.assertIn(word, description)
        self.assertNotIn("approval", self.definition().description)

    def test_which(self) -> None:
        """An action that is switched off, or would take the place of a tool of ours, is none; all stand in order."""
        self.assertEqual(read_definitions([action(enabled=False)]), ())
        ours = ("aileron-diagnostics", "check-action-status", "search-actions", "describe-action", "run-action")
        self.assertEqual(read_definitions([action(name) for name in ours]), ())
        items = [action("b"), action("a")]
        self.assertEqual([definition.name for definition in read_definitions(items)], ["a", "b"])

    def test_names(self) -> None:
        """A name that some agent or provider would not take is no tool's."""
        for name in ("a-b", "a.b", "é", "", "a" * 65, 7):
            self.assertEqual(read_definitions([action(tool_name=name)]), ())
        self.assertEqual(self.definition(tool_name="A_9").name, "A_9")

    def test_hints(self) -> None:
        """What an action does to the world is as the daemon says; one that says nothing is taken for the worse."""
        definition = self.definition()
        self.assertEqual((definition.destructive, definition.open_world, definition.output_schema), (True, True, None))
        self.assertFalse(self.definition(read_only=True).destructive)
        definition = self.definition(destructive=False, open_world=False, output_schema={"type": "object"})
        self.assertEqual(
            (definition.destructive, definition.open_world, definition.output_schema),
            (False, False, {"type": "object"}),
        )

    @settings(deadline=None, max_examples=60)
    @given(st.lists(WILD, max_size=3))
    def test_malformed(self, items: list[object]) -> None:
        """What the daemon should not send is left out, and the rest stays."""
        self.assertIn("ship_update", [definition.name for definition in read_definitions([*items, action()])])

    def test_own(self) -> None:
        """The status tool asks for an approval's id and bounds the wait."""
        diagnostics, status = own_definitions(45)
        self.assertEqual(status.input_schema["required"], ["approval_id"])
        self.assertIn("45", str(status.input_schema))
        self.assertEqual((status.action, diagnostics.action), (None, None))
