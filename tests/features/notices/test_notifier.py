"""From the record to the channels, over a real store."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import provider
from zope.interface.verify import verifyObject

from aileron.base.converter import to_json
from aileron.features.notices import rules
from aileron.features.notices._composer import MessageComposer
from aileron.features.notices._delivery import Undelivered
from aileron.features.notices._notifier import GATHER_SECONDS, Notifier
from aileron.features.notices._record_follower import MOST_BEHIND, ROW, _place
from aileron.features.notices.values import INotifier, Message
from aileron.model.audit import Event
from aileron.model.authority import PendingLimits
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import Run, RunState
from aileron.review import InboxGroup, ReviewWarning
from aileron.testing import (
    MemoryVault,
    RunsProxy,
    example_ask,
    example_event,
    example_run,
    example_session,
    example_transition,
    memory_store,
)

from .case import RULES, ScriptedChannel

NOW = 1_700_000_100.0
CANARY = "canary-argument"


@frozen
class JudgedRequest:
    """The review of a request, as far as it is told."""

    warnings: tuple[ReviewWarning, ...]
    title: str = f"Post {CANARY}"

    @property
    def group(self) -> InboxGroup:
        """Whether there is a warning."""
        return InboxGroup.LOOK_CLOSELY if self.warnings else InboxGroup.ROUTINE


class Unreadable(RunsProxy):
    """Runs of which somebody wrote nonsense into the rows."""

    async def get(self, run_id: str) -> Run | None:
        """See L{IRuns}."""
        raise ValueError(CANARY)

    async def list(self, query: RunQuery) -> Page[Run]:
        """See L{IRuns}."""
        raise ValueError(CANARY)

    async def count(self, query: RunQuery) -> int:
        """See L{IRuns}."""
        return 1


class NotifierCase(SynchronousTestCase):
    """A store, a vault, and two channels."""

    def setUp(self) -> None:
        """Nothing has happened yet."""
        self.clock = Clock()
        self.clock.advance(NOW)
        self.store = memory_store(self, self.clock)
        self.vault = MemoryVault()
        self.warnings: dict[str, tuple[ReviewWarning, ...]] = {}
        self.channels = [ScriptedChannel("one"), ScriptedChannel("two")]
        self.do(self.store.sessions.open(example_session(), b"t" * 32, b"g" * 32, ()))

    def do(self, work: Any) -> Any:
        """What an C{async def} returns, at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def life(self, *, contents: bool = False, runs: Any = None, public_urls: Collection[str] = ()) -> Notifier:
        """A notifier that has started; the test's end stops it."""
        store = self.store
        composer = MessageComposer(
            runs=runs or store.runs,
            sessions=store.sessions,
            vault=self.vault,
            clock=self.clock,
            ids=lambda: "message-1",
            operator_url=lambda: "http://localhost:7001",
            find_review=self.find_review,
            contents=contents,
            public_urls=public_urls,
        )
        notifier = Notifier(
            rules=RULES,
            audit=store.audit,
            watermarks=store.watermarks,
            composer=composer,
            clock=self.clock,
            channels=[each.channel() for each in self.channels],
        )
        self.do(notifier.start())
        self.addCleanup(notifier.stop)
        return notifier

    async def find_review(self, run_id: str) -> Any:
        """What there is to say of a request."""
        return JudgedRequest(self.warnings.get(run_id, ()))

    def ask(self, *run_ids: str, limits: PendingLimits | None = None) -> None:
        """Have runs asked for."""
        for run_id in run_ids:
            run = example_run(run_id, arguments={"text": CANARY})
            asked = example_transition(run, RunState.PENDING, ask=example_ask())
            event = example_event("approval.requested", run_id, {}, action=run.action, session_id=run.session_id)
            self.do(self.store.runs.receive(run, [evolve(asked, events=(event,))], limits or PendingLimits()))
        self.clock.advance(0)

    def withdraw(self, run_id: str) -> None:
        """Take one back."""
        run = self.do(self.store.runs.get(run_id))
        self.do(self.store.runs.apply(example_transition(run, RunState.CANCELLED, "run.cancelled")))

    def record(self, *events: Event) -> None:
        """Put something on record."""
        self.do(self.store.audit.append(*events))

    def wait(self, seconds: float = GATHER_SECONDS) -> None:
        """Let time pass, a tenth of a second at a time."""
        self.clock.pump([0.1] * (round(seconds * 10) + 1))

    def told(self, channel: int = 0) -> list[Message]:
        """What arrived."""
        return self.channels[channel].told


class LinkTests(NotifierCase):
    """Where messages lead."""

    def test_public(self) -> None:
        """If the inbox has a public name, messages lead there; the address on this machine is for the desktop alone."""
        self.life(public_urls={"https://phone.example.org"})
        self.ask("run-1")
        self.wait()
        (message,) = self.told()
        self.assertEqual(message.url, "https://phone.example.org/approvals/run-1")
        self.assertEqual(message.desk_url, "http://localhost:7001/approvals/run-1")
        self.assertNotIn("localhost", json.dumps(to_json(message)))
        self.ask("run-2", "run-3")
        self.wait(1000)
        self.assertEqual(self.told()[-1].url, "https://phone.example.org/approvals")

    def test_at_the_desk(self) -> None:
        """Without one they lead to the desk."""
        self.life()
        self.ask("run-1")
        self.wait()
        (message,) = self.told()
        self.assertEqual(message.url, message.desk_url)


class NotifierTests(NotifierCase):
    """What is told, and how often."""

    def test_burst(self) -> None:
        """A burst of approvals is one message by every channel, without a word of their arguments; a flood is told."""
        self.assertTrue(verifyObject(INotifier, self.life()))
        self.ask(*(f"run-{number}" for number in range(7)))
        self.wait()
        for channel in (0, 1):
            (message,) = self.told(channel)
            self.assertEqual(message.title, "Aileron: 7 requests are waiting for your approval")
            self.assertEqual(message.url, "http://localhost:7001/approvals")
            self.assertIn("claude", message.lines[0])
            self.assertRegex(message.lines[1], "^7 pending approvals in total, the oldest for 1 min.$")
            self.assertNotIn(CANARY, json.dumps(to_json(message)) + repr(message))
        self.wait(1000)
        self.assertEqual(len(self.told()), 1)
        self.ask(*(f"flood-{number}" for number in range(12)))
        self.wait()
        self.assertEqual(self.told()[1].notices[0].rule, rules.FLOOD)

    def test_told_besides(self) -> None:
        """Where the operator wants contents told they are; that the vault is locked is said."""
        self.vault.lock()
        self.life(contents=True)
        self.ask("run-1")
        self.wait()
        (message,) = self.told()
        self.assertEqual(message.contents, (f"Post {CANARY}", 'ship-update: {"text": "canary-argument"}'))
        self.assertEqual(message.title, "Aileron: ship-update is waiting for your approval")
        self.assertEqual(message.subject, f"Aileron: Post {CANARY}")
        self.assertEqual(to_json(message.notices[0])["group"], "routine")
        self.assertIn("The vault is locked", message.lines[-1])

    def test_warned(self) -> None:
        """The labels of the warnings are told; their sentences, which quote the call, only with contents."""
        quoted = f"“{CANARY}” notifies a group of people, perhaps everybody."
        self.warnings["run-1"] = (ReviewWarning.of("markup", quoted, "/run/arguments/text"),)
        self.life()
        self.ask("run-1", "run-2")
        self.wait()
        (message,) = self.told()
        self.assertIn("Look closely: Mention or image.", message.lines[0])
        self.assertNotIn(CANARY, json.dumps(to_json(message)) + repr(message))

    def test_warned_in_full(self) -> None:
        """Where contents are told, so are the warnings' sentences."""
        self.warnings["run-1"] = (ReviewWarning.of("first", "First time this action runs."),)
        self.life(contents=True)
        self.ask("run-1")
        self.wait()
        (message,) = self.told()
        self.assertEqual(message.contents[2:], ("ship-update: First time this action runs.",))
        self.assertEqual(to_json(message.notices[0])["warnings"], ["First time"])

    def test_over_by_then(self) -> None:
        """What was decided or withdrawn before it could be told is not told."""
        self.life()
        self.ask("run-1", "run-2")
        self.withdraw("run-1")
        self.wait()
        self.assertEqual([each.run_id for each in self.told()[0].notices], ["run-2"])
        self.assertEqual(self.told()[0].url, "http://localhost:7001/approvals/run-2")
        self.ask("run-3")
        self.withdraw("run-3")
        self.wait(400)
        self.assertEqual(len(self.told()), 1)

    def test_of_home(self) -> None:
        """What concerns no run is told: tampering, a stopped session, a pause, in the order of how bad they are."""
        self.life()
        self.record(
            example_event("pause.begun", payload={"reason": "lunch"}),
            example_event("session.broken", payload={"why": "Too many denials."}, session_id="session-1"),
            example_event("tamper.detected", payload={"found": "The vault was put back."}),
            example_event("session.started"),
        )
        self.wait()
        (message,) = self.told()
        kinds = [each.rule for each in message.notices]
        self.assertEqual(kinds, [rules.TAMPER, rules.BROKEN, rules.PAUSED])
        self.assertTrue(message.urgent)

    def test_one_fails(self) -> None:
        """One channel that fails keeps nothing from the other, and its state says why."""
        self.channels[0].answers = [Undelivered("It answered 500.")] * 4
        notifier = self.life()
        self.ask("run-1")
        self.wait(100)
        self.assertEqual((len(self.told(0)), len(self.told(1))), (0, 1))
        broken, sound = notifier.channels()
        self.assertEqual((broken.failed, broken.problem, sound.sent), (1, "It answered 500.", 1))

    def test_unreadable(self) -> None:
        """A row that was made unreadable silences nothing: what it would have added is left out, and is in no log."""
        heard: list[str] = []

        @provider(ILogObserver)
        def observer(event: LogEvent) -> None:
            heard.append(formatEvent(event))

        globalLogPublisher.addObserver(observer)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        self.life(runs=Unreadable(self.store.runs), contents=True)
        self.ask("run-1")
        self.record(example_event("tamper.detected", "run-1", {"found": "A row."}))
        self.wait()
        (message,) = self.told()
        self.assertEqual({each.rule for each in message.notices}, {rules.TAMPER, rules.APPROVAL})
        self.assertIn("ValueError", "".join(heard))
        self.assertNotIn(CANARY, "".join(heard))

    def test_test(self) -> None:
        """A test is sent by every channel at once, by one attempt, whatever else waits."""
        self.channels[0].answers = [Undelivered("It answered 500.")]
        broken, sound = self.do(self.life().test())
        self.assertEqual((broken.problem, sound.problem, len(self.told(1))), ("It answered 500.", None, 1))
        self.assertEqual(self.told(1)[0].title, "Aileron: this is a test")

    def test_no_channel(self) -> None:
        """Without a channel nothing is read, written or waited for."""
        self.channels = []
        self.life()
        self.ask("run-1")
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertNotIn(ROW, self.do(self.store.watermarks.all()))

    def test_stopped(self) -> None:
        """After the end nothing is told, and nothing is left behind."""
        notifier = self.life()
        self.ask("run-1")
        notifier.stop()
        self.wait(1000)
        self.assertEqual((self.told(), self.clock.getDelayedCalls()), ([], []))


class RestartTests(NotifierCase):
    """What is told once is told once."""

    def test_told_once(self) -> None:
        """What arrived is not told after a restart, what had not yet been said is."""
        notifier = self.life()
        self.ask("run-1")
        self.wait()
        self.ask("run-2")
        notifier.stop()
        self.life()
        self.wait()
        self.assertEqual([[each.run_id for each in told.notices] for told in self.told()], [["run-1"], ["run-2"]])

    def test_before_it_arrived(self) -> None:
        """What had arrived nowhere, and not been given up by all, when the daemon ended is told after the restart."""
        away, locked = Undelivered("Away."), Undelivered("The vault is locked.", again=False)
        for number, (one, two, told) in enumerate(((away, away, 1), (locked, away, 1), (locked, locked, 0))):
            self.channels = [ScriptedChannel("one", answers=[one]), ScriptedChannel("two", answers=[two])]
            notifier = self.life()
            self.ask(f"run-{number}")
            self.wait()
            notifier.stop()
            notifier = self.life()
            self.wait(30)
            notifier.stop()
            self.assertEqual((len(self.told(0)), len(self.told(1))), (told, told))

    def test_first(self) -> None:
        """Whoever turns notifications on is told from then on, not of the past."""
        self.ask("run-1")
        self.life()
        self.wait()
        self.assertEqual(self.told(), [])
        self.ask("run-2")
        self.wait()
        self.assertEqual(len(self.told()), 1)

    def test_place(self) -> None:
        """A row that lies beyond the record's end, far behind it, or says nothing, does no harm."""
        for written, end, place in (
            ("7", 9, 7),
            ("12", 9, 9),
            (None, 9, 9),
            ("x", 9, 9),
            ("9" * 50, 9, 9),
            ("1", 1 + 2 * MOST_BEHIND, 1 + MOST_BEHIND),
        ):
            self.assertEqual(_place(written, end), place)
