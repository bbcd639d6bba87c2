"""The forms of an approval: the arguments in fields that one can change, and what can be granted with it."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.template import flattenString

from aileron.base.json import JSON, utc
from aileron.base.text import visible
from aileron.model.actions import Input
from aileron.model.authority import Predicate, PredicateKind
from aileron.model.runs import Run, RunState
from aileron.testing import scripted_offer
from aileron.web.approvals.decision import edit_form, grant_form
from tests.api.case import NOW
from tests.extent import examples

from .case import Reading, read


class EditFormTests(SynchronousTestCase):
    """One field for each input."""

    def drawn(self, *inputs: Input, **arguments: JSON) -> Reading:
        """The form of an action with these inputs, for these arguments."""
        now = utc(NOW)
        run = Run("1", "x", "1.0.0", "sha256:x", arguments, RunState.PENDING, True, "e", now, now)
        form = edit_form(run, evolve(scripted_offer().action, inputs=inputs))
        text: bytes = self.successResultOf(flattenString(None, form))
        return read(text.decode())

    def field(self, declared: Input, **arguments: JSON) -> tuple[str, dict[str, str]]:
        """The one field there is."""
        (found,) = [each for each in self.drawn(declared, **arguments).tags if "data-edits" in each[1]]
        return found

    def test_kinds(self) -> None:
        """Each type has the control that fits it, and the value as it is given."""
        for kind, value, tag, way in (
            ("string", "hello", "textarea", "text"),
            ("integer", 3, "input", "number"),
            ("number", 2.5, "input", "number"),
            ("boolean", True, "input", "flag"),
            ("array", ["a"], "textarea", "json"),
            ("object", {"a": 1}, "textarea", "json"),
        ):
            found, attributes = self.field(Input("x", kind, "What"), x=value)
            self.assertEqual((found, attributes["data-as"], attributes["data-edits"]), (tag, way, "x"), kind)
            self.assertEqual(json.loads(attributes["data-given"]), value)
        self.assertIn("checked", self.field(Input("x", "boolean", "What"), x=True)[1])
        self.assertNotIn("checked", self.field(Input("x", "boolean", "What"), x=False)[1])

    def test_choices(self) -> None:
        """An enumeration is a choice, the present value chosen."""
        shown = self.drawn(Input("x", "string", "What", enum=("a", "b")), x="b")
        options = [attributes for tag, attributes in shown.tags if tag == "option"]
        self.assertEqual([(each["value"], "selected" in each) for each in options], [('"a"', False), ('"b"', True)])

    def test_bounds(self) -> None:
        """What the action's file says of a number, the field says as well."""
        _, attributes = self.field(Input("x", "integer", "What", minimum=1, maximum=9), x=3)
        self.assertEqual((attributes["min"], attributes["max"], attributes["step"]), ("1", "9", "1"))

    def test_left_out(self) -> None:
        """What may be left out has a box for it, which says whether it is."""
        for given_now in (True, False):
            shown = self.drawn(Input("x", "string", "What", required=False), **({"x": "a"} if given_now else {}))
            (box,) = [each for _, each in shown.tags if each.get("id") == "without-0"]
            self.assertEqual("checked" in box, not given_now)
        self.assertNotIn(
            "without-0", [each.get("id") for _, each in self.drawn(Input("x", "string", "What"), x="a").tags]
        )

    def test_labelled(self) -> None:
        """Each field has a label and a description."""
        shown = self.drawn(Input("x", "string", "What it is", label="The thing"), x="a")
        self.assertIn("edit-0", [each.get("for") for tag, each in shown.tags if tag == "label"])
        self.assertIn("The thing", shown.text)
        self.assertIn("What it is", shown.text)
        shown = self.drawn(Input("x", "string", "What"), x="\nhello")
        self.assertIn("\n\nhello", shown.text, "a browser drops the first line feed of a text area")

    @settings(deadline=None, max_examples=examples(100))
    @given(st.text(max_size=40))
    def test_hostile(self, words: str) -> None:
        """Whatever the value, nothing in the form acts or hides; what would is written as JSON."""
        declared = Input(name="x", type="string", description=words, label=words)
        shown, usual = (self.drawn(declared, x=value) for value in (words, "harmless"))
        self.assertEqual(shown.shape, usual.shape)
        texts: list[Any] = [shown.text, *(value for _, each in shown.tags for value in each.values())]
        for text in texts:
            self.assertEqual(visible(text, multiline=True), text)
        (field,) = [each for _, each in shown.tags if "data-edits" in each]
        self.assertEqual(json.loads(field["data-given"]), words)


class GrantFormTests(SynchronousTestCase):
    """One choice for each argument."""

    def drawn(self, value: JSON, *suggested: Predicate, session_id: str | None = None) -> Reading:
        """The form for a call with this one argument."""
        now = utc(NOW)
        run = Run("1", "x", "1.0.0", "d", {"a": value}, RunState.PENDING, True, "e", now, now, session_id=session_id)
        text: bytes = self.successResultOf(flattenString(None, grant_form(run, suggested)))
        return read(text.decode())

    def kinds(self, value: JSON) -> list[str]:
        """What it can be asked to be; the first is nothing, for as it is."""
        values = [each["value"] for tag, each in self.drawn(value).tags if tag == "option" and "value" in each]
        return values[: values.index("any") + 1]

    def field(self, value: JSON, part: str, *suggested: Predicate) -> dict[str, str]:
        """A field that a choice needs."""
        (found,) = [each for _, each in self.drawn(value, *suggested).tags if each.get("data-part") == part]
        return found

    def test_kinds(self) -> None:
        """Each type of value has the choices that can hold of it, the strictest first and anything last."""
        for value, kinds in (
            ("x", ["", "one_of", "pattern", "domain", "any"]),
            (3, ["", "one_of", "range", "any"]),
            (2.5, ["", "one_of", "range", "any"]),
            (["a@a.org"], ["", "one_of", "domain", "any"]),
            (True, ["", "one_of", "any"]),
            (None, ["", "one_of", "any"]),
            ({"a": 1}, ["", "one_of", "any"]),
        ):
            self.assertEqual(self.kinds(value), kinds, value)

    def test_filled(self) -> None:
        """Each field begins with what holds of the value itself."""
        self.assertEqual(self.field("v1.0 (x)", "pattern")["value"], r"v1\.0 \(x\)")
        self.assertEqual(self.field(3, "minimum")["value"], "3")
        domain = Predicate("a", PredicateKind.DOMAIN, ["a.org", "b.org"])
        self.assertEqual(self.field("x@a.org", "domain", domain)["value"], "a.org b.org")
        self.assertEqual(self.field("x", "one_of")["data-as"], "text")
        self.assertIn("\nx", self.drawn("x").text)

    def test_hidden(self) -> None:
        """What holds characters that nobody would see is no pattern, and a line of JSON."""
        for value in ("a\u202eb", "a\nb", " a", ""):
            self.assertEqual(self.field(value, "one_of")["data-as"], "json", repr(value))
        self.assertEqual(self.field("a\u202eb", "pattern")["value"], "")
        self.assertIn('"a\\u202eb"', self.drawn("a\u202eb").text)

    def test_shown_by_the_script(self) -> None:
        """No field of a choice is shown before it is chosen."""
        parts = [each for _, each in self.drawn("x").tags if "data-of" in each]
        self.assertEqual([each["data-of"] for each in parts], ["one_of", "pattern", "domain"])
        self.assertTrue(all("hidden" in each for each in parts))

    def test_whose(self) -> None:
        """This session alone is the first choice, where there is one."""
        for session_id, first in (("s", "session"), (None, "all")):
            values = [each["value"] for tag, each in self.drawn("x", session_id=session_id).tags if "value" in each]
            self.assertIn(first, values)
            self.assertEqual("session" in values, session_id is not None)
