"""The test case of pages fails where it should, with a page of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

from tests.functional.listings.page import PageTestCase, Play
from tests.functional.listings.reading import VARIABLE

PAGE = """\
```console
$ read -p "Who? " who && (echo "It is $who, $(cat <&3).") 3<ID
Who? …
It is Ada, sha256:2b1c….
$ exit 3
$ echo shown
shown
and more
$ echo "a canary"
$ test -t 1
```
"""


class SampleTests(PageTestCase):
    """A reader of that page."""

    page = "sample.md"

    def setUp(self) -> None:
        """Write the page."""
        directory = Path(self.mktemp()).absolute()
        directory.mkdir()
        (directory / self.page).write_text(PAGE)
        self.patch(os, "environ", {**os.environ, VARIABLE: str(directory)})
        super().setUp()

    async def test_played(self) -> None:
        """Lines are run literally and compared; a code, an output, a secret, another or a missing play is noticed."""
        self.secrets.append("canary")
        (self.home.project / "digest").write_text("sha256:00ff")
        line = 'read -p "Who? " who && (echo "It is $who, $(cat <&3).") 3<ID'
        await self.play(
            Play(
                line,
                replace={"ID": "digest"},
                answers=[(r"Who\? ", "Ada")],
                shows=["Ada"],
                varies={"sha256:2b1c…": "sha256:[0-9a-f]{4}"},
            )
        )
        for play, problem in (
            (Play("exit 2"), "sample.md has another command here"),
            (Play("exit 3"), "exit 3"),
            (Play("echo shown"), "shows another output of echo shown"),
            (Play('echo "a canary"'), "shows a secret"),
        ):
            with self.assertRaises(self.failureException) as caught:
                await self.play(play)
            self.assertIn(problem, str(caught.exception))
        self.assertRaises(self.failureException, self.check_all_played)
        await self.play(Play("test -t 1"))
