"""Schemas of what comes out."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.values import fits, schema_problem

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
