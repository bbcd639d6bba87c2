"""What an outcome means, and when it is tried again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.runner._retry import MAX_RETRIES, Meaning, RetryPolicy, meaning
from aileron.values import READ, WRITE, Fault, Outcome

_PASSING = Fault("external_api_error", "busy", "external", retriable=True)
_LASTING = Fault("external_api_error", "no", "external", retriable=False)


class MeaningTests(SynchronousTestCase):
    """Done, not done, or in doubt."""

    def test_success(self) -> None:
        """An outcome without a fault is done."""
        self.assertIs(meaning(Outcome({"ok": True}), WRITE), Meaning.DONE)

    def test_classified(self) -> None:
        """A write that the service refused, as declared, was not done."""
        self.assertIs(meaning(Outcome(fault=_LASTING), WRITE), Meaning.NOT_DONE)

    def test_never_sent(self) -> None:
        """A write of which no byte left was not done, whatever else is known."""
        self.assertIs(meaning(Outcome(fault=_PASSING, sent=False, classified=False), WRITE), Meaning.NOT_DONE)

    def test_in_doubt(self) -> None:
        """A write that left and was not answered as declared may have happened."""
        self.assertIs(meaning(Outcome(fault=_PASSING, sent=True, classified=False), WRITE), Meaning.IN_DOUBT)

    def test_read(self) -> None:
        """A read is never in doubt: it has no effect."""
        self.assertIs(meaning(Outcome(fault=_PASSING, sent=True, classified=False), READ), Meaning.NOT_DONE)


class RetryTests(SynchronousTestCase):
    """Which failures are tried again, how often, and how soon."""

    def setUp(self) -> None:
        """A policy without jitter."""
        self.policy = RetryPolicy(lambda: 0.0)

    def test_backoff(self) -> None:
        """It waits 1, 2 and 4 seconds, and then gives up."""
        delays = [self.policy.delay(Outcome(fault=_PASSING), True, attempts, 600.0) for attempts in (1, 2, 3, 4)]
        self.assertEqual(delays, [1.0, 2.0, 4.0, None])

    def test_jitter(self) -> None:
        """Chance stretches a delay by up to a fifth."""
        self.assertEqual(RetryPolicy(lambda: 0.5).delay(Outcome(fault=_PASSING), True, 1, 60.0), 1.1)

    def test_retry_after(self) -> None:
        """What the service asks for is honoured where it is longer."""
        asked = Outcome(fault=_PASSING, retry_after_seconds=7.0)
        self.assertEqual(self.policy.delay(asked, True, 1, 60.0), 7.0)

    def test_wall_clock(self) -> None:
        """A retry that would begin after the action's time is none."""
        self.assertIsNone(self.policy.delay(Outcome(fault=_PASSING, retry_after_seconds=61.0), True, 1, 60.0))

    def test_not_idempotent(self) -> None:
        """A request that left is never sent again where a second one could do harm."""
        self.assertIsNone(self.policy.delay(Outcome(fault=_PASSING), False, 1, 60.0))

    def test_not_idempotent_but_never_sent(self) -> None:
        """A request of which no byte left may be sent."""
        self.assertEqual(self.policy.delay(Outcome(fault=_PASSING, sent=False), False, 1, 60.0), 1.0)

    def test_lasting(self) -> None:
        """What will not pass is not tried again."""
        self.assertIsNone(self.policy.delay(Outcome(fault=_LASTING), True, 1, 60.0))

    def test_own_faults(self) -> None:
        """A retriable fault that is not of the network or the service is not tried again."""
        fault = Fault("resource_limit_exceeded", "slow", "sandbox", retriable=True)
        self.assertIsNone(self.policy.delay(Outcome(fault=fault), True, 1, 60.0))

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
