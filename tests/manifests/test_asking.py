"""Only what a form can show is for the person to say."""

from __future__ import annotations

from .files import action, manifest, one_input
from .test_own_schema import own
from .test_parse import Faults

SEVERAL = '{ type = "array", items = { %s } }'


class AskTests(Faults):
    """The key C{ask}."""

    def test_taken(self) -> None:
        """Texts, numbers, booleans and several of a choice can be asked for; unsaid, nothing is."""
        for kind in ("string", "integer", "number", "boolean"):
            (one,) = action(one_input("a", kind, "ask = true")).inputs
            self.assertTrue(one.ask)
            self.assertFalse(action(one_input("a", kind)).inputs[0].ask)
        for items in (
            'type = "string", enum = ["x", "y"]',
            'enum = ["x"]',
            'anyOf = [{ const = "x", title = "X" }]',
            'oneOf = [{ const = "x" }, { const = "y" }]',
        ):
            self.assertTrue(action(own(SEVERAL % items, "ask = true")).inputs[0].ask)
        self.assertTrue(action(own('{ type = "string", oneOf = [{ const = "x" }] }', "ask = true")).inputs[0].ask)

    def test_goes_with(self) -> None:
        """A default and not being required go with it, and the tool's schema says nothing of it."""
        plain = action(one_input("a", "integer", "default = 3") + one_input("b", "string", "required = false"))
        asking = action(
            one_input("a", "integer", "default = 3", "ask = true")
            + one_input("b", "string", "required = false", "ask = true")
        )
        self.assertEqual([one.ask for one in asking.inputs], [True, True])
        self.assertEqual(asking.input_schema, plain.input_schema)

    def test_refused(self) -> None:
        """What no form can show is a fault of its line."""
        refused = [
            (one_input("a", "object", "ask = true"), "no form can ask for an object"),
            (own('{ type = "object" }', "ask = true"), "no form can ask for an object"),
            (one_input("a", "array", 'items_type = "string"', "ask = true"), "only for several of a choice"),
        ]
        several = (
            'type = "string"',
            "enum = [1]",
            'type = "integer", enum = ["x"]',
            'anyOf = [{ const = "x" }, { const = 1 }]',
            'anyOf = [{ const = "x" }, { pattern = "y" }]',
        )
        refused += [(own(SEVERAL % items, "ask = true"), "only for several of a choice") for items in several]
        refused.append((own('{ type = "array", items = true }', "ask = true"), "only for several of a choice"))
        for inputs, part in refused:
            self.assert_fault(manifest(inputs=inputs), part, "ask =")
        self.assert_fault(manifest(inputs=one_input("a", "string", 'ask = "yes"')), "must be true or false", "ask =")
