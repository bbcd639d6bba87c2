"""Commands under the kit are fed, questioned, timed and searched as functional tests need it."""

import base64
import os
import signal
import sys
from pathlib import Path

import attrs
from twisted.internet.defer import Deferred

from tests.functional import canary, opencode
from tests.functional.case import FunctionalTestCase
from tests.functional.home import installed
from tests.functional.process import Command, Running
from tests.functional.reactor import DeadlinePassedError, until

ASK = """
import getpass
print("hello", flush=True)
print("got", getpass.getpass("Passphrase: "), input("Sure? "))
"""
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


class EndedWhileStarting(Running):
    """Starts no faster than its command ends."""

    def connectionMade(self) -> None:
        """Wait for the end, and leave it to the reactor to take note of it."""
        super().connectionMade()
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)


class ProcessTests(FunctionalTestCase):
    """Small Python programs stand for the commands."""

    def python(self, program: str, **more: str) -> Command:
        """A command that runs a program text."""
        return Command(
            arguments=(sys.executable, "-c", program),
            environment=self.home.environment(**more),
            directory=self.home.project,
        )

    async def test_surroundings(self) -> None:
        """A command sees the home's environment, not the tester's, works in the project and reads nothing."""
        os.environ["LEAK_FROM_TESTER"] = "1"
        self.addCleanup(os.environ.pop, "LEAK_FROM_TESTER")
        program = "import os, sys; print(sorted(os.environ), os.getcwd(), repr(sys.stdin.read()))"
        finished = await self.run_command(self.python(program, MARK="1"))
        self.assertIn("'AILERON_HOME', 'HOME'", finished.stdout)
        self.assertIn("'MARK'", finished.stdout)
        self.assertNotIn("LEAK_FROM_TESTER", finished.stdout)
        self.assertIn(f"{self.home.project} ''", finished.stdout)

    async def test_exit_code_and_errors(self) -> None:
        """The exit code, standard error and a duration come back."""
        finished = await self.run_command(self.python("import sys; sys.exit('no')"))
        self.assertEqual((finished.exit_code, finished.stderr), (1, "no\n"))
        self.assertGreater(finished.seconds, 0)

    async def test_ended_while_starting(self) -> None:
        """A command that has ended before it is known to run is told as any other."""
        running = EndedWhileStarting.start(self.reactor, self.python(""))
        self.assertEqual((await running.finish(30)).exit_code, 0)

    async def test_fed_descriptor(self) -> None:
        """A passphrase comes on an inherited descriptor, which ends after it."""
        command = attrs.evolve(self.python("print(open(3, 'rb').read())"), feeds={3: b"pass phrase"})
        finished = await self.run_command(command)
        self.assertEqual(finished.stdout, "b'pass phrase'\n")

    async def test_terminal_dialogue(self) -> None:
        """Questions on a terminal are awaited and answered; a passphrase is not shown."""
        running = self.start(attrs.evolve(self.python(ASK), terminal=True))
        await running.expect("hello.*\n")
        await running.expect("Passphrase: ")
        running.send("open sesame")
        await running.expect(r"Sure\? ")
        self.assertNotIn("open sesame", running.output)
        running.send("yes")
        finished = await running.finish(30)
        self.assertIn("got open sesame yes", finished.stdout)

    async def test_expect_fails_when_over(self) -> None:
        """Waiting for words that cannot come any more fails at once and shows what was said."""
        running = self.start(self.python("print('other')"))
        late = await self.assertFailure(Deferred.fromCoroutine(running.expect("wanted", 30)), DeadlinePassedError)
        self.assertIn("other", str(late))

    async def test_time_limit_kills_the_family(self) -> None:
        """A command that takes too long is killed together with its children."""
        running = self.start(self.python(FAMILY))
        child = int((await running.expect(r"(\d+)\n")).group(1))
        await self.assertFailure(Deferred.fromCoroutine(running.finish(0.1)), DeadlinePassedError)
        await until(self.reactor, lambda: _is_gone(child), 30, "the child's end")

    async def test_signal(self) -> None:
        """A signal ends the process, and its number comes back."""
        running = self.start(self.python("import time; print('up', flush=True); time.sleep(60)"))
        await running.expect("up")
        finished = await running.signal(signal.SIGTERM)
        self.assertEqual((finished.exit_code, finished.signal), (None, signal.SIGTERM))

    async def test_terminal_and_feeds_exclude_each_other(self) -> None:
        """What the reactor cannot give is refused when it is asked for."""
        self.assertRaises(ValueError, attrs.evolve, self.python(""), terminal=True, feeds={3: b""})

    async def test_installed_script_runs(self) -> None:
        """A console script beside the interpreter is found and runs; a missing one is named."""
        finished = await self.run_command(self.home.script("twistd", "--version"))
        self.assertIn("Twisted", finished.stdout)
        self.assertIn("no-such-script", str(self.assertRaises(AssertionError, installed, "no-such-script")))

    def test_missing_agent_is_a_failure(self) -> None:
        """Where the agent is not installed a test fails and is told what to run; nothing is skipped."""
        self.patch(os, "environ", {opencode.BINARY_VARIABLE: str(self.home.root / "nowhere")})
        missing = str(self.assertRaises(AssertionError, opencode.program))
        self.assertIn("-m tests.functional.install", missing)

    async def test_passphrase_command(self) -> None:
        """A command that needs the passphrase is told the descriptor and gets it there, never as an argument."""
        command = self.home.with_passphrase("canary-word", "aileron", "status")
        self.assertEqual(command.arguments[-3:], ("status", "--passphrase-fd", "3"))
        self.assertEqual(command.feeds, {3: b"canary-word"})
        self.assertNotIn("canary-word", " ".join(command.arguments))

    async def test_canary_in_a_process(self) -> None:
        """A word in the environment or the arguments of a process is found there."""
        running = self.start(self.python("import time; print('up', flush=True); time.sleep(60)", MARK="canary-environ"))
        await running.expect("up")
        self.assertEqual(
            [each.place for each in canary.in_process(running.pid, "canary-environ")], [_proc(running.pid, "environ")]
        )
        self.assertEqual(
            [each.place for each in canary.in_process(running.pid, "time.sleep(60)")], [_proc(running.pid, "cmdline")]
        )

    def test_canary_in_files(self) -> None:
        """A word is found in every form, in any file below a directory, and in a file's name."""
        word = "canary/?>~5e1f+??>>~~/"
        for name, shape in canary.forms(word).items():
            (self.home.project / name).write_bytes(b"before" + shape + b"after")
        found = {finding.form for finding in canary.in_files(self.home.project, word)}
        self.assertEqual(
            found, {"plain", "hex", "percent", *(f"base64{kind}+{n}" for kind in ("", "url") for n in range(3))}
        )
        self.assertEqual(canary.in_files(self.home.user, word), [])
        (self.home.user / "canary-filename").touch()
        self.assertEqual(len(canary.in_files(self.home.user, "canary-filename")), 1)

    def test_short_canary(self) -> None:
        """A word so short that it may turn up by chance is refused."""
        self.assertRaises(ValueError, canary.forms, "canary")

    def test_canary_in_base64_of_any_neighbourhood(self) -> None:
        """A word is found in base64 wherever it stands in the text."""
        for offset in range(6):
            content = base64.b64encode(b"x" * offset + b"canary-5e1f0a7b" + b"more text")
            self.assertTrue(list(canary.in_bytes("here", content, "canary-5e1f0a7b")), offset)


def _is_gone(pid: int) -> bool:
    """Whether a process has ended, be it unreaped."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the latter if it is reaped while this reads
        return True


def _proc(pid: int, name: str) -> str:
    return f"/proc/{pid}/{name}"
