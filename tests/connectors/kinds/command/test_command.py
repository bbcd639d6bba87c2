"""Of the connector to a local program: the contract, what is shown of a run, and what real programs make of it."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ProcessDone
from twisted.internet.task import Clock, deferLater
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from aileron.base.json import JSON, canonical
from aileron.connectors import CommandConnector, CommandSpec, Confinement, Enclosure, Screened, system_transport
from aileron.connectors._schema import read_file
from aileron.connectors.programs.process import CommandProcess, Launch
from aileron.daemon._connectors import ConnectorMaker
from aileron.model.connectors import READ, Outcome
from aileron.model.errors import BindingRequired, CapabilityDenied, InvalidRequest
from aileron.model.interfaces.vault import ICredential
from aileron.testing import ConnectorContract, MemoryCredential
from tests.connectors.sandboxed import require_sandbox

FILE = """
[connector]
name = "local://me/deploy"
version = "1.0.0"
kind = "command"

[command]
directory = "{directory}"
environment = {{ LANG = "C.UTF-8" }}
inherit = ["PATH"]

[credential]
kind = "api_key"
variable = "DEPLOY_TOKEN"

[operations.deploy]
description = "Deploys."
program = "{python}"
arguments = ["-c", "{code}", "${{in.target}}", "${{effect.key}}"]
stdin = "${{in.text}}"
answer = "json"
failure = [3]
max_output_bytes = 1000
timeout_seconds = 600

[operations.status]
program = "{python}"
arguments = ["-c", "{code}", "${{in.target}}"]
stdin = "${{in.text}}"
effect = "read"
answer = "json"
"""
INPUTS: Mapping[str, JSON] = {"target": "production", "text": "Grüße"}


def spec_of(directory: str = "/srv", code: str = "pass", **changed: str) -> CommandSpec:
    """The file, with parts of its text replaced."""
    text = FILE.format(directory=directory, python=sys.executable, code=code)
    for old, new in changed.items():
        assert old.replace("__", " ") in text, old
        text = text.replace(old.replace("__", " "), new)
    reading = read_file(text.encode(), "deploy.toml")
    assert isinstance(reading.spec, CommandSpec), reading.problems
    return reading.spec


def built(*argv: str, opened: tuple[str, ...] = ()) -> Callable[[], Coroutine[Any, Any, Confinement]]:
    """What a sandbox is built from that stands before a program."""

    async def confine() -> Confinement:
        return Confinement(argv, opened)

    return confine


class _Transport:
    """A process that does as the test says."""

    pid: int | None = None

    def __init__(self) -> None:
        self.stdin, self.signals = b"", list[str]()

    def writeToChild(self, childFD: int, data: bytes) -> None:
        """Keep what it reads."""
        self.stdin += data

    def closeChildFD(self, childFD: int) -> None:
        """There is nothing to close."""

    def signalProcess(self, name: str) -> None:
        """Keep the signal."""
        self.signals.append(name)

    def loseConnection(self) -> None:
        """There is nothing to close."""


class Processes(Clock):
    """A clock that starts programs of which nothing runs.

    :ivar script: what each writes before it ends well; L{None}: it does not end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.script: list[bytes | None] = []
        self.started: list[tuple[Any, tuple[str, ...], Mapping[str, str]]] = []

    def spawnProcess(
        self, protocol: Any, executable: str, args: tuple[str, ...], env: Mapping[str, str], path: None, childFDs: Any
    ) -> None:
        """Start one."""
        self.started.append((protocol, args, env))
        protocol.makeConnection(_Transport())
        written = self.script.pop(0)
        if written is not None:
            protocol.childDataReceived(1, written)
            protocol.processExited(Failure(ProcessDone(0)))
            protocol.processEnded(Failure(ProcessDone(0)))


@define
class Rig:
    """A program in the contract's hand."""

    processes: Processes = field(factory=Processes)
    connector: CommandConnector = field()
    base_url: str = "file:///srv"
    reads: str = "status"
    writes: str = "deploy"
    inputs: Mapping[str, JSON] = field(factory=lambda: INPUTS)

    @connector.default
    def _(self) -> CommandConnector:
        return CommandConnector(spec_of(), self.processes, {"PATH": "/bin", "SECRET": "x"})

    def queue_answer(self, output: JSON) -> JSON:
        """It writes it."""
        self.processes.script.append(canonical(output))
        return output

    def queue_silence(self) -> None:
        """It does not end."""
        self.processes.script.append(None)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.processes.advance(seconds)

    def sent(self) -> int:
        """How many were started."""
        return len(self.processes.started)


_CONNECTOR = Rig().connector
"""One for all examples of a test: what it costs is the reading of its file."""


class CommandContractTests(ConnectorContract, SynchronousTestCase):
    """It keeps the contract of every connector."""

    rig = Rig

    def test_credential_is_opened_once_for_each_sending(self) -> None:
        """Preparing opens nothing; a run opens the credential once."""
        rig = self.rig()
        rig.queue_answer({"ts": "1"})
        credential = MemoryCredential(b"s3cret-value")
        self.started(rig, rig.writes, credential)
        self.assertEqual(1, credential.opened)
        ((_, argv, environment),) = rig.processes.started
        self.assertEqual(environment["DEPLOY_TOKEN"], "s3cret-value")
        self.assertNotIn("s3cret-value", " ".join(argv))


class ShownTests(SynchronousTestCase):
    """What is approved."""

    def prepare(self, connector: CommandConnector, **inputs: JSON) -> dict[str, Any]:
        """The body of a request."""
        request = connector.prepare("deploy", {**INPUTS, **inputs}, "file:///srv", "k1")
        body: dict[str, Any] = json.loads(request.body or b"")
        return body

    def test_all_of_it(self) -> None:
        """It shows the exact arguments, directory, variables, sandbox, input, and where the credential goes."""
        connector = Rig().connector
        self.assertEqual(
            self.prepare(connector),
            {
                "argv": [sys.executable, "-c", "pass", "production", "k1"],
                "directory": "/srv",
                "environment": {"LANG": "C.UTF-8", "AILERON_EFFECT_KEY": "k1"},
                "inherited": ["PATH"],
                "sandbox": "none: it can do whatever you can",
                "credential": "in the environment variable DEPLOY_TOKEN",
                "stdin": "Grüße",
            },
        )
        request = connector.prepare("deploy", INPUTS, "file:///srv", "k1")
        self.assertEqual((request.method, request.url), ("RUN", f"file://{sys.executable}"))

    def test_sandbox(self) -> None:
        """It says which sandbox; where the file requires one that this machine cannot make, nothing is prepared."""
        rig = Rig()
        enclosed = evolve(rig.connector, enclose=lambda *_: Enclosure("/srv", built("bwrap"), b""))
        self.assertIn("has no network", self.prepare(enclosed)["sandbox"])
        spec = spec_of(inherit__='sandbox = "required"\nnetwork = true\ninherit ')
        self.assertIn("has the network", self.prepare(evolve(enclosed, spec=spec))["sandbox"])
        self.assertRaises(CapabilityDenied, self.prepare, evolve(rig.connector, spec=spec))
        spec = spec_of(inherit__='sandbox = "none"\ninherit ')
        self.assertIn("none", self.prepare(evolve(enclosed, spec=spec))["sandbox"])

    def test_unseen(self) -> None:
        """Without a sandbox nothing runs without an approval, which says so, unless the file wants none."""
        connector = Rig().connector
        enclosed = evolve(connector, enclose=lambda *_: Enclosure("/srv", built("bwrap"), b""))
        unconfined = evolve(connector, spec=spec_of(inherit__='sandbox = "none"\ninherit '))
        for each, needs in ((connector, True), (enclosed, False), (unconfined, False)):
            operations = each.describe().operations.values()
            self.assertEqual([bool(operation.needs_approval) for operation in operations], [needs, needs])

    def test_another_sandbox(self) -> None:
        """What was approved for one sandbox does not run in another, nor what another connector prepared."""
        rig = Rig()
        request = rig.connector.prepare("deploy", INPUTS, "file:///srv", "k1")
        enclosed = evolve(rig.connector, enclose=lambda *_: Enclosure("/srv", built("bwrap"), b""))
        for connector, asked in (
            (enclosed, request),
            (rig.connector, evolve(request, connector="local://me/other")),
            (rig.connector, evolve(request, body=(request.body or b"").replace(b'"/srv"', b'"/"'))),
            (rig.connector, evolve(request, body=(request.body or b"").replace(sys.executable.encode(), b"/bin/sh"))),
        ):
            invoking = Deferred.fromCoroutine(connector.invoke(asked, MemoryCredential(b"x"), 5))
            self.failureResultOf(invoking, CapabilityDenied)
        self.assertEqual(rig.sent(), 0)

    def test_inputs(self) -> None:
        """An input is one argument, and never an option, a number of arguments, or more than the file names."""
        connector = Rig().connector
        self.assertEqual(self.prepare(connector, target="a b; $(c) `d` *\n'\"")["argv"][3], "a b; $(c) `d` *\n'\"")
        self.assertEqual(self.prepare(connector, target=7)["argv"][3], "7")
        for target in ("-rf", "--force", "-", -7, "a\0b", "x" * 70_000, ["a", "b"], {"a": 1}, None):
            with self.assertRaises(InvalidRequest, msg=str(target)):
                self.prepare(connector, target=target)
        self.assertRaises(InvalidRequest, self.prepare, connector, more="x")
        self.assertRaises(InvalidRequest, connector.prepare, "deploy", {"text": "x"}, "file:///srv", "k1")
        declared = spec_of(answer='dashes = ["target"]\nanswer')
        self.assertEqual(self.prepare(evolve(connector, spec=declared), target="-7")["argv"][3], "-7")

    @given(st.text(max_size=20))
    def test_any_text(self, text: str) -> None:
        """Any text is exactly one argument, as it is, or refused."""
        try:
            shown = self.prepare(_CONNECTOR, target=text)
        except InvalidRequest:
            return
        self.assertEqual(shown["argv"][3:], [text, "k1"])

    def test_needs_credential(self) -> None:
        """Without its credential nothing runs."""
        rig = Rig()
        request = rig.connector.prepare("deploy", INPUTS, "file:///srv", "k1")
        self.failureResultOf(Deferred.fromCoroutine(rig.connector.invoke(request, None, 5)), BindingRequired)
        self.assertEqual(rig.sent(), 0)


class GroupTests(SynchronousTestCase):
    """The process group of a program."""

    def test_killed_once(self) -> None:
        """It is killed when the program has ended, and not again: its number may be another's by then."""
        killed: list[int] = []
        self.patch(os, "killpg", lambda group, number: killed.append(group))
        running: Any = CommandProcess(Clock(), Launch(["x"], "/", {}), 1000)
        transport = _Transport()
        transport.pid = 4711
        running.makeConnection(transport)
        running.kill()
        running.processExited(Failure(ProcessDone(0)))
        self.assertEqual(killed, [4711, 4711])
        running.kill()
        self.assertEqual(killed, [4711, 4711])


class FileTests(SynchronousTestCase):
    """The file of such a connector."""

    def test_faults(self) -> None:
        """What it says wrongly is a fault, with its line."""
        text = FILE.format(directory="/srv", python="/bin/x", code="pass")
        for old, new, problem in (
            ('"/srv"', '"srv"', "`directory` must be an absolute path"),
            ('"/srv"', '"/srv/../etc"', "`directory` must be an absolute path"),
            ('program = "/bin/x"', 'program = "x"', "`program` must be an absolute path"),
            ('"${in.target}"', '"--to=${in.target}"', "must be literal or exactly one reference"),
            ('"${in.target}"', '"${env.HOME}"', "unknown reference"),
            ('variable = "DEPLOY_TOKEN"', "", "`variable` must be there"),
            ('variable = "DEPLOY_TOKEN"', 'variable = "A B"', "must be the name of a variable"),
            ('variable = "DEPLOY_TOKEN"', "stdin = true", "`stdin` is where the credential goes"),
            ('kind = "api_key"', 'kind = "basic"', "must be one of: api_key"),
            ('["PATH"]', '["AILERON_KEY"]', "none of Aileron's"),
            ('LANG = "C.UTF-8"', 'LANG = "a\\u0000b"', "must not hold a null character"),
            ('"${effect.key}"]', '"a\\u0000b"]', "must be literal or exactly one reference"),
            ("failure = [3]", "failure = [0]", "says success as well"),
            ("failure = [3]", "failure = [300]", "integers from 0 to 255"),
            ("failure = [3]", "shell = true", "is not a known key"),
            ("failure = [3]", 'dashes = ["x"]', "is no input of the operation"),
            ('kind = "command"', 'kind = "command"\nhosts = ["a:1"]', "is not a known key"),
        ):
            self.assertIn(old, text)
            problems = read_file(text.replace(old, new).encode(), "deploy.toml").problems
            self.assertIn(problem, " ".join(each.message for each in problems))
            self.assertTrue(all(each.line for each in problems), problems)


def _running_reactor() -> Any:
    """Trial's."""
    from twisted.internet import reactor

    return reactor


REPORT = (
    "import json, os, sys; print(json.dumps({'argv': sys.argv[1:], 'stdin': sys.stdin.read(), 'cwd': os.getcwd(), "
    "'env': sorted(os.environ), 'fds': sorted(map(int, os.listdir('/proc/self/fd')))[:-1]}))"
)


BEATS = "import time\nwhile True: open('beats', 'a').write('x'); time.sleep(0.05)"


class PublicTests(SynchronousTestCase):
    """Secrets in a file, which approvals would show."""

    def test_secrets(self) -> None:
        """What looks like one is a fault that does not repeat it, unless the file says that it is none."""
        key = "AbCdEf0123456789AbCdEf0123456789"
        plain = FILE.format(directory="/srv", python="/usr/bin/python3", code="pass")
        for old, new, named in (
            ('LANG = "C.UTF-8"', f'LANG = "{key}"', "LANG"),
            ('LANG = "C.UTF-8"', 'API_KEY = "hunter2"', "API_KEY"),
            ('"-c", "pass"', f'"-c", "{key}"', key),
            ('"-c", "pass"', '"--token=hunter2"', "--token=hunter2"),
            ('"-c", "pass"', '"--token", "hunter2"', "hunter2"),
        ):
            text = plain.replace(old, new, 1)
            (fault,) = read_file(text.encode(), "x.toml").problems
            self.assertIn("looks like a secret", fault.message)
            self.assertNotIn(named if named == key else "hunter2", fault.message)
            public = text.replace("[command]", f'[command]\npublic = ["{named}"]')
            self.assertEqual(read_file(public.encode(), "x.toml").problems, ())


class RealProcesses(Clock):
    """The real reactor's processes, and a time that passes only when a test says so."""

    def spawnProcess(self, *arguments: Any, **options: Any) -> Any:
        """Start one."""
        return _running_reactor().spawnProcess(*arguments, **options)


class ProgramTests(TestCase):
    """Real programs."""

    def setUp(self) -> None:
        # Outside of every repository: in a sandbox the whole of one is the program's.
        root = tempfile.TemporaryDirectory()
        self.addCleanup(root.cleanup)
        self.directory = Path(root.name).resolve() / "temp"
        self.directory.mkdir()

    def connector(self, code: str, **changed: str) -> CommandConnector:
        """One whose program is this code of Python's."""
        spec = spec_of(
            str(self.directory), code.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"), **changed
        )
        return CommandConnector(spec, _running_reactor(), os.environ | {"TOKEN_OF_OURS": "x"})

    def run_it(
        self, connector: CommandConnector, operation: str = "deploy", seconds: float = 20, late: float = 0
    ) -> Deferred[Outcome]:
        """Run it, with a credential."""
        request = connector.prepare(operation, INPUTS, connector.spec.description.base_url or "", "effect-1")
        credential: ICredential = MemoryCredential(b"s3cret-value")
        if request.effect == READ:
            return Deferred.fromCoroutine(connector.read(request, credential, seconds))
        return Deferred.fromCoroutine(Screened(connector).invoke(request, credential, seconds, late))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that another process does."""
        for _ in range(200):
            if holds():
                return
            await deferLater(_running_reactor(), 0.05)
        self.fail("it did not come")

    async def still(self) -> None:
        """Wait until nothing beats any more."""
        sizes = [0, 1]
        while sizes[-1] != sizes[-2]:
            await deferLater(_running_reactor(), 0.4)
            sizes.append((self.directory / "beats").stat().st_size)
            self.assertLess(len(sizes), 15)
        self.assertGreater(sizes[-1], 0)

    async def test_surroundings(self) -> None:
        """It gets its arguments, its input, the variables that the file names, and nothing else of the daemon's."""
        with open(self.directory / "open", "wb") as ours:
            os.set_inheritable(ours.fileno(), True)
            outcome = await self.run_it(self.connector(REPORT))
        found: Any = outcome.output
        self.assertEqual((found["argv"], found["stdin"]), (["production", "effect-1"], "Grüße"))
        self.assertEqual(found["cwd"], str(self.directory))
        self.assertEqual(set(found["env"]) - {"PWD"}, {"PATH", "LANG", "AILERON_EFFECT_KEY", "DEPLOY_TOKEN"})
        self.assertEqual(found["fds"], [0, 1, 2])

    async def test_exit_codes(self) -> None:
        """An exit code means what the file says; any other, and a signal, leave it unknown."""
        for code, classified in (("sys.exit(3)", True), ("sys.exit(1)", False), ("os.kill(os.getpid(), 9)", False)):
            outcome = await self.run_it(self.connector(f"import os, sys; {code}"))
            assert outcome.fault is not None
            self.assertEqual((outcome.sent, outcome.classified), (True, classified), code)
        outcome = await self.run_it(self.connector("print('no JSON')"))
        self.assertEqual((outcome.fault is None, outcome.classified), (False, False))

    async def test_not_started(self) -> None:
        """What could not be started did nothing."""
        connector = self.connector("pass")
        self.directory.rmdir()
        outcome = await self.run_it(connector)
        assert outcome.fault is not None
        self.assertFalse(outcome.sent)
        self.assertIn("No such file or directory", outcome.fault.message)

    async def test_link(self) -> None:
        """A directory that is reached through a link is none to run in, nor one that has become a link since."""
        connector = self.connector("open('made', 'w')")
        moved = self.directory.rename(self.directory.parent / "moved")
        self.directory.symlink_to(moved)
        self.assertRaises(CapabilityDenied, connector.prepare, "deploy", INPUTS, f"file://{self.directory}", "k1")
        self.directory.unlink()
        request = connector.prepare("deploy", INPUTS, f"file://{self.directory}", "k1")
        self.directory.symlink_to(moved)
        with self.assertRaises(CapabilityDenied):
            await connector.invoke(request, MemoryCredential(b"s3cret-value"), 20)
        self.assertEqual(list(moved.iterdir()), [])

    async def test_link_at_the_last_moment(self) -> None:
        """A directory that becomes a link while the program is being started is none to run in either."""
        (self.directory.parent / "link").symlink_to(self.directory)
        launch = Launch([sys.executable, "-c", "open('made', 'w')"], str(self.directory.parent / "link"), {"A": "b"})
        running = CommandProcess(_running_reactor(), launch, 1000)
        running.start(_running_reactor())
        self.assertIn("through a link", (await running.ended).problem)
        self.assertEqual(list(self.directory.iterdir()), [])

    async def test_killed(self) -> None:
        """What takes too long is killed, with what it has started, and nobody knows what it did."""
        clock, child, beats = RealProcesses(), BEATS, self.directory / "beats"
        connector = self.connector(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
        running = self.run_it(evolve(connector, reactor=clock), seconds=1.0)
        await self.until(lambda: beats.exists() and beats.stat().st_size > 0)
        clock.advance(1.0)
        outcome = await running
        assert outcome.fault is not None
        self.assertEqual(outcome.fault.kind, "resource_limit_exceeded")
        self.assertEqual((outcome.sent, outcome.classified), (True, False))
        await self.still()

    async def test_cancelled(self) -> None:
        """Nobody waits any more: it is killed."""
        running, beats = self.run_it(self.connector(BEATS)), self.directory / "beats"
        await self.until(lambda: beats.exists() and beats.stat().st_size > 0)
        running.cancel()
        with self.assertRaises(CancelledError):
            await running
        await self.still()

    async def test_leaves_something_behind(self) -> None:
        """What it started and left behind ends with it, and does not keep the run waiting."""
        child = BEATS
        code = (
            f"import os, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}])\n"
            "while not os.path.exists('beats'): time.sleep(0.02)\nprint(1)"
        )
        outcome = await self.run_it(self.connector(code))
        self.assertEqual(outcome.output, 1)
        await self.still()

    async def test_output(self) -> None:
        """It may write as much as it likes: what is beyond the limit is dropped, and that is told."""
        connector = self.connector("print('x' * 10_000_000)", json="text", failure="success = [0]\n# failure")
        outcome = await self.run_it(connector)
        assert isinstance(outcome.output, Mapping)
        self.assertEqual((len(str(outcome.output["stdout"])), outcome.output["cut"]), (1000, True))

    async def test_echo(self) -> None:
        """The credential that it prints is not seen, in its output or its errors."""
        code = "import os, sys; print(os.environ['DEPLOY_TOKEN'], file=sys.stderr); sys.exit(3)"
        outcome = await self.run_it(self.connector(code))
        assert outcome.fault is not None
        self.assertNotIn("s3cret", f"{outcome.fault.message} {outcome.fault.details}")
        self.assertIn("[redacted]", outcome.fault.message)

    async def test_credential_on_stdin(self) -> None:
        """A credential goes in on standard input, if the file says so."""
        changed = {'variable__=__"DEPLOY_TOKEN"': "stdin = true", 'stdin__=__"${in.text}"\n': ""}
        connector = self.connector("import sys; print(len(sys.stdin.read()))", **changed)
        request = connector.prepare("deploy", {"target": "x"}, connector.spec.description.base_url or "", "k1")
        self.assertIn(b"on standard input", request.body or b"")
        outcome = await connector.invoke(request, MemoryCredential(b"s3cret-value"), 20)
        self.assertEqual(outcome.output, len("s3cret-value\n"))


class SandboxedTests(ProgramTests):
    """Real programs in the sandbox, where this machine can make one: all of the above, and what it keeps away."""

    def setUp(self) -> None:
        super().setUp()
        self.secret = self.directory.parent / "state" / "secret"
        self.secret.parent.mkdir()
        self.secret.write_text("s")
        self.maker = ConnectorMaker(
            _running_reactor(), system_transport(_running_reactor(), lambda: ()), str(self.secret.parent)
        )
        require_sandbox(self.maker.sandbox)

    def connector(self, code: str, **changed: str) -> CommandConnector:
        """One in the sandbox."""
        return evolve(super().connector(code, **changed), enclose=self.maker.enclose)

    async def test_kept_away(self) -> None:
        """It sees nothing of Aileron's, writes nowhere else, and has neither local sockets nor, unasked, a network."""
        code = (
            "import json, os, socket, sys\n"
            "def tried(work):\n"
            "    try: work(); return True\n"
            "    except OSError: return False\n"
            f"tried(lambda: open({str(self.directory.parent / 'other')!r}, 'w'))\n"
            f"print(json.dumps([tried(lambda: open({str(self.secret)!r})), tried(lambda: open('own', 'w')), "
            "tried(lambda: socket.socket(socket.AF_UNIX)), len(socket.if_nameindex())]))"
        )
        self.assertEqual((await self.run_it(self.connector(code))).output, [False, True, False, 1])
        networked = await self.run_it(self.connector(code, inherit__="network = true\ninherit "))
        self.assertEqual(networked.output, [False, True, False, len(socket.if_nameindex())])
        self.assertEqual(sorted(each.name for each in self.directory.parent.iterdir()), ["state", self.directory.name])

    async def test_wider(self) -> None:
        """The approval names the directory that it can write; where that is a wider one since, nothing is run."""
        connector = self.connector("open('made', 'w')", inherit__="repository = true\ninherit ")
        request = connector.prepare("deploy", INPUTS, f"file://{self.directory}", "k1")
        self.assertIn(f"writes only to {self.directory}, ".encode(), request.body or b"")
        (self.directory.parent / ".git").mkdir()
        with self.assertRaises(CapabilityDenied):
            await connector.invoke(request, MemoryCredential(b"s3cret-value"), 20)
        self.assertEqual(list(self.directory.iterdir()), [])

    async def test_link_at_the_last_moment(self) -> None:
        """A link that takes the directory's place while bubblewrap starts is not followed; no descriptor is left."""
        enclosure = self.maker.enclose(str(self.directory), False, False)
        away, other = self.directory.with_name("away"), self.directory.with_name("other")
        other.mkdir()
        swap = f'mv {self.directory} {away} && ln -s {other} {self.directory} && exec "$@"'
        ready = await enclosure.confine()
        raced = evolve(enclosure, confine=built("/bin/sh", "-c", swap, "sh", *ready.argv, opened=ready.opened))
        code = "import json, os; open('made', 'w'); print(json.dumps(len(os.listdir('/proc/self/fd'))))"
        outcome = await self.run_it(evolve(self.connector(code), enclose=lambda *_: raced))
        self.assertEqual(outcome.output, 4, outcome)  # its own three, and that of the list
        self.assertEqual((list(other.iterdir()), [each.name for each in away.iterdir()]), ([], ["made"]))

    async def test_no_sandbox(self) -> None:
        """A sandbox that could not be made is not taken for the program, whatever its exit codes mean."""
        enclosure = self.maker.enclose(str(self.directory), False, False)
        ready = await enclosure.confine()
        argv = (ready.argv[0], "--bind", "/nowhere", "/", *ready.argv[1:])
        broken = evolve(enclosure, confine=built(*argv, opened=ready.opened))
        connector = super().connector("pass", failure="success = [0, 1]\n# failure")
        outcome = await self.run_it(evolve(connector, enclose=lambda *_: broken))
        assert outcome.fault is not None
        self.assertIn("The sandbox failed: bwrap: ", outcome.fault.message)
        self.assertFalse(outcome.classified)

    async def test_not_started(self) -> None:
        """A directory that is gone is none to run in."""
        connector = self.connector("pass")
        self.directory.rmdir()
        with self.assertRaises(CapabilityDenied) as raised:
            await self.run_it(connector)
        self.assertIn("no such directory", raised.exception.message)
