"""What an outcome means, and when it is tried again."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.runner.outcomes import MAX_RETRIES, Meaning, RetryPolicy, classify
from aileron.values import READ, WRITE, Fault, Outcome

from .kit import RunnerCase, manifest, step

_PASSING = Fault("external_api_error", "busy", "external", retriable=True)
_LASTING = Fault("external_api_error", "no", "external", retriable=False)
_LOST = Fault("network_error", "Nobody there.", "external", retriable=True)
_KINDS = {
    "done": Outcome({"done": True}),
    "busy": Outcome(fault=_PASSING),  # 429
    "refused": Outcome(fault=_LASTING),
    "broken": Outcome(fault=_PASSING, classified=False),  # reset, 502
    "garbled": Outcome(fault=_LASTING, classified=False),
    "unreached": Outcome(fault=_LOST, sent=False, classified=False),
}
_PASSES = frozenset(("busy", "broken", "unreached"))


class MeaningTests(SynchronousTestCase):
    """Done, not done, or in doubt."""

    def test_table(self) -> None:
        """A write that left is in doubt unless its answer says what came of it; a read never is."""
        lost = Outcome(fault=_PASSING, sent=True, classified=False)
        for name, outcome, effect, meaning in (
            ("no fault", Outcome({"ok": True}), WRITE, Meaning.DONE),
            ("refused as declared", Outcome(fault=_LASTING), WRITE, Meaning.NOT_DONE),
            ("no byte left", evolve(lost, sent=False), WRITE, Meaning.NOT_DONE),
            ("not answered as declared", lost, WRITE, Meaning.IN_DOUBT),
            ("a read", lost, READ, Meaning.NOT_DONE),
        ):
            self.assertIs(classify(outcome, effect), meaning, name)


class RetryTests(SynchronousTestCase):
    """Which failures are tried again, how often, and how soon."""

    def test_table(self) -> None:
        """It waits 1, 2 and 4 seconds, or as asked, and only where a second request may help and does no harm."""
        passing, asked = Outcome(fault=_PASSING), Outcome(fault=_PASSING, retry_after_seconds=7.0)
        own = Outcome(fault=Fault("resource_limit_exceeded", "slow", "sandbox", retriable=True))
        for name, outcome, idempotent, attempts, delay in (
            ("the first", passing, True, 1, 1.0),
            ("the second", passing, True, 2, 2.0),
            ("the third", passing, True, 3, 4.0),
            ("no fourth", passing, True, 4, None),
            ("what the service asks for", asked, True, 1, 7.0),
            ("after the action's time", evolve(asked, retry_after_seconds=61.0), True, 1, None),
            ("could do harm", passing, False, 1, None),
            ("no byte left", evolve(passing, sent=False), False, 1, 1.0),
            ("will not pass", Outcome(fault=_LASTING), True, 1, None),
            ("neither network nor service", own, True, 1, None),
        ):
            self.assertEqual(RetryPolicy(lambda: 0.0).delay(outcome, idempotent, attempts, 60.0), delay, name)

    def test_jitter(self) -> None:
        """Chance stretches a delay by up to a fifth."""
        self.assertEqual(RetryPolicy(lambda: 0.5).delay(Outcome(fault=_PASSING), True, 1, 60.0), 1.1)

    @settings(deadline=None)
    @given(
        st.booleans(),
        st.booleans(),
        st.integers(1, 9),
        st.floats(0, 1e6),
        st.none() | st.floats(0, 1e6),
        st.floats(0, 0.999),
    )
    def test_bounds(
        self, sent: bool, idempotent: bool, attempts: int, left: float, asked: float | None, chance: float
    ) -> None:
        """No delay passes the wall clock, undercuts what was asked, or comes after the last retry."""
        outcome = Outcome(fault=_PASSING, sent=sent, retry_after_seconds=asked)
        delay = RetryPolicy(lambda: chance).delay(outcome, idempotent, attempts, left)
        if delay is not None:
            self.assertTrue(max(1.0, asked or 0.0) <= delay < left)
            self.assertTrue(attempts <= MAX_RETRIES and (idempotent or not sent))


class SequenceTests(SynchronousTestCase):
    """Whole sequences of answers, against a model of what must come of them."""

    @settings(deadline=None, max_examples=60)
    @given(st.sampled_from(("post", "put", "look")), st.lists(st.sampled_from(sorted(_KINDS)), max_size=5))
    def test_sequences(self, operation: str, kinds: list[str]) -> None:
        """What is sent how often, under which key, and what the run comes to, is what the rules say."""
        home = _Home()
        home.setUp()
        home.write("open", manifest("open", step(operation), gated=False))
        home.runner.look()
        home.connector.script.extend(_KINDS[kind] for kind in kinds)
        run = home.submit("open")
        home.clock.pump([0.5] * 16)
        used, state = _model(operation, kinds)
        found = home.now(run)
        self.assertEqual((found.state.value, len(home.connector.sendings)), (state, used))
        self.assertEqual(len({sending.effect_key for sending in home.connector.sendings}), 1)
        _, attempts = home.sync(home.runner.submission.history(run.id))
        self.assertEqual([row.number for row in attempts], list(range(1, used + 1)))
        self.assertTrue(all(row.state != "started" and row.ended_at is not None for row in attempts))
        self.assertEqual(home.events(run).count("execution.attempt"), used - 1)
        self.assertEqual(found.fault and found.fault.details["retried"], None if state == "completed" else used - 1)


class _Home(RunnerCase):
    """A home to run sequences in."""

    def runTest(self) -> None:
        """Not a test by itself."""


def _model(operation: str, kinds: list[str]) -> tuple[int, str]:
    """How many attempts are made, and the state that the run ends in."""
    in_doubt = False
    for number, kind in enumerate([*kinds, "done"], start=1):
        sent, classified, passes = kind != "unreached", kind in {"busy", "refused"}, kind in _PASSES
        if kind == "done":
            return number, "completed"
        in_doubt = in_doubt or (operation != "look" and sent and not classified)
        again = passes and number <= MAX_RETRIES and (operation != "post" or not sent)
        if not again:
            return number, "unknown" if in_doubt else "failed"
    raise AssertionError("the last one is done")
