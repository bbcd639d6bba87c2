"""The test case of a page: its commands are run one after another, and what was played is held against the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import attrs

from aileron.home.paths import Home as State
from tests.functional.listings.reading import Listed, clean, find_missing, pages, read_commands
from tests.functional.listings.table import NOT_RUN
from tests.functional.operated import PASSPHRASE, OperatedTestCase
from tests.functional.process import Command, Running

LOG_IN = ("Passphrase of the vault: ", PASSPHRASE)
BACKUP = ("Passphrase of the backup: ", PASSPHRASE)
YES = (r"\[y/N\] ", "y")

# A program that closes its three descriptors before it ends, as rm does, would be hung up with the terminal.
_KEEPING = 'bash -c "$0"; exit $?'


@attrs.frozen
class Play:
    """A command of a page, and what must come of it.

    :ivar line: as the page has it, to the letter.
    :ivar replace: placeholders of the line, such as C{ID}, and what the test has in their place; also in what is shown.
    :ivar answers: the questions, as regular expressions and in order, and what is typed then.
    :ivar shows: texts that must be shown, whether or not the listing shows them.
    :ivar varies: texts that a listing shows, and for each the regular expression of what is shown here.
    :ivar environment: variables besides the user's own.
    """

    line: str
    answers: Sequence[tuple[str, str]] = attrs.field(default=(), kw_only=True)
    code: int = attrs.field(default=0, kw_only=True)
    shows: Sequence[str] = attrs.field(default=(), kw_only=True)
    replace: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    varies: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    environment: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    seconds: float = attrs.field(default=120, kw_only=True)

    def substitute(self, text: str) -> str:
        """The text, with what the test has in place of the placeholders."""
        for placeholder, value in self.replace.items():
            text = text.replace(placeholder, value)
        return text


@attrs.frozen
class Playing:
    """A command that was started."""

    play: Play
    listed: Listed
    running: Running


class PageTestCase(OperatedTestCase):
    """A user with an empty home who types what a page says, in a project's directory.

    A test plays the whole page. It fails if it plays another command than the page has at that place, or if a command
    of the page is left over that C{listings/table.py} does not name.

    :cvar page: its path below C{doc}.
    :cvar timeout: of the whole test, in seconds; a page has a dozen commands, each a process or two.
    :ivar secrets: what no command may show.
    :ivar behind: what stands before each command, for another network than the machine's.
    """

    page: ClassVar[str]
    timeout = 900

    def setUp(self) -> None:
        """Read the page; Aileron's home is where it is for users who set no variable."""
        super().setUp()
        self.home = attrs.evolve(self.home, state=self.home.user / ".aileron")
        self.state = State(self.home.aileron)
        self.secrets = [PASSPHRASE, self.workspace.token]
        self.behind: Sequence[str] = ()
        kept_out = NOT_RUN.get(self.page, {})
        commands = read_commands(self.page_text())
        self._left = [each for each in commands if each.line not in kept_out]
        self.addCleanup(self.check_all_played)

    @property
    def programs(self) -> Path:
        """A directory before all others on the user's C{PATH}, for programs that the test has in place of others."""
        return self.home.root / "programs"

    def environment(self, **more: str) -> dict[str, str]:
        """The whole environment of what the user types."""
        environment = self.home.environment()
        del environment["AILERON_HOME"]
        return environment | {"PATH": f"{self.programs}:{environment['PATH']}"} | more

    def put_program(self, name: str, text: str) -> Path:
        """Put a program on the user's C{PATH}."""
        self.programs.mkdir(exist_ok=True)
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o700)
        return path

    def put_recorder(self, name: str) -> Callable[[], list[str]]:
        """Put a program there that only notes its arguments; a function that returns them, a line a call."""
        noted = self.home.root / f"{name}-called"
        self.put_program(name, f'#!/bin/sh\necho "$*" >>{noted}\n')
        return lambda: noted.read_text().splitlines() if noted.exists() else []

    def page_text(self) -> str:
        """The page itself, for what it has a reader save in files."""
        return (pages() / self.page).read_text("utf-8")

    async def play(self, *plays: Play) -> str:
        """Run these commands in order; what the last one showed."""
        shown = ""
        for play in plays:
            shown = await self.finish(self.begin(play))
        return shown

    def begin(self, play: Play) -> Playing:
        """Start a command, which must be the page's next one; others may be played before it is finished."""
        following = self._left[0].line if self._left else "the end of the page"
        self.assertEqual(play.line, following, f"{self.page} has another command here")
        command = Command(
            arguments=("/bin/bash", "-c", _KEEPING, play.substitute(play.line)),
            environment=self.environment(**play.environment),
            directory=self.home.project,
            terminal=True,
        )
        running = self.start(command.behind(*self.behind))
        return Playing(play, self._left.pop(0), running)

    async def finish(self, playing: Playing) -> str:
        """Answer a command's questions and wait for its end; what it showed, without colours."""
        play, running = playing.play, playing.running
        for question, answer in play.answers:
            await running.expect(question, play.seconds)
            running.send(answer)
        finished = await running.finish(play.seconds)
        shown = clean(finished.stdout)
        self.assertEqual(finished.exit_code, play.code, f"{play.line}\n{shown}")
        for secret in self.secrets:
            self.assertNotIn(secret, shown, f"{play.line} shows a secret")
        for text in play.shows:
            self.assertIn(text, shown, f"{play.line}: no {text!r} in\n{shown}")
        listed = [play.substitute(line) for line in playing.listed.output]
        missing = find_missing(listed, shown, {"/home/you": str(self.home.user), **play.varies})
        self.assertIsNone(missing, f"{self.page} shows another output of {play.line} than\n{shown}")
        return shown

    def check_all_played(self) -> None:
        """Nothing of the page is left over."""
        left = [each.line for each in self._left]
        self.assertEqual(left, [], f"{self.page} has commands that were not played")
