"""Keys of a TOML text are found in their lines."""

from __future__ import annotations

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.manifests._lines import index_lines

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


class IndexLinesTests(SynchronousTestCase):
    """L{index_lines}."""

    def test_every_form(self) -> None:
        """Keys after strings, comments, nested values and headers of every form are in their true lines."""
        tomllib.loads(TEXT)
        lines = TEXT.split("\n")
        found = index_lines(TEXT)
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
    @settings(deadline=None, max_examples=500)
    def test_whatever_is_toml(self, text: str) -> None:
        """For any valid text every key at the top has a line."""
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return
        found = index_lines(text)
        for key in values:
            self.assertIn((key,), found)
