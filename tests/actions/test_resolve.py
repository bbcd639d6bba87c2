"""A step's inputs are filled with the run's values, which keep their types."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import KnownValues, resolve, uses_outputs
from aileron.base.json import JSON
from aileron.model.actions import Step
from aileron.model.errors import InvalidRequest
from tests.extent import examples

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("${args.b}"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def filled(value: JSON, arguments: Mapping[str, JSON] | None = None, outputs: Mapping[str, JSON] | None = None) -> JSON:
    """What becomes of the input C{x} with that value; C{"dropped"} stands for no such input."""
    step = Step("s", "builtin://slack", "post", {"x": value})
    return resolve(step, KnownValues(arguments or {}, outputs or {})).get("x", "dropped")


class ResolveTests(SynchronousTestCase):
    """L{resolve}."""

    def refused(self, value: JSON, arguments: Mapping[str, JSON], outputs: Mapping[str, JSON]) -> str:
        error = self.assertRaises(InvalidRequest, filled, value, arguments, outputs)
        problems = error.details["problems"]
        assert isinstance(problems, list)
        self.assertTrue(problems[0]["pointer"].startswith("/steps/s/inputs/x"))
        return str(problems[0]["message"])

    @given(ANY_JSON)
    @settings(deadline=None, max_examples=examples(100))
    def test_alone_keeps_type(self, value: JSON) -> None:
        """A reference that is the whole value becomes that very value, whatever it is and says."""
        self.assertIs(filled("${args.a}", {"a": value, "b": "no"}), value)
        self.assertEqual(filled({"k": ["${args.a}"]}, {"a": value, "b": "no"}), {"k": [value]})
        self.assertIs(filled("${steps.one.out}", {}, {"one": {"out": value}}), value)

    @given(st.text())
    @settings(deadline=None, max_examples=examples(100))
    def test_within_text(self, value: str) -> None:
        """A text is put into a longer one as it is, and what it says is not a reference again."""
        self.assertEqual(filled("<${args.a}>${args.a}", {"a": value, "b": "no"}), f"<{value}>{value}")
        self.assertEqual(filled("<${args.a}>", {"a": "${args.b}", "b": "no"}), "<${args.b}>")

    def test_text_forms(self) -> None:
        """Numbers and booleans are written as JSON does; objects, arrays and null go into no text or error."""
        for value, text in ((42, "42"), (1.5, "1.5"), (2.0, "2"), (True, "true"), (False, "false"), (-0.0, "0")):
            self.assertEqual(filled("n=${args.a}", {"a": value}), f"n={text}")
        values: tuple[JSON, ...] = ({}, [], None, {"secret": 1})
        for none in values:
            self.assertEqual(
                self.refused("n=${args.a}", {"a": none}, {}), "would put an object, an array or null into a text"
            )

    def test_left_out(self) -> None:
        """An optional argument that was left out drops its key or its element, and cannot stand in a longer text."""
        self.assertEqual(filled("${args.a}"), "dropped")
        self.assertEqual(filled({"a": "${args.a}", "b": 1}), {"b": 1})
        self.assertEqual(filled(["x", "${args.a}", "y"]), ["x", "y"])
        self.assertIn("was left out", self.refused("x ${args.a}", {}, {}))
        self.assertEqual(filled("${args.a}", {"a": None}), None)

    def test_literals(self) -> None:
        """Everything that is no reference stays, and an escaped one loses its escape only."""
        value: dict[str, JSON] = {
            "n": 1,
            "f": 1.5,
            "t": True,
            "z": None,
            "s": "$5 {x} $ $$",
            "e": "$${args.a}",
            "l": [[]],
        }
        self.assertEqual(filled(value, {"a": "no"}), {**value, "e": "${args.a}"})
        self.assertEqual(filled(""), "")

    def test_path(self) -> None:
        """A path leads through objects by key and through arrays by index."""
        outputs: JSON = {"one": {"list": [{"ts": "1.2"}], "0": "zero", "a-b": {"c d": 7}}}
        assert isinstance(outputs, dict)
        for path, value in (("list.0.ts", "1.2"), ("0", "zero"), ("a-b.c d", 7), ("list", [{"ts": "1.2"}])):
            self.assertEqual(filled(f"${{steps.one.{path}}}", {}, outputs), value)
        self.assertEqual(filled("at ${steps.one.list.0.ts}", {}, outputs), "at 1.2")

    def test_nowhere(self) -> None:
        """A path that leads nowhere is refused and never becomes a text; so is what no parser would have let pass."""
        outputs: dict[str, JSON] = {"one": {"list": [1], "s": "text", "n": None}}
        for path in ("one.x", "one.list.1", "one.list.-1", "one.list.00", "one.s.0", "one.n.x", "two.x", "one.list.٠"):
            for template in (f"${{steps.{path}}}", f"a ${{steps.{path}}} b"):
                self.assertIn("is not in the result", self.refused(template, {}, outputs))
        self.assertIn("is none of", self.refused("${env.HOME}", {}, {}))
        self.assertIn("not closed", self.refused({"deep": ["${args.a"]}, {"a": 1}, {}))


class UsesOutputsTests(SynchronousTestCase):
    """L{uses_outputs}."""

    def test_uses(self) -> None:
        """One reference to a result is enough, wherever it stands; an escaped one, a key and an argument are none."""
        cases: tuple[tuple[JSON, bool], ...] = (
            ("${steps.a.b}", True),
            ("x ${steps.a.b} y ${args.c}", True),
            ("$${steps.a.b}", False),
            ("${args.a}", False),
            (3, False),
            ({"steps.a.b": "steps.a.b"}, False),
        )
        for value, uses in cases:
            deep: JSON = [1, {"y": ["z", value]}]
            for each in (value, deep):
                self.assertIs(uses_outputs(Step("s", "builtin://slack", "post", {"x": each})), uses, each)
