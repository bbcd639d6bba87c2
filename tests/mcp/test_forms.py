"""What a call lacks that is for a person to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp._forms import Form, fill_in, list_answered
from tests.mcp.case import action

PROPERTIES: Mapping[str, Any] = {
    "text": {"type": "string"},
    "channel": {"type": "string", "enum": ["#general", "#random"]},
    "loud": {"type": "boolean", "default": False},
    "note": {"type": "string"},
}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["text", "channel"]}
ASKS = ["channel", "loud", "note"]
SAID: Sequence[JSON] = (None, True, 0, "", "#random", "#nowhere", ["#random"], {"a": 1})


def definition(**more: Any) -> ToolDefinition:
    """A tool of which some arguments are for a person to say."""
    [found] = read_definitions([action(**{"input_schema": SCHEMA, "asks": ASKS, **more})])
    return found


class FilledInTests(SynchronousTestCase):
    """Before a call is made."""

    def test_choices(self) -> None:
        """A choice with titles, and several of one, is known by its values; a pattern is left to the daemon."""
        titled = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]
        for schema, taken, refused in (
            ({"type": "string", "oneOf": titled}, "a", "A"),
            ({"type": "array", "items": {"anyOf": titled}}, ["a", "b"], ["c"]),
            ({"type": "array", "items": {"type": "string", "enum": ["a"]}, "maxItems": 1}, ["a"], ["a", "a"]),
            ({"type": "string", "pattern": "(a+)+$"}, "a" * 5000 + "!", 7),
            ({"type": "string", "oneOf": [{"const": "x"}, {"pattern": "^y"}]}, "y", 7),
        ):
            asking = definition(input_schema={"properties": {"one": schema}, "required": ["one"]}, asks=["one"])
            self.assertEqual(fill_in(asking, {}, {"one": taken}), {"one": taken})
            self.assertIsInstance(fill_in(asking, {}, {"one": refused}), Form)

    def test_whose_words(self) -> None:
        """What was taken from a form is known by its name."""
        answers: Mapping[str, JSON] = {"channel": "#random", "note": "y", "text": "z"}
        self.assertEqual(list_answered(definition(), {"note": "x"}, answers), ["channel"])
        self.assertEqual(list_answered(definition(), {}, None), [])

    def test_given(self) -> None:
        """What the call gives is not asked, and nobody's answer changes it."""
        arguments: Mapping[str, JSON] = {"text": "hi", "channel": "#general", "loud": True, "note": ""}
        self.assertEqual(fill_in(definition(), arguments, None), arguments)
        self.assertEqual(fill_in(definition(), arguments, {"channel": "#random", "text": "bye"}), arguments)

    @given(st.dictionaries(st.sampled_from([*PROPERTIES, "other"]), st.sampled_from(SAID)))
    def test_only_what_is_asked(self, answers: Mapping[str, JSON]) -> None:
        """Whatever a client brings back, nothing but what was asked for becomes an argument, as it is declared."""
        found = fill_in(definition(), {"text": "hi"}, answers)
        if not isinstance(found, Form):
            self.assertLessEqual(found.keys(), {"text", *ASKS})
            self.assertEqual((found["text"], found["channel"] in ("#general", "#random")), ("hi", True))

    def test_nothing_is_for_a_person(self) -> None:
        """An action that asks for nothing is called as it came, whatever it lacks; odd declarations ask for nothing."""
        odds: list[dict[str, Any]] = [
            {"asks": []},
            {"asks": ["nothing"]},
            {"input_schema": {"type": "object"}},
            {"asks": None},
        ]
        for odd in odds:
            self.assertEqual(fill_in(definition(**odd), {}, None), {})

    def test_description(self) -> None:
        """A model reads what is not for it to make up."""
        self.assertIn("never for you to make up: channel, loud, note.", definition().description)
        self.assertIn("never for you to make up", definition(gated=True).description)
        self.assertNotIn("make up", definition(asks=[]).description)
