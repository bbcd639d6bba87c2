"""What the relay tells is counted, by provider and by session, and never in its way."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from hashlib import sha256

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.features.gateway._body_sample import PLAIN_BYTES
from aileron.features.gateway._tally import MOST_PACKED, MOST_UNREAD, Tally
from aileron.features.gateway.interfaces import IMeter, IMeters, ITotals
from aileron.features.gateway.values import ANTHROPIC, OPENAI, Ending, Provider, Traffic
from aileron.model.usage import Usage
from tests.features.gateway import answers
from tests.features.gateway.test_usage import CHAT, MANY


class TallyCase(SynchronousTestCase):
    """A tally whose clock and idle moments the test gives."""

    def setUp(self) -> None:
        """Begin at nought."""
        self.clock = Clock()
        self.clock.advance(1000)
        self.waiting: list[Callable[[], None]] = []
        self.noted: list[tuple[str, str | None, Usage | None]] = []
        self.tally = self.made()

    def made(self, *, reads: bool = True) -> Tally:
        """A tally that notes where the test looks."""
        later = self.waiting.append
        return Tally(self.clock.seconds, later, lambda *call: self.noted.append(call), reads=reads)

    def call(
        self,
        body: bytes = b"",
        *,
        head: bytes | None = None,
        code: int = 200,
        session: str | None = None,
        provider: Provider = OPENAI,
        inference: bool = True,
        ending: Ending = Ending.COMPLETE,
    ) -> None:
        """One exchange from beginning to end."""
        meter = self.tally.begin(provider, session, inference, b"/v1/chat/completions")
        meter.sent()
        meter.arrived()
        meter.answered(code, head or answers.head())
        meter.passed(body)
        meter.ended(ending, 0)

    def idle(self) -> int:
        """Let everything happen that waits, and say how much that was."""
        count = 0
        while self.waiting:
            self.waiting.pop(0)()
            count += 1
        return count

    def traffic(self, provider: Provider = OPENAI) -> Traffic:
        """The provider's numbers now."""
        return self.tally.snapshot().providers[provider.name]


class CountingTests(TallyCase):
    """Numbers of exchanges."""

    def test_interfaces(self) -> None:
        """It is what the relay and the API expect."""
        for interface in (IMeters, ITotals):
            self.assertTrue(verifyObject(interface, self.tally))
        self.assertTrue(verifyObject(IMeter, self.tally.begin(OPENAI, None, True, b"/v1/responses")))

    def test_providers(self) -> None:
        """Before the first call there is nothing; then each provider has its own numbers, as they were when asked."""
        self.assertEqual(self.tally.snapshot().providers, {})
        self.call()
        before = self.traffic()
        self.call()
        self.call(provider=ANTHROPIC)
        self.assertEqual([before.begun, self.traffic().begun, self.traffic(ANTHROPIC).begun], [1, 2, 1])

    def test_answers(self) -> None:
        """Answers are counted by class, where none came as none, and by their endings; what has none is under way."""
        for code in (200, 201, 404, 429, 503, 599, 304):
            self.call(code=code)
        self.tally.begin(OPENAI, None, True, b"/v1/responses").ended(Ending.UNREACHABLE, 0)
        self.assertEqual(self.traffic().answers, {"none": 1, "1xx": 0, "2xx": 2, "3xx": 1, "4xx": 2, "5xx": 2})
        for ending in Ending:
            self.call(provider=ANTHROPIC, ending=ending)
        self.call(provider=ANTHROPIC, ending=Ending.CUT)
        self.tally.begin(ANTHROPIC, None, True, b"/v1/messages")
        traffic = self.traffic(ANTHROPIC)
        self.assertEqual(traffic.endings, {**dict.fromkeys(Ending, 1), Ending.CUT: 2})
        self.assertEqual((traffic.begun, traffic.under_way), (len(Ending) + 2, 1))

    def test_bytes(self) -> None:
        """Bodies are counted both ways, at the end."""
        meter = self.tally.begin(OPENAI, None, False, b"/v1/models")
        meter.answered(200, answers.head())
        meter.passed(b"12345")
        meter.passed(b"678")
        self.assertEqual(self.traffic().received_bytes, 0)
        meter.ended(Ending.COMPLETE, 7)
        self.assertEqual((self.traffic().sent_bytes, self.traffic().received_bytes), (7, 8))


class TimeTests(TallyCase):
    """How long things took."""

    def timed(self, *seconds: float, replayed: float = 0.0, arrived: bool = True) -> Traffic:
        """One exchange with so many seconds before each word of the relay."""
        meter = self.tally.begin(OPENAI, None, True, b"/v1/responses")
        self.clock.advance(seconds[0])
        meter.sent()
        if replayed:
            self.clock.advance(replayed)
            meter.sent()
        self.clock.advance(seconds[1])
        if arrived:
            meter.arrived()
        self.clock.advance(seconds[2])
        meter.answered(200, answers.head())
        self.clock.advance(seconds[3])
        meter.ended(Ending.COMPLETE, 0)
        return self.traffic()

    def test_waits(self) -> None:
        """First byte, the whole, and what we added to the first byte are told apart."""
        traffic = self.timed(0.002, 3, 0.004, 50)
        self.assertAlmostEqual(traffic.first_byte.seconds, 3.006)
        self.assertAlmostEqual(traffic.added.seconds, 0.006)
        self.assertAlmostEqual(traffic.whole.seconds, 53.006)

    def test_added(self) -> None:
        """What a replay cost was added by us; where the answer's arrival is not told, the way there counts alone."""
        self.assertAlmostEqual(self.timed(0.001, 1, 0, 0, replayed=0.5).added.seconds, 0.501)
        self.assertAlmostEqual(self.timed(0.001, 1, 0, 0, arrived=False).added.seconds, 0.502)

    def test_buckets(self) -> None:
        """A wait is counted at the first bound that it does not exceed, and beyond the last one last."""
        traffic = self.timed(0.0, 5.0, 0.0, 7000)
        self.assertEqual(traffic.first_byte.counts[traffic.first_byte.bounds.index(5.0)], 1)
        self.assertEqual(traffic.added.counts[0], 1)
        self.assertEqual(traffic.whole.counts[-1], 1)
        for histogram in (traffic.first_byte, traffic.added, traffic.whole):
            self.assertEqual(sum(histogram.counts), 1)
            self.assertEqual(list(histogram.bounds), sorted(histogram.bounds))
            self.assertEqual(len(histogram.counts), len(histogram.bounds) + 1)

    def test_refused(self) -> None:
        """An answer of ours has no first byte of a provider."""
        meter = self.tally.begin(OPENAI, None, True, b"/v1/responses")
        meter.answered(403, b"")
        meter.ended(Ending.REFUSED, 0)
        traffic = self.traffic()
        self.assertEqual((sum(traffic.first_byte.counts), sum(traffic.added.counts)), (0, 0))
        self.assertEqual((sum(traffic.whole.counts), traffic.answers["4xx"]), (1, 1))


class NotingTests(TallyCase):
    """What is noted of a call, for its session and day."""

    def test_session(self) -> None:
        """A session's call is noted once, when its answer was read, under its provider; never within the exchange."""
        self.call(answers.chat(), session="a")
        self.call(answers.chat(), session="b", provider=ANTHROPIC)
        self.assertEqual(self.noted, [])
        self.idle()
        self.assertEqual(self.noted, [("openai", "a", CHAT), ("anthropic", "b", CHAT)])

    def test_no_session(self) -> None:
        """Of a call without a session only what it used is noted."""
        self.call(answers.chat())
        self.call(b"{}")
        self.call(code=429)
        self.idle()
        self.assertEqual(self.noted, [("openai", None, CHAT)])

    def test_nothing_used(self) -> None:
        """A session's call that was refused, failed, asked no model or told nothing is noted without usage."""
        self.call(code=429, session="a")
        self.call(answers.chat(), session="a", inference=False)
        self.call(ending=Ending.REFUSED, code=403, session="a")
        self.tally.begin(OPENAI, "a", True, b"/v1/responses").ended(Ending.UNREACHABLE, 0)
        self.call(b"{}", session="a")
        self.idle()
        self.assertEqual(self.noted, [("openai", "a", None)] * 5)

    def test_crowd(self) -> None:
        """Calls whose answers come too fast to be read are noted as well, each once, without usage."""
        meter = self.tally.begin(OPENAI, "late", True, b"/v1/responses")
        meter.answered(200, answers.head())
        for _ in range(MOST_UNREAD + 1):
            self.call(answers.chat(), session="a")
        meter.ended(Ending.COMPLETE, 0)
        self.assertEqual(self.noted, [("openai", "a", None), ("openai", "late", None)])
        self.idle()
        self.assertEqual(len(self.noted), MOST_UNREAD + 2)

    def test_read_rest(self) -> None:
        """At the end of the relay all that waits is read at once, and nothing of it a second time."""
        for _ in range(3):
            self.call(answers.chat(), session="a")
        self.tally.reading.read_rest()
        self.assertEqual(self.noted, [("openai", "a", CHAT)] * 3)
        self.idle()
        self.assertEqual((len(self.noted), self.traffic().told), (3, 3))

    def test_cost(self) -> None:
        """Costs are added up; the sum is that of the answers that told one."""
        told = answers.chat().replace(b'"total_tokens":154', b'"cost":0.25,"total_tokens":154')
        self.assertIn(b"0.25", told)
        for body in (answers.chat(), told, told):
            self.call(body)
        self.idle()
        self.assertEqual(self.traffic().usage, Usage(360, 102, 300, 500_000))


class ReadingTests(TallyCase):
    """Tokens."""

    def test_later(self) -> None:
        """An answer is read after its end, when nothing is in the way, one at a time."""
        for _ in range(3):
            self.call(answers.chat())
        self.assertEqual((self.traffic().told, len(self.waiting)), (0, 1))
        self.waiting.pop()()
        self.assertEqual((self.traffic().usage, self.traffic().told, len(self.waiting)), (CHAT, 1, 1))
        self.assertEqual((self.idle(), self.traffic().told), (2, 3))

    def test_streamed(self) -> None:
        """An answer that comes in many pieces is read as well."""
        meter = self.tally.begin(ANTHROPIC, None, True, b"/v1/messages")
        meter.answered(200, answers.head("Transfer-Encoding: chunked", streamed=True))
        body = answers.chunked(answers.messages_stream(MANY), 150)
        for start in range(0, len(body), 160):
            meter.passed(body[start : start + 160])
        meter.ended(Ending.COMPLETE, 0)
        self.idle()
        traffic = self.traffic(ANTHROPIC)
        self.assertEqual((traffic.usage, traffic.received_bytes), (Usage(3210, 89, 3000), len(body)))

    def test_cut(self) -> None:
        """A stream that was cut has cost what it told until then."""
        self.call(answers.messages_stream()[:600], head=answers.head(streamed=True), ending=Ending.CLIENT_LEFT)
        self.idle()
        self.assertEqual(self.traffic().usage, Usage(3210, 1, 3000))

    def test_which(self) -> None:
        """Only an answer 200 of a route of inference is read; one that tells nothing, or cannot be read, is missed."""
        self.call(answers.chat(), code=201)
        self.call(answers.chat(), code=400)
        self.call(answers.chat(), inference=False)
        self.tally.begin(OPENAI, None, True, b"/v1/responses").ended(Ending.UNREACHABLE, 0)
        self.assertEqual((self.idle(), self.traffic().told, self.traffic().untold), (0, 0, 0))
        self.call(b"{}")
        self.call(answers.chat(), head=answers.head("Content-Encoding: br"))
        self.assertEqual((self.idle(), self.traffic().told, self.traffic().untold), (2, 0, 2))

    def test_off(self) -> None:
        """Where it is switched off, no answer is kept or read; the rest is counted."""
        self.tally = self.made(reads=False)
        self.call(answers.chat())
        traffic = self.traffic()
        self.assertEqual((self.idle(), traffic.begun, traffic.told, traffic.untold), (0, 1, 0, 0))
        self.assertEqual(traffic.received_bytes, len(answers.chat()))

    def test_crowd(self) -> None:
        """Of answers that come faster than they can be read, those beyond a bound are given up."""
        for _ in range(MOST_UNREAD + 5):
            self.call(answers.chat())
        self.assertEqual(self.traffic().untold, 5)
        self.idle()
        self.assertEqual((self.traffic().told, self.traffic().untold), (MOST_UNREAD, 5))

    def test_crowd_of_long_ones(self) -> None:
        """Long copies that are given up make way for others."""
        for _ in range(MOST_UNREAD):
            self.call(answers.chat())
        for _ in range(MOST_PACKED):
            self.call_at_length()
        self.idle()
        self.call_at_length()
        self.idle()
        self.assertEqual((self.traffic().told, self.traffic().untold), (MOST_UNREAD + 1, MOST_PACKED))

    def call_at_length(self) -> None:
        """An exchange whose answer is long and compressed."""
        noise = "".join(sha256(b"%d" % number).hexdigest() for number in range(1000))
        packed = gzip.compress(answers.chat(noise), 1)
        self.assertGreater(len(packed), PLAIN_BYTES)
        self.call(packed, head=answers.head("Content-Encoding: gzip"))

    def test_nothing_stays(self) -> None:
        """After the reading nothing of an answer is left in what counts, and nothing of it is ever shown."""
        meter = self.tally.begin(OPENAI, None, True, b"/v1/responses")
        meter.answered(200, answers.head())
        meter.passed(answers.chat("canary"))
        meter.ended(Ending.COMPLETE, 0)
        self.assertNotIn("canary", repr((self.tally, meter, self.waiting)))
        queue = self.tally.reading._queue
        copy = queue[0][0]
        self.assertIn(b"canary", copy.room)
        self.idle()
        self.assertEqual((copy.room, len(queue), meter._copy), (bytearray(), 0, None))  # type: ignore[attr-defined]
