"""Each listing of the documentation is played, or said not to be; and the reading and judging of listings."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.runner import TestLoader
from twisted.trial.unittest import SynchronousTestCase

from tests.functional import listings
from tests.functional.listings.page import PageTestCase
from tests.functional.listings.reading import Listed, clean, find_missing, read_commands
from tests.functional.listings.table import ELSEWHERE, NOT_RUN

DOC = Path(__file__).parents[1] / "doc"
PAGES = {
    str(path.relative_to(DOC)): found
    for path in sorted(DOC.rglob("*.md"))
    if "adr" not in path.parts and (found := read_commands(path.read_text("utf-8")))
}
SAMPLE = """\
```console
$ aileron one "a b" \\
    --two
First line
  …
$ aileron two  # says nothing
```

1. In a list:

   ```sh
   # Only a comment
   aileron three --arg channel=#general   # and a comment
   aileron four \\
     five
   ```

```sh
#!/bin/sh
exec sudo "$@"
```
```text
$ aileron not typed
```
"""


def cases() -> Iterator[type[PageTestCase]]:
    """The test cases of pages."""
    for found in pkgutil.iter_modules(listings.__path__, f"{listings.__name__}."):
        classes = (each for each in vars(importlib.import_module(found.name)).values() if isinstance(each, type))
        yield from (each for each in classes if issubclass(each, PageTestCase) and "page" in vars(each))


class EveryPageTests(SynchronousTestCase):
    """The pages against the tests that play them."""

    def test_every_page(self) -> None:
        """Every page with listings is played by one test case, or by another test that the table names."""
        here = [each.page for each in cases()]
        known = sorted([*here, *ELSEWHERE])
        left = {page for page, found in PAGES.items() if {each.line for each in found} - NOT_RUN.get(page, {}).keys()}
        self.assertEqual(known, sorted(left))

    def test_every_command(self) -> None:
        """A test case of a page has each of its commands, to the letter."""
        for case in cases():
            source = Path(importlib.import_module(case.__module__).__file__ or "").read_text("utf-8")
            texts = {each.value for each in ast.walk(ast.parse(source)) if isinstance(each, ast.Constant)}
            typed = {each.line for each in PAGES[case.page]} - NOT_RUN.get(case.page, {}).keys()
            self.assertEqual(sorted(typed - texts), [], case.page)

    def test_table(self) -> None:
        """What the table names is there: its pages' commands, and its tests."""
        gone = [
            (page, line)
            for page, lines in NOT_RUN.items()
            for line in lines
            if line not in {each.line for each in PAGES.get(page, ())}
        ]
        self.assertEqual(gone, [])
        self.assertEqual([page for page, lines in NOT_RUN.items() if not all(lines.values())], [])
        for name in set(ELSEWHERE.values()):
            self.assertEqual(TestLoader().loadByName(name).countTestCases(), 1, name)

    def test_kinds(self) -> None:
        """Commands stand in listings of the two kinds that are read."""
        opening = re.compile(r"^ *```([\w-]+)$", re.MULTILINE)
        kinds = {kind for path in DOC.rglob("*.md") for kind in opening.findall(path.read_text("utf-8"))}
        self.assertEqual(kinds & {"bash", "shell", "zsh", "fish", "powershell", "shell-session"}, set())


class ReadingTests(SynchronousTestCase):
    """A page's commands, and an output that a listing shows."""

    def test_commands(self) -> None:
        """Prompts and comments are left out, files and other listings too; output belongs to its command."""
        self.assertEqual(
            read_commands(SAMPLE),
            [
                Listed('aileron one "a b" --two', ("First line", "  …")),
                Listed("aileron two"),
                Listed("aileron three --arg channel=#general"),
                Listed("aileron four five"),
            ],
        )

    def test_shown(self) -> None:
        """All lines of a listing must be printed whole and in order; what varies may, others may come between."""
        printed = "\x1b[1mOne\x1b[0m \r\nother\r\nTwo: sha256:00ff\r\n  Three 3 (x)\r\n"
        self.assertEqual(clean(printed).splitlines()[0], "One")
        varies = {"sha256:ab…": "sha256:[0-9a-f]+"}
        for listed in (["One", "Two: sha256:ab…"], ["One", "…", "  Three … (x)"], ["Two: …"], []):
            self.assertIsNone(find_missing(listed, printed, varies))
        for listed in (["On"], ["Two: sha256:ab…", "One"], ["One", "One"], ["Three … (x)"], ["  Three … [x]"]):
            self.assertEqual(find_missing(listed, printed, varies), listed[-1])
