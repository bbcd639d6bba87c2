"""One launch, without a process, and the lease by which it stands behind its session."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import to_json
from aileron.client import Daemon, DaemonClient, DaemonFault, Lease
from aileron.client._sites import LEASE_PAUSE_SECONDS
from aileron.features.launch._bell import LOOK_SECONDS, Bell
from aileron.features.launch._launch import Enclose, Enclosed, Launcher
from aileron.features.launch._process import Deliver
from aileron.features.launch.agents import find_agents
from aileron.features.launch.plan import NOTES_TOOLS, DaemonFacts, LaunchPlan
from aileron.features.launch.registration import Invocation, Upstream
from aileron.model.errors import Forbidden, InvalidRequest, NotFound, Unauthorized
from aileron.model.faults import Fault
from tests.machine import Machine
from tests.scripted_site import ScriptedSite

OPENED = {"id": "S", "token": "ail_a_secret", "gateway_key": "ail_g_secret"}


def _leave(plan: LaunchPlan, _url: str) -> AbstractContextManager[LaunchPlan]:
    """Leave a plan as it is."""
    return nullcontext(plan)


class ByHand:
    """Signals by hand."""

    def __init__(self) -> None:
        self.deliver: Deliver | None = None

    @contextmanager
    def catch(self, _reactor: object, numbers: Sequence[int], deliver: Deliver) -> Iterator[None]:
        """Deliver what L{send} sends."""
        self.deliver = deliver
        yield
        self.deliver = None

    def send(self, number: int) -> None:
        """Send it to the launcher."""
        cast("Deliver", self.deliver)(number)


class LaunchCase(SynchronousTestCase):
    """A launcher, a daemon in memory, and programs that exist."""

    def setUp(self) -> None:
        self.site = ScriptedSite()
        self.machine = Machine()
        self.signals = ByHand()
        self.said: list[str] = []
        self.bin = Path(self.mktemp()).absolute()
        self.bin.mkdir()
        for name in ("opencode", "aileron-mcp"):
            (self.bin / name).write_text("#!/bin/sh\n")
            (self.bin / name).chmod(0o755)
        self.home = Path(self.mktemp()).absolute()
        self.upstreams: dict[str, Upstream] | None = {}
        self.ensured = 0
        self.url = "http://127.0.0.1:9"
        self.wakes = self.resumes = False
        self.bell: Bell | None = None
        self.lease: Lease | None = None

    async def ensure(self) -> DaemonFacts:
        """The daemon is there."""
        self.ensured += 1
        return DaemonFacts(
            self.url, "http://localhost:10", "ail_l_key", self.upstreams, wakes=self.wakes, resumes=self.resumes
        )

    def launcher(self) -> Launcher:
        """Make the launcher."""
        return Launcher(
            reactor=self.machine,
            catch=self.signals.catch,
            ensure_daemon=self.ensure,
            connect=lambda url, token: Daemon(DaemonClient(self.site.agent, url, token, self.machine)),
            say=self.said.append,
            interpreter=str(self.bin / "python"),
            bell=self.bell,
            lease=self.lease,
        )

    def launch(
        self,
        *arguments: str,
        through_gateway: bool = True,
        enclose: Enclose | None = None,
        wake: bool | None = None,
        **environment: str,
    ) -> Deferred[int]:
        """Launch the agent."""
        launcher = self.launcher()
        parent = {"PATH": str(self.bin), "HOME": str(self.home), **environment}
        invocation = Invocation(arguments or ("run", "hi"), parent, "/project")
        coroutine = launcher.launch(
            find_agents()["opencode"], invocation, through_gateway=through_gateway, enclose=enclose, wake=wake
        )
        launching = Deferred.fromCoroutine(coroutine)
        self.addCleanup(self.abandon, launching)
        self.machine.advance(0)
        return launching

    def abandon(self, launching: Deferred[int]) -> None:
        """Give up both the run and the session's end."""
        launching.addErrback(lambda _: None)
        launching.cancel()
        launching.cancel()

    def running(
        self, *, through_gateway: bool = True, enclose: Enclose | None = None, **environment: str
    ) -> Deferred[int]:
        """Launch it, as far as the process."""
        launching = self.launch(through_gateway=through_gateway, enclose=enclose, wake=None, **environment)
        self.site.answer(201, OPENED)
        self.assertNoResult(launching)
        return launching

    def assert_ended(self, exit_code: int | None) -> None:
        """The session was ended, with the agent's token and this code."""
        asked = self.site.asked[-1]
        self.assertEqual((asked.method, asked.path), ("POST", "/v1/sessions/S/end"))
        self.assertEqual(asked.headers["authorization"], "Bearer ail_a_secret")
        self.assertEqual(asked.body, {"exit_code": exit_code})


class RunTests(LaunchCase):
    """A launch that works."""

    def test_session_first(self) -> None:
        """The session is opened with the launch key, for this agent and directory, before anything runs."""
        self.launch()
        asked = self.site.asked[0]
        self.assertEqual((asked.path, asked.body), ("/v1/sessions", {"agent": "opencode", "working_dir": "/project"}))
        self.assertEqual(asked.headers["authorization"], "Bearer ail_l_key")
        self.assertEqual(self.machine.spawned, [])

    def test_process(self) -> None:
        """The agent runs on our own descriptors, the token in its environment alone; a line names session and page."""
        self.running()
        [(executable, args, environment, descriptors)] = self.machine.spawned
        self.assertEqual(executable, str(self.bin / "opencode"))
        self.assertEqual(tuple(args), (executable, "run", "hi"))
        self.assertIn(b"ail_a_secret", environment[b"OPENCODE_CONFIG_CONTENT"])
        self.assertEqual(descriptors, {0: 0, 1: 1, 2: 2})
        [line] = self.said
        self.assertIn("session S", line)
        self.assertIn("http://localhost:10", line)
        self.assertNotIn("ail_", line)

    def test_other_address(self) -> None:
        """Where the daemon listens at another address than loopback, the tools are told that it is of this machine."""
        self.url = "http://192.0.2.1:9"
        self.running()
        [(_, _, environment, _)] = self.machine.spawned
        tools = json.loads(environment[b"OPENCODE_CONFIG_CONTENT"])["mcp"]["aileron"]["environment"]
        self.assertEqual((tools["AILERON_URL"], tools["AILERON_PLAIN_HOST"]), (self.url, "192.0.2.1"))

    def test_bell(self) -> None:
        """While the agent runs its own calls are looked after, with its token, and what waits is said; then no more.

        The address is that of the daemon as it runs then: since the start it may have been restarted.
        """
        self.bell = Bell(self.said.append, self.said.append, True, find_pages=lambda: "http://now.localhost:11")
        launching = self.running()
        self.machine.advance(LOOK_SECONDS)
        asked = self.site.asked[-1]
        self.assertEqual((asked.path, asked.headers["authorization"]), ("/v1/status", "Bearer ail_a_secret"))
        self.site.answer(200, {"counts": {"pending_approvals": 2}})
        self.assertEqual(self.said[-2:], ["\a", "aileron: 2 pending approvals: http://now.localhost:11/approvals"])
        self.machine.exit(0)
        self.site.answer(200, {})
        self.assertEqual(self.successResultOf(launching), 0)
        self.machine.advance(100)
        self.assert_ended(0)

    def test_exit_codes(self) -> None:
        """The agent's exit code is passed on once the session is ended; a signal counts as 128 and its number."""
        for code, signal, expected in [(0, None, 0), (7, None, 7), (None, 9, 137)]:
            launching = self.running()
            self.machine.exit(code, signal)
            self.assertNoResult(launching)
            self.assert_ended(expected)
            self.site.answer(200, {})
            self.assertEqual(self.successResultOf(launching), expected)


class GatewayTests(LaunchCase):
    """What becomes of the agent's LLM traffic."""

    def provider(self) -> Any:
        """What the agent is told of its providers."""
        [(_, args, environment, _)] = self.machine.spawned
        self.assertNotIn("ail_g_", " ".join(args))
        return json.loads(environment[b"OPENCODE_CONFIG_CONTENT"]).get("provider")

    def test_through_the_gateway(self) -> None:
        """A provider that the user has a key for goes to the daemon with the session's gateway key; it is said so."""
        self.running(OPENAI_API_KEY="k")
        options = {"baseURL": "http://127.0.0.1:9/v1", "headers": {"X-Aileron-Gateway-Key": "ail_g_secret"}}
        self.assertEqual(self.provider(), {"openai": {"options": options}})
        self.assertEqual(self.said[1:], ["aileron: through the gateway: openai"])

    def test_left_alone(self) -> None:
        """Where the user says so, or the daemon has no gateway, nothing of it is touched and nothing said."""
        self.running(through_gateway=False, OPENAI_API_KEY="k", OPENAI_BASE_URL="http://elsewhere")
        self.assertEqual((self.provider(), len(self.said)), (None, 1))
        self.setUp()
        self.upstreams = None
        self.running(OPENAI_API_KEY="k")
        self.assertEqual((self.provider(), len(self.said)), (None, 1))


class SignalTests(LaunchCase):
    """Signals while the agent runs."""

    def test_forwarded_once(self) -> None:
        """SIGTERM and SIGHUP reach the agent once each, and the launcher waits on; Ctrl-C has reached it already."""
        launching = self.running()
        for number in (2, 15, 15, 1, 1):
            self.signals.send(number)
        self.assertEqual(self.machine.signalled, [15, 1])
        self.assertNoResult(launching)

    def test_before_the_start(self) -> None:
        """A signal while the session opens: no agent is started, and the session is ended."""
        launching = self.launch()
        self.signals.send(15)
        self.site.answer(201, OPENED)
        self.assertEqual(self.machine.spawned, [])
        self.assert_ended(143)
        self.site.answer(200, {})
        self.assertEqual(self.successResultOf(launching), 143)

    def test_after_the_end(self) -> None:
        """A signal while the session ends harms nothing."""
        launching = self.running()
        self.machine.exit(0)
        self.signals.send(15)
        self.site.answer(200, {})
        self.assertEqual(self.successResultOf(launching), 0)


class EndTests(LaunchCase):
    """The session ends in every case."""

    def test_not_started(self) -> None:
        """An agent that cannot be started leaves no session behind."""
        self.machine.broken = OSError("no such file")
        launching = self.launch()
        self.site.answer(201, OPENED)
        self.assert_ended(None)
        self.site.answer(200, {})
        self.failureResultOf(launching, OSError)

    def test_daemon_restarts(self) -> None:
        """A daemon that is away for some seconds is waited for."""
        launching = self.running()
        self.machine.exit(3)
        self.site.hang_up()
        self.assertNoResult(launching)
        self.machine.advance(0.5)
        self.assert_ended(3)
        self.site.answer(200, {})
        self.assertEqual(self.successResultOf(launching), 3)

    def test_daemon_stays_away(self) -> None:
        """A daemon that does not come back is given up with a word, and the exit code stands."""
        launching = self.running()
        self.machine.exit(3)
        for _ in range(25):
            if self.site.waiting:
                self.site.hang_up()
            self.machine.advance(0.5)
        self.assertEqual(self.successResultOf(launching), 3)
        self.assertIn("could not be ended", self.said[-1])

    def test_refused(self) -> None:
        """A session that is ended already is no reason to fail."""
        launching = self.running()
        self.machine.exit(0)
        self.site.answer(401, {"error": to_json(Fault("unauthorized", "ended", "user"))})
        self.assertEqual(self.successResultOf(launching), 0)
        self.assertIn("ended", self.said[-1])


class RefusalTests(LaunchCase):
    """What is refused before anything is opened."""

    def test_refused(self) -> None:
        """The vault's passphrase in the environment, settings that cannot be added to, or a program that is missing."""
        refused = self.failureResultOf(self.launch(AILERON_VAULT_PASSPHRASE="hunter2"), Forbidden)
        self.assertNotIn("hunter2", str(refused.value))
        self.failureResultOf(self.launch(OPENCODE_CONFIG_CONTENT="{"), InvalidRequest)
        (self.bin / "opencode").unlink()
        self.failureResultOf(self.launch(), NotFound)
        self.assertEqual((self.ensured, self.site.asked, self.machine.spawned), (0, [], []))

    def test_no_session(self) -> None:
        """A daemon that opens no session: nothing runs, and its own words are raised."""
        launching = self.launch()
        fault = Fault("vault_locked", "The vault is missing.")
        self.site.answer(423, {"error": to_json(fault)})
        self.assertEqual(str(self.failureResultOf(launching, DaemonFault).value), "The vault is missing.")
        self.assertEqual(self.machine.spawned, [])


class WakeTests(LaunchCase):
    """The launch goes on after the agent has ended."""

    def setUp(self) -> None:
        super().setUp()
        self.wakes = True

    def ended(self, code: int | None = 0, signal: int | None = None) -> Deferred[int]:
        """Launch an agent that may be resumed, as far as its end."""
        launching = self.launch("run", "--model", "x/y", "hi", wake=True)
        self.site.answer(201, OPENED)
        self.machine.exit(code, signal)
        return launching

    def reply(self, *, waiting: bool = False, **outcome: str) -> None:
        """Have the daemon reply."""
        asked = self.site.asked[-1]
        self.assertEqual((asked.path, asked.headers["authorization"]), ("/v1/wake", "Bearer ail_a_secret"))
        said = {"waiting": waiting, "outcome": outcome or None, "conversation": "ses_1", "resumes_left": 1}
        self.site.answer(200, said)

    def test_resumed(self) -> None:
        """The agent runs again in the same session; then the session ends, with the first exit code."""
        launching = self.ended(3)
        self.reply(waiting=True)
        self.reply(waiting=True, run_id="R", message="It is done.")
        _, (_, again, environment, _) = self.machine.spawned
        self.assertEqual(tuple(again[1:]), ("run", "--model", "x/y", "--session", "ses_1", "It is done."))
        self.assertIn(b"ail_a_secret", environment[b"OPENCODE_CONFIG_CONTENT"])
        self.machine.exit(0)
        self.reply()
        self.assert_ended(3)
        self.site.answer(200, {})
        self.assertEqual(self.successResultOf(launching), 3)

    def test_interrupted(self) -> None:
        """Ctrl-C ends the wait, and the session."""
        launching = self.ended()
        self.reply(waiting=True)
        self.signals.send(2)
        self.assert_ended(0)
        self.site.hang_up()  # what was asked before is given up
        self.site.answer(200, {})
        self.assertEqual(self.successResultOf(launching), 0)
        self.assertEqual(len(self.machine.spawned), 1)

    def test_by_signal(self) -> None:
        """An agent that a signal ended, also when it was resumed, is not resumed."""
        self.ended(None, 15)
        self.assert_ended(143)
        self.setUp()
        launching = self.ended()
        self.reply(waiting=True, run_id="R", message="It is done.")
        self.machine.exit(None, 2)
        self.assert_ended(0)
        self.site.answer(200, {})
        self.assertEqual(self.successResultOf(launching), 0)

    def test_off(self) -> None:
        """Nothing is waited for unless it is said so, and the daemon can."""
        for wakes, wake in ((True, None), (True, False), (False, None)):
            self.setUp()
            self.wakes = wakes
            self.launch(wake=wake)
            self.site.answer(201, OPENED)
            self.machine.exit(0)
            self.assert_ended(0)

    def test_impossible(self) -> None:
        """For an option that may restrict the agent, or a daemon that resumes none, no session is opened."""
        self.failureResultOf(self.launch("run", "--readonly", "hi", wake=True), InvalidRequest)
        self.wakes = False
        self.failureResultOf(self.launch("run", "hi", wake=True), InvalidRequest)
        self.assertEqual((self.site.asked, self.machine.spawned), ([], []))

    def test_configured(self) -> None:
        """If the operator's configuration alone wants it, an agent that cannot be resumed runs as it always did."""
        self.resumes = True
        self.launch("run", "--readonly", "hi")
        self.site.answer(201, OPENED)
        self.machine.exit(0)
        self.assert_ended(0)
        self.setUp()
        self.resumes = True
        self.launch("run", "hi")
        self.site.answer(201, OPENED)
        self.machine.exit(0)
        self.assertEqual(self.site.asked[-1].path, "/v1/wake")


class EncloseTests(LaunchCase):
    """A launch into a sandbox."""

    def test_each_run(self) -> None:
        """What the sandbox may reach is opened once for the session; each run is put into a sandbox of its own."""
        self.wakes, self.resumes = True, True
        opened: list[str] = []
        entered: list[tuple[str, ...]] = []

        def enclosed(plan: LaunchPlan, url: str) -> AbstractContextManager[LaunchPlan]:
            entered.append((url, *plan.argv[1:]))
            return nullcontext(evolve(plan, argv=("bwrap", *plan.argv)))

        async def enclose(session_id: str) -> Enclosed:
            opened.append(session_id)
            return enclosed

        self.launch("run", "hi", enclose=enclose)
        self.site.answer(201, OPENED)
        self.machine.exit(0)
        said = {"waiting": False, "outcome": None, "conversation": "ses_1", "resumes_left": 1}
        self.site.answer(200, {**said, "outcome": {"run_id": "R", "message": "It is done."}})
        self.assertEqual(opened, ["S"])
        self.assertEqual([each[0] for each in entered], [self.url] * 2)
        self.assertEqual([each[1][0] for each in self.machine.spawned], ["bwrap"] * 2)

    def test_refused(self) -> None:
        """If the daemon opens no service, its own words are raised, and the session ends before an agent starts."""

        async def enclose(_session: str) -> Enclosed:
            raise DaemonFault("No credential is bound.", 403, Fault("binding_required", "No credential is bound."))

        launching = self.launch(enclose=enclose)
        self.site.answer(201, OPENED)
        self.assert_ended(None)
        self.site.answer(200, {"id": "S"})
        self.assertEqual(str(self.failureResultOf(launching, DaemonFault).value), "No credential is bound.")
        self.assertEqual(self.machine.spawned, [])


class LeaseTests(SynchronousTestCase):
    """Holding, by hand."""

    def setUp(self) -> None:
        self.site, self.clock, self.key, self.running = ScriptedSite(), Clock(), "ail_l_one", True
        self.holding = Deferred.fromCoroutine(Lease(self.daemon, self.clock).hold("S"))
        self.addCleanup(self.abandon)

    def abandon(self) -> None:
        """Let go."""
        self.holding.addErrback(lambda _: None)
        self.holding.cancel()

    def daemon(self) -> Daemon | None:
        """The daemon as it is now."""
        return (
            Daemon(DaemonClient(self.site.agent, "http://127.0.0.1:9", self.key, self.clock)) if self.running else None
        )

    def test_held(self) -> None:
        """The lease is asked for with the launch key, and stays asked for."""
        [asked] = self.site.asked
        self.assertEqual((asked.method, asked.path), ("GET", "/v1/sessions/S/lease"))
        self.assertEqual(asked.headers["authorization"], "Bearer ail_l_one")
        self.site.begin(200, b"event: held\ndata: {}\n\n")
        self.clock.advance(10)
        self.assertEqual((len(self.site.asked), self.site.waiting), (1, 1))
        self.assertNoResult(self.holding)

    def test_restarted(self) -> None:
        """What is cut off is asked for again, with the key of the daemon that runs then; while none does, of none."""
        self.site.begin(200, b"event: held\ndata: {}\n\n")
        self.site.hang_up()
        self.running = False
        self.clock.pump([LEASE_PAUSE_SECONDS] * 3)
        self.assertEqual(len(self.site.asked), 1)
        self.running, self.key = True, "ail_l_two"
        self.clock.advance(LEASE_PAUSE_SECONDS)
        self.assertEqual(self.site.asked[-1].headers["authorization"], "Bearer ail_l_two")
        self.site.answer(401, {"error": to_json(Unauthorized("Nobody knows this.").fault())})
        self.clock.advance(LEASE_PAUSE_SECONDS)
        self.assertEqual(len(self.site.asked), 3)

    def test_over(self) -> None:
        """Of a session that is no more nothing is held."""
        self.site.answer(404, {"error": to_json(NotFound("There is no such session.").fault())})
        self.clock.advance(LEASE_PAUSE_SECONDS)
        self.assertIsNone(self.successResultOf(self.holding))


class LaunchedTests(LaunchCase):
    """A whole launch."""

    def test_notes_tools(self) -> None:
        """Only a session in a sandbox, with the gateway, has the tools of providers noted, and says so.

        The daemon may have no gateway.
        """

        async def enclose(_session: str) -> Enclosed:
            return _leave

        for through, walls, notes, upstreams in (
            (True, enclose, True, {}),
            (False, enclose, False, {}),
            (True, None, False, {}),
            (True, enclose, False, None),
        ):
            self.upstreams = upstreams
            self.site.asked.clear()
            self.said.clear()
            launching = self.running(through_gateway=through, enclose=walls)
            self.assertEqual(self.site.asked[0].body.get("notes_tools"), notes or None)
            self.assertEqual(NOTES_TOOLS in self.said, notes)
            self.machine.exit(0)
            self.site.answer(200, {"id": "S"})
            self.successResultOf(launching)

    def test_lease(self) -> None:
        """A session is opened with a lease, held while the agent runs, and let go; at its end it is summed up."""
        self.lease = Lease(
            lambda: Daemon(DaemonClient(self.site.agent, "http://d", "ail_l_new", self.machine)), self.machine
        )
        launching = self.running()
        self.assertEqual(self.site.asked[0].body["lease"], True)
        self.assertEqual(self.site.asked[1].path, "/v1/sessions/S/lease")
        self.site.begin(200, b"event: held\ndata: {}\n\n")
        self.machine.exit(0)
        self.assert_ended(0)
        self.site.answer(200, b"")  # the lease, whose request nobody waits for any more
        tally = {"calls": 3, "waiting": 1, "approvals": 1, "denials": 0, "effects": 1, "in_doubt": 0, "seconds": 61}
        traffic = {"requests": 1, "input_tokens": 7, "output_tokens": 8}
        self.site.answer(200, {"id": "S", "summary": tally, "gateway": traffic})
        self.assertEqual(self.successResultOf(launching), 0)
        self.assertEqual(
            self.said[-3:],
            [
                "aileron: session S ended after 1 min 1 s: 3 calls, 1 approved, 1 completed, 1 pending",
                "aileron: LLM traffic: 1 request, 7 tokens in, 8 out",
                "aileron: pending approvals can still be decided: aileron approval list",
            ],
        )
