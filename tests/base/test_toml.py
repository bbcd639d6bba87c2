"""TOML of strangers: read within bounds, its keys found in their lines."""

from __future__ import annotations

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.toml import NotToml, Toml, read_toml
from tests.extent import examples

TEXT = (
    '''# comment = [
a = 1

b.c = """
x = 1
[no]
""""" # }
"d e" = { x = "]", y = [
  1, # ]
] }
[t] # trailing
k = 'it''s'
'''.replace("'it''s'", "'it \" [ s'")
    + """
[[list]]
n = 1
[list.sub]
m = '''
[[list]]'''
[[list]]
n = 2
[[list.inner]]
o = "\\"["
[list.sub."q.r"]
p = 2024-01-01
"""
)


class LinesTests(SynchronousTestCase):
    """L{Toml.lines} and L{Toml.line}."""

    def test_every_form(self) -> None:
        """Keys after strings, comments, nested values and headers of every form are in their true lines."""
        tomllib.loads(TEXT)
        lines = TEXT.split("\n")
        found = read_toml(TEXT).lines
        for path, start in (
            (("a",), "a ="),
            (("b", "c"), "b.c ="),
            (("d e",), '"d e" ='),
            (("t",), "[t]"),
            (("t", "k"), "k ="),
            (("list", 0), "[[list]]"),
            (("list", 0, "n"), "n = 1"),
            (("list", 0, "sub"), "[list.sub]"),
            (("list", 0, "sub", "m"), "m ="),
            (("list", 1, "n"), "n = 2"),
            (("list", 1, "inner", 0, "o"), "o ="),
            (("list", 1, "sub", "q.r"), "[list.sub."),
            (("list", 1, "sub", "q.r", "p"), "p ="),
        ):
            self.assertTrue(lines[found[path] - 1].startswith(start), (path, found[path]))
        self.assertNotIn(("x",), found)
        self.assertNotIn(("no",), found)

    @given(st.text(st.sampled_from("a='\"[]{}.,#\n\\ 1"), max_size=40))
    @settings(deadline=None, max_examples=examples(500))
    def test_whatever_is_toml(self, text: str) -> None:
        """For any valid text every key at the top has a line."""
        try:
            found = read_toml(text)
        except NotToml:
            return
        self.assertEqual(found.values, tomllib.loads(text))
        for key in found.values:
            self.assertIn((key,), found.lines)

    def test_nearest(self) -> None:
        """What has no line of its own is told by the first line inside it, else by what it stands in."""
        toml = read_toml("[a.b]\nc = { d = 1 }\n[e]\n")
        self.assertEqual(toml.line(("a", "b", "c", "d")), 2)
        self.assertEqual(toml.line(("a", "x")), 1)
        self.assertEqual(toml.line(("a",)), 1)
        self.assertEqual(toml.line(("e", "f")), 3)
        self.assertIsNone(toml.line(("x",)))
        self.assertIsNone(Toml({}, "").line(()))


class RefusedTests(SynchronousTestCase):
    """What is not read."""

    def refused(self, text: str) -> NotToml:
        """The refusal of a text."""
        error: NotToml = self.assertRaises(NotToml, read_toml, text)
        return error

    def test_not_toml(self) -> None:
        """A text that is no TOML is refused with the line, or as ending too early; a costly one without being read."""
        found = self.refused("a = 1\nb = \n")
        self.assertEqual((found.line, found.at_end), (2, False))
        found = self.refused("a = [\n")
        self.assertEqual((found.line, found.at_end), (None, True))
        self.assertEqual(self.refused("\n" + ".".join(["a"] * 30_000) + " = 1").line, 2)
        self.assertEqual(self.refused("a = " + "[" * 50_000).problem, "is nested too deeply")
        self.assertEqual(self.refused("a = " + "9" * 5000).problem, "has a value that cannot be read")
        for opened in ('"""', "'''", '"', "'"):  # nothing hides behind a text that is not closed
            self.refused(f"a = {opened}\n" + ".".join(["a"] * 100))
            self.refused("\n" + ".".join(["a"] * 100) + f" = {opened}")
