"""What can be granted with an approval, in the form."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.template import flattenString

from aileron.values import JSON, Predicate, PredicateKind, Run, RunState, utc
from aileron.web.approvals.decision import grant_form
from tests.api.case import NOW

from .case import Reading, read


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
