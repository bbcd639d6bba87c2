"""An agent where a person sits before it, and in a sandbox."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import attrs

from aileron.features.launch.agents import find_agents
from tests.agents import case
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command
from tests.functional.script import Say, Turn

_WATCHED = 'before=$(stty -g); "$@"; code=$?; [ "$(stty -g)" = "$before" ] && echo as it was; exit $code'


def walled(command: Command, *options: str) -> Command:
    """The same launch in a sandbox, with more of its options."""
    place = command.arguments.index("launch") + 1
    ours, its = command.arguments[:place], command.arguments[place:]
    return attrs.evolve(command, arguments=(*ours, "--sandbox", *options, *its))


class ConversationTestCase(case.AgentTestCase):
    """A person who talks with the agent at a terminal."""

    async def converse(self, turns: Sequence[Turn], *actions: Path) -> case.Launched:
        """Furnish the user's home and start a conversation, the terminal's state being compared around it.

        :param turns: all but the last, which says `case.BYE`.
        :param actions: files of more actions than the usual two.
        """
        llm, paths = await self.prepare(turns, *actions)
        self.kind.settle(self.home)
        files = case.contents(paths)
        return case.Launched(self.start(self.watched(self.conversation())), llm, files)

    def watched(self, command: Command) -> Command:
        """The same on a terminal, and at its end C{as it was}, if it left the terminal so."""
        return attrs.evolve(command, terminal=True).behind("/bin/sh", "-c", _WATCHED, "sh")

    async def type(self, launched: case.Launched, line: str) -> None:
        """A line as a person types it, who does not paste."""
        await self.pause(3)
        launched.running.press(line)
        await self.pause(1)
        launched.running.press("\r")

    async def left(self, launched: case.Launched) -> None:
        """Leave it, and find the terminal, the user's files and the daemon as they were."""
        await self.pause(3)
        for keys in self.kind.leaving:
            launched.running.press(keys)
            await self.pause(0.5)
        finished = await launched.running.finish(30)
        self.assertEqual(finished.exit_code, 0)
        self.assertIn("as it was", finished.stdout[-100:])
        self.assertEqual((await self.status())["counts"]["sessions"], 0)
        self.assert_untouched(launched)


class TerminalTestCase(ConversationTestCase):
    """For a class that names its kind of agent.

    :cvar tells: how a person is told that a call waits.
    """

    tells: ClassVar[str] = "\x1b\\]9;1 pending approval"

    async def test_terminal(self) -> None:
        """What is typed is asked for and done, the person is told, and the terminal is left as it was."""
        launched = await self.converse([self.call(GATED, SHIP)])
        await launched.running.expect(self.kind.ready, case.SECONDS)
        await self.type(launched, case.PROMPT)
        (approval,) = await self.waiting(seconds=case.SECONDS)
        self.assert_no_secrets(launched)
        await launched.running.expect(self.tells, 10)
        await self.approve(approval["id"])
        await launched.running.expect(case.BYE.split()[-1], case.SECONDS)
        await self.left(launched)
        self.assertIn("C0002", self.results(launched)[-1])


class SandboxTestCase(case.AgentTestCase):
    """For a class that names its kind of agent.

    :cvar kept: what of the user's home an agent writes that stays, a pattern.
    :cvar beside: files that lay beside its settings before, by name.
    """

    kept: ClassVar[str]
    beside: ClassVar[tuple[str, ...]] = ()

    def launch_command(self, prompt: str) -> Command:
        """The same in a sandbox."""
        return walled(super().launch_command(prompt))

    async def test_sandbox(self) -> None:
        """It thinks through the gateway and acts; its conversation stays, and nothing beside settings does."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        (approval,) = await self.waiting(seconds=case.SECONDS)
        await self.approve(approval["id"])
        (result,) = await self.finished(launched)
        self.assertIn("C0002", result)
        self.assertNotEqual(list(self.home.user.glob(self.kept)), [])
        settings = next(iter(launched.files)).parent
        there = {path.name for path in settings.iterdir() if path.is_file()}
        self.assertEqual(there, {*(path.name for path in launched.files), *self.beside})

    async def test_what_stays(self) -> None:
        """Of what it writes into the user's home only sessions and logs stay, first and after work outside.

        Where it has worked outside of a sandbox it works in one as well, though it cannot change what it left there.
        """
        await self.prepare([Say(case.BYE), Say(case.BYE)])
        inside = self.launch_command(case.PROMPT)
        before = self.files()
        await self.worked(inside)
        first = self.files()
        await self.worked(super().launch_command(case.PROMPT))
        outside = self.files()
        await self.worked(inside)
        for old, new in ((before, first), (outside, self.files())):
            changed = {path for path, found in new.items() if old.get(path) != found}
            agent = find_agents()[self.kind.name]
            environment = {"HOME": str(self.home.user)}
            own = (*agent.own_directories(environment), *agent.own_paths(environment))
            self.assertEqual([path for path in changed if not any(path.is_relative_to(each) for each in own)], [])
            self.assertNotEqual(changed, set())

    async def worked(self, command: Command) -> None:
        """Let it say one thing."""
        finished = await self.run_command(command, case.SECONDS)
        self.assertEqual(finished.exit_code, 0, f"{finished.stdout[-3000:]}\n{finished.stderr[-3000:]}")
        self.assertEqual(self.kind.texts(finished)[-1:], [case.BYE], f"{finished.stdout[-3000:]}")

    def files(self) -> dict[Path, bytes]:
        """The user's own files, but for the project's."""
        paths = (path for path in self.home.user.rglob("*") if path.is_file() and not path.is_symlink())
        return {path: path.read_bytes() for path in paths if not path.is_relative_to(self.home.project)}
