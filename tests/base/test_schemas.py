"""Schemas of what comes out, and every constraint of a schema told in words."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.base.schemas import fits, schema_problem, violation

_HELD: dict[str, Any] = {"a/b": {"type": "string"}, "all": {"anyOf": [{"type": "null"}, True]}}


class OutputSchemaTests(SynchronousTestCase):
    """What is refused at loading, and what comes of the rest at a call."""

    def referring(self, reference: str) -> dict[str, Any]:
        """A schema that refers to a part of its own."""
        return {"$defs": _HELD, "required": ["x"], "properties": {"x": {"$ref": reference}}}

    def test_reference(self) -> None:
        """A reference to a part that is there is followed."""
        for reference, good, bad in (
            ("#/$defs/a~1b", "text", 1),
            ("#/%24defs/a~1b", "text", 1),
            ("#/$defs/all/anyOf/0", None, 1),
        ):
            schema = self.referring(reference)
            self.assertIsNone(schema_problem(schema))
            self.assertEqual((fits({"x": good}, schema), fits({"x": bad}, schema)), (True, False), reference)

    def test_leads_nowhere(self) -> None:
        """A reference to what is not there, or is no schema, is refused, since nothing could be checked by it."""
        for reference in ("#/$defs/gone", "#/required", "#/required/0", "#/$defs/all/anyOf/2", "#/"):
            self.assertEqual(
                schema_problem(self.referring(reference)), f"must not refer to {reference!r}: no schema is there"
            )

    def test_circle(self) -> None:
        """Nothing fits a schema that leads in a circle, and nothing is raised of what was done already."""
        circle: dict[str, Any] = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
        self.assertFalse(fits({"x": 1}, circle))
        self.assertFalse(fits({"x": 1}, self.referring("#/$defs/gone")))


class ViolationTests(SynchronousTestCase):
    """L{violation}."""

    def test_words(self) -> None:
        """Each keyword has words of its own, which say what is wanted as JSON says it."""
        cases: tuple[tuple[str, JSON, str], ...] = (
            ("type", "integer", "must be an integer"),
            ("type", ["string", "null"], "must be a string or null"),
            ("enum", ["é", 1, None], 'must be one of "é", 1, null'),
            ("const", True, "must be true"),
            ("minimum", 1, "must be 1 or more"),
            ("maximum", 9, "must be 9 or less"),
            ("exclusiveMinimum", 0, "must be more than 0"),
            ("minLength", 2, "must have at least 2 characters"),
            ("maxLength", 5, "must have at most 5 characters"),
            ("minItems", 1, "must have at least 1 elements"),
            ("maxItems", 3, "must have at most 3 elements"),
            ("pattern", "^a$", "must match ^a$"),
            ("format", "email", "must be a valid email"),
            ("exclusiveMaximum", 9, "must be less than 9"),
            ("multipleOf", 5, "must be a multiple of 5"),
            ("uniqueItems", True, "must have no element twice"),
            ("minProperties", 1, "must have at least 1 members"),
            ("maxProperties", 2, "must have at most 2 members"),
            ("oneOf", [{"const": "a", "title": "A"}, {"const": 1}], 'must be one of "a", 1'),
            ("anyOf", [{"const": "a"}], 'must be one of "a"'),
            ("anyOf", [{"const": "a"}, True], "fits nothing that is allowed here"),
            ("oneOf", [{"type": "string"}], "fits none, or more than one, of what is allowed here"),
        )
        for keyword, wanted, words in cases:
            self.assertEqual(violation(keyword, wanted), words)

    def test_another_keyword(self) -> None:
        """A keyword without words of its own still refuses, and repeats nothing."""
        self.assertEqual(violation("not", {"const": "x"}), "is not allowed here")
