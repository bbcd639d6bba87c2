"""Messages on their way."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.notices import Undelivered
from aileron.notices._delivery import ATTEMPT_SECONDS, MOST_WAITING, PAUSES_SECONDS, DeliveryQueue

from .case import ScriptedChannel, message


class DeliveryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Have an idle channel."""
        self.clock = Clock()
        self.channel = ScriptedChannel()
        self.queue = DeliveryQueue(self.channel.channel(), self.clock)
        self.done: list[bool] = []

    def put(self, *numbers: int) -> None:
        """Have messages delivered."""
        for number in numbers:
            self.queue.put(message(number), self.done.append)

    def told(self) -> list[str]:
        """What arrived."""
        return [each.id for each in self.channel.told]

    def test_arrives(self) -> None:
        """Messages arrive in their order, and that is counted."""
        self.put(1, 2)
        self.assertEqual((self.told(), self.done), (["message-1", "message-2"], [True, True]))
        state = self.queue.state
        self.assertEqual((state.sent, state.failed, state.waiting, state.problem), (2, 0, 0, None))

    def test_tried_again(self) -> None:
        """What did not arrive is tried again after a while; what follows waits for it."""
        self.channel.answers = [Undelivered("It answered 500.")] * 2
        self.put(1, 2)
        state = self.queue.state
        self.assertEqual((self.told(), state.waiting, state.problem), ([], 2, "It answered 500."))
        self.clock.advance(PAUSES_SECONDS[0])
        self.clock.advance(PAUSES_SECONDS[1])
        self.assertEqual(self.told(), ["message-1", "message-2"])
        self.assertIsNone(self.queue.state.problem)

    def test_given_up(self) -> None:
        """After four attempts one is given up, and counted; the next gets its chance."""
        self.channel.answers = [Undelivered("No.")] * 4
        self.put(1, 2)
        for pause in PAUSES_SECONDS:
            self.clock.advance(pause)
        self.assertEqual((self.told(), self.done), (["message-2"], [False, True]))
        self.assertEqual((self.queue.state.failed, self.channel.attempts), (1, 5))

    def test_problems(self) -> None:
        """Why an attempt failed is kept, but no words of a library; a hopeless one is the last."""
        secret = ValueError("https://user:canary@example.com")
        for answer, problem, attempts in (
            (Undelivered("The vault is locked.", again=False), "The vault is locked.", 1),
            (secret, "It failed (ValueError).", 2),
            (Deferred(), f"It did not answer within {ATTEMPT_SECONDS:g} s.", 2),
        ):
            self.begin()
            self.channel.answers = [answer]
            self.put(1)
            self.clock.advance(ATTEMPT_SECONDS if isinstance(answer, Deferred) else 0)
            self.assertEqual(self.queue.state.problem, problem)
            self.clock.advance(PAUSES_SECONDS[0])
            self.assertEqual((self.channel.attempts, self.done), (attempts, [attempts == 2]))
        self.assertNotIn("canary", str(self.flushLoggedErrors()))

    def test_too_many(self) -> None:
        """Where too many wait the oldest are given up."""
        self.channel.answers = [Undelivered("No.")]
        self.put(*range(MOST_WAITING + 3))
        self.assertEqual(self.done, [False] * 3)
        self.clock.advance(PAUSES_SECONDS[0])
        self.assertEqual((self.told()[-1], len(self.done)), (f"message-{MOST_WAITING + 2}", MOST_WAITING + 3))

    def test_attempt(self) -> None:
        """One attempt is one attempt."""
        self.channel.answers = [Undelivered("No.")]
        failed, again = (Deferred.fromCoroutine(self.queue.attempt(message())) for _ in range(2))
        self.assertEqual(self.successResultOf(failed).problem, "No.")  # type: ignore[union-attr]
        self.assertIsNone(self.successResultOf(again))
        self.assertEqual(self.channel.attempts, 2)

    def test_stopped(self) -> None:
        """After the end nothing is tried any more, and nothing is said to have arrived."""
        self.channel.answers = [Undelivered("No.")]
        self.put(1, 2)
        self.queue.stop()
        self.clock.advance(1000)
        self.assertEqual((self.told(), self.done, self.clock.getDelayedCalls()), ([], [], []))
