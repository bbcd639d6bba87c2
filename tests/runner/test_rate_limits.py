"""What a service asks for in one run holds the later runs of the same connector and account."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.model.connectors import Outcome
from aileron.model.faults import Fault
from aileron.model.runs import Run, RunState
from aileron.testing import ScriptedConnector, scripted_description
from tests.runner.kit import AGENT, OPERATOR, RunnerCase, manifest, step
from tests.runner.previewed import MAIL, PreviewedCase

FULL = Outcome(
    fault=Fault("external_api_error", "It answered with status 429.", "external", retriable=False),
    retry_after_seconds=100.0,
    status=429,
)


class RateLimitCase(RunnerCase):
    """Actions that ask and that do not, of one connector and of another."""

    def setUp(self) -> None:
        super().setUp()
        self.elsewhere = ScriptedConnector(scripted_description(fqn="local://test/other"), self.clock)
        self.connectors.add(self.elsewhere)
        self.believe_connectors()
        self.write("elsewhere", manifest("elsewhere", step("post")).replace("//test/scripted", "//test/other"))
        self.offer("read", step("look"), gated=False)

    def approved(self, name: str = "gated", text: str = "hello") -> Run:
        """A run that was approved."""
        run = self.submit(name, {"text": text})
        self.approve(run)
        return run

    def full(self) -> None:
        """One run is answered that there is no room for a hundred seconds."""
        self.connector.script.append(FULL)
        self.assertIs(self.state(self.approved(text="first")), RunState.FAILED)
        self.connector.sendings.clear()


class HeldTests(RateLimitCase):
    """Later runs."""

    def test_gated(self) -> None:
        """An approved run is put off until then, visibly and on record, and begins by itself; nothing failed."""
        self.full()
        run = self.approved(text="second")
        at = utc(self.clock.seconds() + 100)
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.APPROVED, []))
        self.assertEqual(self.sync(self.runner.submission.run(run.id)).start_after, at)
        (event,) = self.recorded("run.scheduled", run)
        self.assertIn("rate limit", str(event.payload["reason"]))
        self.clock.advance(99.9)
        self.assertEqual((self.state(run), len(self.recorded("run.scheduled", run))), (RunState.APPROVED, 1))
        self.clock.advance(0.2)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.COMPLETED, 1))

    def test_withdrawn(self) -> None:
        """A run that is put off can be taken back, and is then never sent."""
        self.full()
        run = self.approved(text="second")
        self.sync(self.runner.submission.withdraw(run.id, AGENT, None))
        self.clock.advance(200)
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.CANCELLED, []))

    def test_next_life(self) -> None:
        """A restart forgets what the service asked for, and not when the run was to begin."""
        self.full()
        run = self.approved(text="second")
        self.next_life()
        self.clock.advance(50)
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.APPROVED, []))
        self.clock.advance(51)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_others(self) -> None:
        """Another connector is not held."""
        self.full()
        self.assertIs(self.state(self.approved("elsewhere")), RunState.COMPLETED)

    def test_success(self) -> None:
        """A success may say as well that no request is left."""
        self.connector.script.append(Outcome(output={}, retry_after_seconds=60.0))
        self.assertIs(self.state(self.approved(text="first")), RunState.COMPLETED)
        run = self.approved(text="second")
        self.assertIs(self.state(run), RunState.APPROVED)
        self.clock.advance(61)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_retried(self) -> None:
        """A run that may try again does so when the service said, and a later one begins no sooner."""
        self.offer("repeat", step("put"))
        fault = Fault("external_api_error", "It answered with status 429.", "external", retriable=True)
        self.connector.script.append(Outcome(fault=fault, retry_after_seconds=10.0))
        first, second = self.approved("repeat"), self.approved(text="second")
        self.clock.advance(9.9)
        self.assertEqual([self.state(each) for each in (first, second)], [RunState.EXECUTING, RunState.APPROVED])
        self.clock.advance(1)
        self.assertEqual([self.state(each) for each in (first, second)], [RunState.COMPLETED] * 2)

    def test_paused(self) -> None:
        """What waits for its turn while everything is paused is not sent."""
        self.connector.script.append(Outcome(output={}, retry_after_seconds=20.0))
        self.offer("read", step("look"), gated=False)
        self.submit("read")
        run = self.submit("read", {"text": "again"})
        self.sync(self.runner.limits.pause(None, None, OPERATOR))
        self.clock.advance(21)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.EXECUTING, 1))
        self.clock.advance(1000)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.FAILED, 1))

    def test_bounded(self) -> None:
        """No service holds its runs for more than an hour, whatever it asks for."""
        self.connector.script.append(Outcome(output={}, retry_after_seconds=86_400.0))
        self.approved(text="first")
        run = self.approved(text="second")
        self.clock.advance(3601)
        self.assertIs(self.state(run), RunState.COMPLETED)


class PartlyDoneTests(RateLimitCase):
    """Runs that meet the limit after something was done, or may have been."""

    def ended(self, run: Run, state: RunState) -> None:
        """It ended so, says so of one request only, and invites nobody to repeat all of it."""
        now = self.now(run)
        assert now.fault is not None
        self.assertEqual((now.state, now.fault.kind, now.fault.retriable), (state, "limit_exceeded", False))
        self.assertIn("This request was not sent.", now.fault.message)
        self.assertNotIn("Nothing was sent", now.fault.message)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_second_step(self) -> None:
        """The first of two steps was done, and its answer said that no request is left."""
        self.offer("two", step("post", "a"), step("post", "b"))
        self.connector.script.append(Outcome({}, retry_after_seconds=600.0))
        self.ended(self.approved("two"), RunState.FAILED)

    def test_after_a_read(self) -> None:
        """Where only reads were done, the run may be repeated."""
        self.offer("two", step("look", "a"), step("post", "b"))
        self.connector.script.append(Outcome({}, retry_after_seconds=600.0))
        now = self.now(self.approved("two"))
        assert now.fault is not None
        self.assertEqual((now.state, now.fault.retriable), (RunState.FAILED, True))

    def test_in_doubt(self) -> None:
        """The first attempt is in doubt, and before the second another run learns of the limit."""
        self.offer("repeat", step("put"))
        self.offer("read", step("look"), gated=False)
        broken = Fault("external_api_error", "It answered with status 500.", "external", retriable=True)
        self.connector.script.append(Outcome(fault=broken, classified=False, status=500))
        run = self.approved("repeat")
        self.connector.shows["look"] = lambda: Outcome({}, retry_after_seconds=600.0)
        self.submit("read")
        self.connector.sendings.pop()
        self.clock.advance(5)
        self.ended(run, RunState.UNKNOWN)


class UngatedTests(RateLimitCase):
    """Runs that nobody is asked about."""

    def test_waits(self) -> None:
        """One waits within its own time."""
        self.connector.script.append(Outcome(output={}, retry_after_seconds=20.0))
        self.submit("read")
        run = self.submit("read", {"text": "again"})
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.EXECUTING, 1))
        self.clock.advance(21)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.COMPLETED, 2))

    def test_too_long(self) -> None:
        """If that is too long it says until when, that the request was not sent, and that it may be tried again."""
        self.full()
        run = self.submit("read")
        ended = self.sync(self.runner.submission.run(run.id))
        assert ended.fault is not None
        self.assertEqual((ended.state, ended.fault.kind), (RunState.FAILED, "limit_exceeded"))
        self.assertIn("This request was not sent.", ended.fault.message)
        self.assertTrue(ended.fault.retriable)
        self.assertEqual((ended.fault.details["retry_after"], self.connector.sendings), (100, []))


class PreviewTests(PreviewedCase):
    """What the answers to previews ask for, which an agent brings about that only asks."""

    def setUp(self) -> None:
        super().setUp()
        self.offer("plain", step("post"))

    def told(self, seconds: float) -> None:
        """Previews are answered from now on that there is no room for so long."""
        self.answer(Outcome(MAIL, retry_after_seconds=seconds))

    def test_standing(self) -> None:
        """A hold that stands is not moved by the previews of later requests."""
        self.connector.script.append(FULL)
        self.approve(self.submit("plain", {"text": "first"}))
        run = self.submit("plain", {"text": "second"})
        self.approve(run)
        self.told(3600.0)
        self.submit("gated", {"text": "only asked"})
        self.clock.advance(101)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_starved(self) -> None:
        """An approved run is put off once by what an agent's previews are answered, however well these are timed."""
        answer: Deferred[Outcome] = Deferred()
        self.clock.callLater(3600.0, answer.callback, Outcome(MAIL, retry_after_seconds=3600.0))
        self.told(3600.0)
        self.submit("gated", {"text": "only asked"})
        run = self.submit("plain")
        self.approve(run)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.answer(answer)
        self.clock.advance(3599)
        self.submit("gated", {"text": "asked again"})
        self.clock.advance(1)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(len(self.recorded("run.scheduled", run)), 1)

    def test_own(self) -> None:
        """A run whose own last look is answered that no request is left is put off, not failed, and goes next time."""
        run = self.submit("gated")
        digest = self.shown(run).digest
        looks = iter([Outcome(MAIL)])
        self.connector.shows["look"] = lambda: next(looks, Outcome(MAIL, retry_after_seconds=600.0))
        self.decide(run, digest)
        self.assertEqual((self.state(run), self.effects()), (RunState.APPROVED, []))
        self.assertEqual(self.now(run).start_after, utc(self.clock.seconds() + 600))
        self.clock.advance(600.5)
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, ["post"]))
        self.assertEqual(len(self.recorded("run.scheduled", run)), 1)

    def test_own_refused(self) -> None:
        """One whose last look is refused for the rate limit is put off too, and is not asked about anew."""
        run = self.submit("gated")
        digest = self.shown(run).digest
        looks = iter([Outcome(MAIL), FULL])
        self.connector.shows["look"] = lambda: next(looks, Outcome(MAIL))
        self.decide(run, digest)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.clock.advance(100.5)
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, ["post"]))
