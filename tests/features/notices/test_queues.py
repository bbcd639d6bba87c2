"""When it is told, and how often it is tried: bursts together, ever slower, and what becomes of each message."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.notices import rules
from aileron.features.notices._delivery import ATTEMPT_SECONDS, MOST_WAITING, DeliveryQueue, Undelivered
from aileron.features.notices._delivery import PAUSES_SECONDS as ATTEMPT_PAUSES_SECONDS
from aileron.features.notices._notifier import GATHER_SECONDS, MOST_NOTICES, PAUSES_SECONDS, Coalescer
from aileron.features.notices.values import Notice

from .case import ScriptedChannel, message, notice


class CoalescerTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Nothing was told yet."""
        self.clock = Clock()
        self.told: list[tuple[int, int]] = []
        self.last: Sequence[Notice] = ()
        self.coalescer = Coalescer(self.clock, self.tell)

    def tell(self, notices: Sequence[Notice], more: int) -> None:
        """Note how many there were, and what."""
        self.told.append((len(notices), more))
        self.last = notices

    def test_burst(self) -> None:
        """What comes within two seconds is one message, the same notice told once, and none comes before."""
        for number in (*range(7), 6):
            self.coalescer.add(notice(number=number))
        self.clock.advance(GATHER_SECONDS - 0.1)
        self.assertEqual(self.told, [])
        self.clock.advance(1000)
        self.assertEqual(self.told, [(7, 0)])

    def test_slower(self) -> None:
        """While it goes on and on messages come ever slower, five minutes apart in the end."""
        moments: list[float] = []
        for second in range(1500):
            self.coalescer.add(notice(number=second))
            before = len(self.told)
            self.clock.advance(1)
            if len(self.told) > before:
                moments.append(self.clock.seconds())
        apart = [late - soon for soon, late in itertools.pairwise(moments)]
        self.assertEqual(apart[: len(PAUSES_SECONDS)], list(PAUSES_SECONDS))
        self.assertEqual(set(apart[len(PAUSES_SECONDS) :]), {PAUSES_SECONDS[-1]})

    def test_quiet(self) -> None:
        """After a quiet time the next is told at once again."""
        for number in (1, 2, 3):
            self.coalescer.add(notice(number=number))
            self.clock.pump((GATHER_SECONDS, 700))
        self.coalescer.add(notice(number=4))
        self.clock.advance(GATHER_SECONDS)
        self.assertEqual(len(self.told), 4)

    def test_urgent(self) -> None:
        """What is wrong does not wait for as long as questions do."""
        for number in range(6):
            self.coalescer.add(notice(number=number))
            while len(self.told) == number:
                self.clock.advance(1)
        before = len(self.told)
        self.coalescer.add(notice(number=8))
        self.clock.pump([1.0] * int(PAUSES_SECONDS[0]))
        self.assertEqual(len(self.told), before)
        self.coalescer.add(notice(rules.TAMPER))
        self.clock.advance(GATHER_SECONDS)
        self.assertEqual(len(self.told), before + 1)
        self.assertEqual([each.rule for each in self.last], [rules.APPROVAL, rules.TAMPER])

    def test_too_many(self) -> None:
        """Of more than fit the number alone is kept, but what is wrong takes a place."""
        for number in range(MOST_NOTICES + 10):
            self.coalescer.add(notice(number=number))
        self.coalescer.add(notice(rules.TAMPER))
        self.clock.advance(GATHER_SECONDS)
        self.assertEqual(self.told, [(MOST_NOTICES, 11)])
        self.assertIs(self.last[-1].rule, rules.TAMPER)


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
        self.clock.advance(ATTEMPT_PAUSES_SECONDS[0])
        self.clock.advance(ATTEMPT_PAUSES_SECONDS[1])
        self.assertEqual(self.told(), ["message-1", "message-2"])
        self.assertIsNone(self.queue.state.problem)

    def test_given_up(self) -> None:
        """After four attempts one is given up, and counted; the next gets its chance."""
        self.channel.answers = [Undelivered("No.")] * 4
        self.put(1, 2)
        for pause in ATTEMPT_PAUSES_SECONDS:
            self.clock.advance(pause)
        self.assertEqual((self.told(), self.done), (["message-2"], [False, True]))
        self.assertEqual((self.queue.state.failed, self.channel.attempts), (1, 5))

    def test_problems(self) -> None:
        """Why an attempt failed is kept, but no words of a library; a hopeless one is the last."""
        secret = ValueError("https://user:canary@example.com")
        for answer, problem, attempts in (
            (Undelivered("The vault is locked.", again=False), "The vault is locked.", 1),
            (secret, "It failed (ValueError).", 2),
            (Deferred(), f"No response within {ATTEMPT_SECONDS:g} s.", 2),
        ):
            self.begin()
            self.channel.answers = [answer]
            self.put(1)
            self.clock.advance(ATTEMPT_SECONDS if isinstance(answer, Deferred) else 0)
            self.assertEqual(self.queue.state.problem, problem)
            self.clock.advance(ATTEMPT_PAUSES_SECONDS[0])
            self.assertEqual((self.channel.attempts, self.done), (attempts, [attempts == 2]))
        self.assertNotIn("canary", str(self.flushLoggedErrors()))

    def test_too_many(self) -> None:
        """Where too many wait the oldest are given up."""
        self.channel.answers = [Undelivered("No.")]
        self.put(*range(MOST_WAITING + 3))
        self.assertEqual(self.done, [False] * 3)
        self.clock.advance(ATTEMPT_PAUSES_SECONDS[0])
        self.assertEqual((self.told()[-1], len(self.done)), (f"message-{MOST_WAITING + 2}", MOST_WAITING + 3))

    def test_stopped(self) -> None:
        """After the end nothing is tried any more, and nothing is said to have arrived."""
        self.channel.answers = [Undelivered("No.")]
        self.put(1, 2)
        self.queue.stop()
        self.clock.advance(1000)
        self.assertEqual((self.told(), self.done, self.clock.getDelayedCalls()), ([], [], []))
