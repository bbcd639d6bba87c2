"""Launching: a real child on real descriptors, real signals, and a session that ends whatever happens."""

import json
import signal
import sys
from typing import Any

from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.functional.case import FunctionalTestCase
from tests.functional.loopback import LoopbackSite
from tests.functional.process import Command, Finished, Running

# What the command line does, without its options: a launcher over the real reactor, signals and connections.
LAUNCH = """
import os, sys
from twisted.internet import task
from twisted.internet.defer import Deferred
from aileron.client import Connections
from aileron.features.launch._launch import Launcher
from aileron.features.launch.agents import find_agents
from aileron.features.launch.plan import DaemonFacts
from aileron.features.launch.registration import Invocation

async def ensure():
    return DaemonFacts(sys.argv[1], "http://localhost:1", "ail_l_key")

async def main(reactor):
    launcher = Launcher(
        reactor, ensure, Connections(reactor).daemon,
        lambda line: print(line, file=sys.stderr), sys.executable,
    )
    invocation = Invocation(tuple(sys.argv[2:]), os.environ, os.getcwd())
    raise SystemExit(await launcher.launch(find_agents()["opencode"], invocation))

task.react(lambda reactor: Deferred.fromCoroutine(main(reactor)))
"""


class Sessions(Resource):
    """Opens sessions and remembers how they ended.

    :ivar opened: what each claimed.
    :ivar ended: the exit codes.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.opened: list[dict[str, Any]] = []
        self.ended: list[int | None] = []

    def render_POST(self, request: Request) -> bytes:
        """Open or end one."""
        assert request.content is not None
        body = json.loads(request.content.read())
        if request.path == b"/v1/sessions":
            self.opened.append(body)
            request.setResponseCode(201)
            return b'{"id": "S", "token": "ail_a_test", "gateway_key": "g"}'
        self.ended.append(body["exit_code"])
        return b"{}"


class LaunchCase(FunctionalTestCase):
    """An agent that is a shell script, and a stub of the daemon."""

    def setUp(self) -> None:
        """Listen."""
        super().setUp()
        self.sessions = Sessions()
        self.site = LoopbackSite.listen(self.reactor, self.sessions)
        self.finally_(self.site.stop)
        self.programs = self.home.root / "programs"
        self.programs.mkdir()

    def agent(self, script: str) -> None:
        """Install an agent of that name that does this."""
        program = self.programs / "opencode"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def launcher(self, *arguments: str, terminal: bool = False, **environment: Any) -> Command:
        """The command that launches it."""
        return Command(
            arguments=(sys.executable, "-c", LAUNCH, self.site.url, *arguments),
            environment={**self.home.environment(), **environment, "PATH": f"{self.programs}:/usr/bin:/bin"},
            directory=self.home.project,
            terminal=terminal,
        )

    async def launch(self, script: str, *arguments: str, **environment: Any) -> Finished:
        """Launch an agent that does this, to its end."""
        self.agent(script)
        return await self.run_command(self.launcher(*arguments, **environment))

    async def started(self, script: str, *, terminal: bool = False) -> Running:
        """Launch an agent that says that it is ready, and wait until it does."""
        self.agent(script)
        running = self.start(self.launcher(terminal=terminal))
        await running.expect("ready")
        return running


class PassingOnTests(LaunchCase):
    """What reaches the agent, and what comes of it."""

    async def test_exit_code(self) -> None:
        """The agent's exit code is the launcher's, and the session's; a signal counts as 128 and its number."""
        for script, code in (("exit 7", 7), ("kill -KILL $$", 137)):
            self.assertEqual((await self.launch(script)).exit_code, code)
        self.assertEqual(self.sessions.ended, [7, 137])
        self.assertEqual(self.sessions.opened[0], {"agent": "opencode", "working_dir": str(self.home.project)})

    async def test_surroundings(self) -> None:
        """Arguments arrive as they were, output goes where the launcher's does, the token is in no argument."""
        script = 'printf "[%s]" "$@"; echo; echo oops >&2; env; tr "\\0" " " < /proc/$$/cmdline'
        finished = await self.launch(script, "a b", "", "--x=*", AILERON_HOME="/h", AILERON_TOKEN="old", MINE="kept")
        self.assertTrue(finished.stdout.startswith("[a b][][--x=*]\n"), finished.stdout)
        self.assertIn("oops", finished.stderr)
        lines = finished.stdout.splitlines()
        ours = [line for line in lines if "ail_a_test" in line]
        self.assertEqual([line.partition("=")[0] for line in ours], ["OPENCODE_CONFIG_CONTENT"])
        self.assertIn("MINE=kept", lines)
        self.assertEqual([line for line in lines if line.startswith("AILERON_")], [])

    async def test_signals_are_not_ignored(self) -> None:
        """The agent starts with the default disposition of every signal."""
        # The shell reads it itself: while it starts another program, it blocks every signal for a moment.
        of_interest = 'case $line in SigIgn*|SigBlk*) echo "$line";; esac'
        finished = await self.launch(f"while read -r line; do {of_interest}; done < /proc/$$/status")
        masks = [int(line.split()[1], 16) for line in finished.stdout.splitlines()]
        self.assertEqual(len(masks), 2)
        for mask in masks:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT):
                self.assertFalse(mask & (1 << (number - 1)), number)


class SignalTests(LaunchCase):
    """Signals to the launcher."""

    async def test_forwarded(self) -> None:
        """SIGTERM and SIGHUP reach the agent, whose end is the launcher's."""
        for name, number in [("TERM", signal.SIGTERM), ("HUP", signal.SIGHUP)]:
            on_signal = f"trap 'echo got {name}; exit 9' {name}"
            running = await self.started(f"{on_signal}; echo ready; while :; do sleep 0.05; done")
            finished = await running.signal(number)
            self.assertEqual(finished.exit_code, 9)
            self.assertEqual(finished.stdout.count(f"got {name}"), 1)
        self.assertEqual(self.sessions.ended, [9, 9])

    async def test_interrupt_at_the_terminal(self) -> None:
        """Ctrl-C reaches the agent once, and the launcher lives on to end the session."""
        waits = 'until [ "$got" ]; do sleep 0.1; done; sleep 1'  # a second one would be noticed
        script = f"trap 'echo got INT; got=1' INT; echo ready; {waits}; exit 4"
        running = await self.started(script, terminal=True)
        running.send("\x03")
        await running.expect("got INT")
        finished = await running.finish(30)
        self.assertEqual((finished.exit_code, finished.stdout.count("got INT")), (4, 1))
        self.assertEqual(self.sessions.ended, [4])
