"""An agent in a pane of tmux, where a shell is before it and after it."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.agents import case
from tests.functional import install, tree
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command, Finished, Running
from tests.functional.reactor import DeadlinePassedError, Patience, until
from tests.functional.script import Turn

_PROMPT = "user$"
_FLAGS = ("cursor_flag", "alternate_on", "mouse_any_flag", "keypad_flag", "keypad_cursor_flag", "insert_flag")
_OF_A_SHELL = "1 0 0 0 0 0"


class TmuxTestCase(case.AgentTestCase):
    """For a class that names its kind of agent."""

    async def test_tmux(self) -> None:
        """Typed at a shell's prompt it starts and acts; when it is left, the shell goes on in its pane as before."""
        llm, paths = await self.prepare(self.turns())
        self.kind.settle(self.home)
        files, command = case.contents(paths), self.conversation()
        launched = case.Launched(await self.tmux(command), llm, files)
        self.assertEqual(await self.said("before=$(stty -g)"), [])
        await self.type(shlex.join(("aileron", *command.arguments[1:])))
        await self.ready()
        await self.type(case.PROMPT)
        (approval,) = await self.waiting(seconds=case.SECONDS)
        self.assert_no_secrets(launched)
        await self.asked()
        await self.approve(approval["id"])
        await self.shows(case.BYE)
        await self.left(launched)
        self.assertIn("C0002", str(llm.script.of(self.kind.model)[-1].messages))
        self.assertEqual([each.text for each in self.workspace.messages], [SHIP["summary"]])

    def turns(self) -> Sequence[Turn]:
        """What the model does, but for its last words."""
        return [self.call(GATED, SHIP)]

    async def ready(self) -> None:
        """Wait until one can type."""
        await self.shows(self.kind.ready)

    async def asked(self) -> None:
        """Answer what the agent itself asks while the call waits."""

    async def left(self, launched: case.Launched) -> None:
        """Leave it, and find the shell, its terminal, the user's files and the daemon as they were."""
        await self.pause(3)
        for keys in self.kind.leaving:
            await self.press(keys)
            await self.pause(0.5)
        await self.prompted()
        self.assertEqual(await self.said("echo code $?"), ["code 0"])
        self.assertEqual(await self.said('[ "$(stty -g)" = "$before" ] && echo as it was'), ["as it was"])
        modes = " ".join(await self.said("stty -a")).split()
        self.assertLessEqual({"echo", "icanon", "isig"}, set(modes))
        flags = await self.order("display-message", "-p", " ".join(f"#{{{flag}}}" for flag in _FLAGS))
        self.assertEqual(flags.stdout.strip(), _OF_A_SHELL, _FLAGS)
        there = [member.arguments for member in tree.descendants(launched.running.pid)]
        self.assertEqual(there, [("/bin/sh",)])
        self.assertEqual((await self.status())["counts"]["sessions"], 0)
        self.assert_untouched(launched)

    # the pane ---------------------------------------------------------------------------------

    async def tmux(self, command: Command) -> Running:
        """Start a tmux of the test's own with one pane, in it a shell with the command's environment.

        :return: the server, which ends with the test.
        """
        if not install.TMUX.exists():
            self.fail(f"{install.TMUX} is missing: as root, apt-get install tmux")
        environment = {**command.environment, "LANG": "C.UTF-8"}
        self._around = attrs.evolve(command, environment=environment)
        server = self.start(self._command("-D"))
        await until(self.reactor, self._socket.exists, 10, "tmux")
        self.finally_(lambda: self._ended(server))
        await self.order("new-session", "-d", "-x", "100", "-y", "30", "env", f"PS1={_PROMPT} ", "/bin/sh")
        await self.prompted()
        return server

    async def order(self, *arguments: str) -> Finished:
        """Have tmux do something."""
        return await self.run_command(self._command(*arguments))

    async def press(self, keys: str) -> None:
        """So many keys, and no Enter."""
        await self.order("send-keys", "-l", keys)

    async def type(self, line: str) -> None:
        """A line as a person types it, who does not paste."""
        await self.pause(3)
        await self.press(line)
        await self.pause(1)
        await self.press("\r")

    async def said(self, line: str) -> list[str]:
        """What the shell says to a line, which is seen as it is typed."""
        await self.press(line)
        await self.shows(f"{_PROMPT} {line}", 10)
        await self.press("\r")
        await self.prompted()
        *lines, _ = (await self.screen()).splitlines()
        typed = max(place for place, each in enumerate(lines) if each == f"{_PROMPT} {line}")
        return lines[typed + 1 :]

    async def screen(self) -> str:
        """What stands in the pane, without the blanks at the ends."""
        return (await self.order("capture-pane", "-p")).stdout.rstrip()

    async def shows(self, words: str, seconds: float = case.SECONDS) -> None:
        """Wait until these words stand in the pane.

        :raises DeadlinePassedError: they do not in time.
        """
        patience = Patience(self.reactor, seconds)
        while words not in (screen := await self.screen()):
            if patience.is_over:
                raise DeadlinePassedError(f"not within {seconds:g} s: {words!r} in\n{screen}")
            await self.pause(0.1)

    async def prompted(self) -> None:
        """Wait until the shell's prompt stands alone in the pane's last line."""
        patience = Patience(self.reactor, 30)
        while (screen := await self.screen()).splitlines()[-1:] != [_PROMPT]:
            if patience.is_over:
                raise DeadlinePassedError(f"no prompt in\n{screen}")
            await self.pause(0.1)

    @property
    def _socket(self) -> Path:
        return self.home.root / "tmux"

    def _command(self, *arguments: str) -> Command:
        own = (str(install.TMUX), "-S", str(self._socket), "-f", "/dev/null")
        return attrs.evolve(self._around, arguments=(*own, *arguments))

    async def _ended(self, server: Running) -> None:
        await self.order("kill-server")
        await server.finish(10)
