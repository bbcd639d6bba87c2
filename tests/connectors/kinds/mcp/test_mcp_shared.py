"""Of the one process of a local MCP server: when it is started, shared, replaced, started again and ended."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._answer import ServiceUnreachable
from aileron.connectors._conversation import Rejected
from aileron.connectors.kinds.mcp._shared import IDLE_SECONDS, START_SECONDS, SharedServer, Start
from aileron.connectors.programs import Launch
from aileron.model.errors import NetworkError

START = Start(Launch(["/srv/server"], "/srv", {"TOKEN": "one"}), 1000, ("one",))
CHANGED = evolve(START, launch=Launch(["/srv/server"], "/srv", {"TOKEN": "two"}))


class _Pipes:
    """The pipes of a process of which nothing runs."""

    pid = None

    def __init__(self) -> None:
        self.is_asked_to_end = self.is_killed = False

    def closeChildFD(self, childFD: int) -> None:
        """Note that its input ends."""
        self.is_asked_to_end = True

    def signalProcess(self, name: str) -> None:
        """Note that it is killed."""
        self.is_killed = True

    def loseConnection(self) -> None:
        """There is nothing to close."""


class _Processes(Clock):
    """A clock that starts processes of which nothing runs."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[tuple[Any, _Pipes]] = []
        self.is_broken = False

    def spawnProcess(self, protocol: Any, *given: Any, **more: Any) -> None:
        """Start one."""
        if self.is_broken:
            raise OSError(11, "Resource temporarily unavailable")
        pipes = _Pipes()
        self.started.append((protocol, pipes))
        protocol.makeConnection(pipes)

    def dies(self, number: int, code: int = 1) -> None:
        """One of them is gone."""
        protocol, _ = self.started[number]
        why = Failure(ProcessTerminated(code) if code else ProcessDone(0))
        protocol.processExited(why)
        protocol.processEnded(why)


class _Lost:
    """What a wire is told to."""

    def receive(self, message: Any) -> None:
        """Nothing is said."""

    def lost(self, failure: Exception) -> None:
        """Nothing waits."""


class _Session:
    """A session that has begun."""

    def __init__(self) -> None:
        self.refused: list[str] = ["roots/list"]


class SharedTests(SynchronousTestCase):
    """A process whose sessions begin when the test says so."""

    def setUp(self) -> None:
        self.processes = _Processes()
        self.begun: list[Deferred[Any]] = []
        self.shared = SharedServer("local://me/x", self.processes, self.begin, maybeDeferred)

    async def begin(self, wire: Any) -> Any:
        """Begin a session."""
        wire.listen(_Lost())
        self.begun.append(Deferred())
        return await self.begun[-1]

    def opening(self, start: Start = START) -> Deferred[Any]:
        """A run wants the session."""
        return Deferred.fromCoroutine(self.shared.open(start))

    def opened(self, start: Start = START) -> Any:
        """A run has got a session that was begun for it."""
        opening, session = self.opening(start), _Session()
        self.assertNoResult(opening)
        self.begun[-1].callback(session)
        self.assertIs(self.successResultOf(opening), session)
        self.assertEqual(session.refused, [])
        return session

    def refused(self, start: Start = START) -> str:
        """Why a run gets none."""
        return str(self.failureResultOf(self.opening(start), NetworkError).value.message)

    def count(self) -> int:
        """How many were started so far."""
        return len(self.processes.started)

    def test_shared(self) -> None:
        """Nothing is started before it is needed; then all runs have the same process, also those that wait for it."""
        self.assertEqual(self.count(), 0)
        first, second = self.opening(), self.opening()
        self.assertEqual((self.count(), len(self.begun)), (1, 1))
        self.assertNoResult(second)
        session = _Session()
        self.begun[0].callback(session)
        self.assertIs(self.successResultOf(first), session)
        self.assertIs(self.successResultOf(second), session)
        self.assertIs(self.successResultOf(self.opening()), session)
        self.assertEqual(self.count(), 1)

    def test_idle(self) -> None:
        """It ends when no run has used it for a while, and not while one does."""
        session = self.opened()
        self.successResultOf(self.opening())
        self.processes.advance(IDLE_SECONDS * 2)
        self.shared.done(session)
        self.processes.advance(IDLE_SECONDS * 2)
        self.assertFalse(self.processes.started[0][1].is_asked_to_end)
        self.shared.done(session)
        self.processes.advance(IDLE_SECONDS - 1)
        self.successResultOf(self.opening())
        self.shared.done(session)
        self.processes.advance(IDLE_SECONDS - 1)
        self.assertFalse(self.processes.started[0][1].is_asked_to_end)
        self.processes.advance(1)
        self.assertTrue(self.processes.started[0][1].is_asked_to_end)

    def test_ends_while_it_is_wanted(self) -> None:
        """Whoever comes while an idle one ends gets another, started when the first is gone, and at once."""
        self.shared.done(self.opened())
        self.processes.advance(IDLE_SECONDS)
        opening = self.opening()
        self.assertEqual(self.count(), 1)
        self.processes.dies(0, 0)
        self.assertEqual(self.count(), 2)
        self.begun[1].callback(session := _Session())
        self.assertIs(self.successResultOf(opening), session)

    def test_changed(self) -> None:
        """Where the file or the credential has changed, the old process is gone before the new one begins."""
        self.shared.done(self.opened())
        opening = self.opening(CHANGED)
        self.assertTrue(self.processes.started[0][1].is_asked_to_end)
        self.assertEqual(self.count(), 1)
        self.processes.dies(0, 0)
        self.assertEqual(self.count(), 2)
        self.begun[1].callback(session := _Session())
        self.assertIs(self.successResultOf(opening), session)

    def test_changed_in_use(self) -> None:
        """A run that has begun ends with the process it began with; what comes after a change waits for it."""
        session = self.opened()
        opening = self.opening(CHANGED)
        self.assertFalse(self.processes.started[0][1].is_asked_to_end)
        self.shared.done(session)
        self.assertTrue(self.processes.started[0][1].is_asked_to_end)
        self.processes.dies(0)
        self.begun[1].callback(another := _Session())
        self.assertIs(self.successResultOf(opening), another)
        self.shared.done(session)  # of the old one: the new one keeps its user
        self.processes.advance(IDLE_SECONDS)
        self.assertFalse(self.processes.started[1][1].is_asked_to_end)

    def test_forgets(self) -> None:
        """A process with a credential ends when that must be forgotten: at once, or after the runs that use it."""
        self.shared.forget_credential()
        self.shared.done(self.opened())
        self.shared.forget_credential()
        self.assertTrue(self.processes.started[0][1].is_asked_to_end)
        self.processes.dies(0, 0)
        session = self.opened()
        self.shared.forget_credential()
        opening = self.opening()
        self.assertFalse(self.processes.started[1][1].is_asked_to_end)
        self.shared.done(session)
        self.assertTrue(self.processes.started[1][1].is_asked_to_end)
        self.processes.dies(1, 0)
        self.begun[2].callback(another := _Session())
        self.assertIs(self.successResultOf(opening), another)

    def test_forgets_while_it_starts(self) -> None:
        """Who waits for one that has only begun to start is told."""
        opening = self.opening()
        self.shared.forget_credential()
        self.begun[0].errback(ServiceUnreachable())
        self.processes.dies(0, 0)
        self.assertIn("because the vault is locked", self.failureResultOf(opening, NetworkError).value.message)
        self.opened()

    def test_has_nothing_to_forget(self) -> None:
        """A process without a credential stays."""
        self.shared.done(self.opened(evolve(START, secrets=())))
        self.shared.forget_credential()
        self.assertFalse(self.processes.started[0][1].is_asked_to_end)

    def test_dies_and_starts_again(self) -> None:
        """A run whose process died gives it back while the next one starts, and disturbs neither."""
        session = self.opened()
        self.processes.dies(0)
        self.processes.advance(1)
        opening = self.opening()
        self.shared.done(session)
        self.begun[1].callback(another := _Session())
        self.assertIs(self.successResultOf(opening), another)

    def test_different_starts_at_once(self) -> None:
        """A run that waits behind another's start does not take the process away from it."""
        first, second = self.opening(), self.opening(CHANGED)
        self.begun[0].callback(session := _Session())
        self.assertIs(self.successResultOf(first), session)
        self.assertNoResult(second)
        self.assertFalse(self.processes.started[0][1].is_asked_to_end)

    def test_backoff(self) -> None:
        """After each death it is started again later, a minute at most; who comes before is told when, and not sent."""
        for number, seconds in enumerate((1, 2, 4, 8, 16, 32, 60, 60)):
            session = self.opened()
            self.processes.dies(number)
            self.shared.done(session)
            self.assertIn(f"in {seconds} s.", self.refused())
            self.processes.advance(seconds - 0.5)
            self.assertIn("in 1 s.", self.refused())
            self.assertEqual(self.count(), number + 1)
            self.processes.advance(0.5)
        self.opened()
        self.processes.advance(60)
        self.processes.dies(8)
        self.assertIn("in 1 s.", self.refused())

    def test_not_started(self) -> None:
        """A process that cannot be made is told, and tried again later."""
        self.processes.is_broken = True
        self.assertIn("was not started: Resource temporarily unavailable", self.refused())
        self.processes.is_broken = False
        self.assertIn("in 1 s.", self.refused())

    def test_dies_while_it_starts(self) -> None:
        """A process that ends before it answers is told by how it ended."""
        opening = self.opening()
        self.processes.dies(0, 3)
        self.begun[0].errback(ServiceUnreachable())
        message = self.failureResultOf(opening, NetworkError).value.message
        self.assertEqual(message, "The server of local://me/x ended with exit code 3; its errors are in Aileron's log.")

    def test_refuses_session(self) -> None:
        """A server that refuses a session is told by what it said, made visible and redacted, and does not stay."""
        opening = self.opening()
        self.begun[0].errback(Rejected("a session", "no one\x1b[2J"))
        self.assertTrue(self.processes.started[0][1].is_asked_to_end)
        self.assertNoResult(opening)
        self.processes.dies(0, 0)
        self.assertIn("refused a session: no [redacted]␛[2J", self.failureResultOf(opening, NetworkError).value.message)

    def test_breaks(self) -> None:
        """Where something breaks while a session begins, the process does not stay without one."""
        opening = self.opening()
        self.begun[0].errback(RuntimeError("no loop"))
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)
        self.processes.dies(0, 0)
        self.failureResultOf(opening, NetworkError)
        self.processes.advance(1)
        self.opened()

    def test_silent(self) -> None:
        """A server that does not answer at all is ended, whether anybody still waits for it or not."""
        opening = self.opening()
        self.processes.advance(START_SECONDS - 1)
        opening.cancel()
        self.failureResultOf(opening, CancelledError)
        self.assertFalse(self.processes.started[0][1].is_asked_to_end)
        another = self.opening()
        self.processes.advance(1)
        self.assertTrue(self.processes.started[0][1].is_asked_to_end)
        for _ in range(2):
            self.assertFalse(self.processes.started[0][1].is_killed)
            self.processes.advance(2)
        self.assertTrue(self.processes.started[0][1].is_killed)
        self.processes.dies(0)
        self.assertIn("in 1 s.", self.failureResultOf(another, NetworkError).value.message)

    def test_given_up(self) -> None:
        """A process that starts goes on where nobody waits any more; who gave up before its turn starts none."""
        first, second = self.opening(), self.opening(CHANGED)
        second.cancel()
        self.failureResultOf(second, CancelledError)
        first.cancel()
        self.failureResultOf(first, CancelledError)
        self.begun[0].callback(session := _Session())
        self.assertIs(self.successResultOf(self.opening()), session)
        self.assertEqual(self.count(), 1)

    def test_nobody_waits(self) -> None:
        """A process that has started when nobody waits any more ends as every idle one does."""
        opening = self.opening()
        opening.cancel()
        self.failureResultOf(opening, CancelledError)
        self.begun[0].callback(_Session())
        self.processes.advance(IDLE_SECONDS)
        self.assertTrue(self.processes.started[0][1].is_asked_to_end)

    def test_stop(self) -> None:
        """The end of the daemon waits until the process is gone."""
        self.successResultOf(
            Deferred.fromCoroutine(SharedServer("x", self.processes, self.begin, maybeDeferred).stop())
        )
        self.opened()
        stopping = Deferred.fromCoroutine(self.shared.stop())
        self.assertTrue(self.processes.started[0][1].is_asked_to_end)
        self.assertNoResult(stopping)
        self.processes.dies(0, 0)
        self.successResultOf(stopping)
        self.assertEqual(self.processes.getDelayedCalls(), [])
