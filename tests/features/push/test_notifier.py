"""From the store to the browsers: what each is told, how often, and what takes it back."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.connectors import AddressRefused, Flight, OutgoingRequest, ServiceAnswer, ServiceUnreachable
from aileron.features.push._browsers import PushBrowsers
from aileron.features.push._delivery import PAUSES_SECONDS, RETRY_SECONDS, BrowserDelivery
from aileron.features.push._notifier import GATHER_SECONDS, ROW, PendingCounter, PushNotifier
from aileron.features.push._sender import PushSender
from aileron.features.push.values import KEY, MOST_BROWSERS
from aileron.model.audit import DAEMON
from aileron.model.authority import PendingLimits
from aileron.model.errors import Conflict, InvalidRequest, LimitExceeded, NotFound, VaultLocked
from aileron.model.queries import AuditQuery
from aileron.model.runs import RunState
from aileron.model.vault import VaultState
from aileron.testing import (
    MemoryBindings,
    MemoryVault,
    example_ask,
    example_event,
    example_run,
    example_session,
    example_transition,
    memory_store,
)

from .case import BrowserDouble, ServiceDouble, identified

NOW = 1_700_000_100.0
CANARY = "canary-argument"
_ACCEPTED = ServiceAnswer(201, {}, b"")


class PushCase(SynchronousTestCase):
    """A store, a vault, and push services that decrypt."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(NOW)
        self.store = memory_store(self, self.clock)
        self.vault = MemoryVault()
        self.bindings = MemoryBindings(self.vault)
        self.doubles: dict[str, BrowserDouble] = {}
        self.service = ServiceDouble(self.doubles)
        self.do(self.store.sessions.open(example_session(), b"t" * 32, b"g" * 32, ()))
        self.notifier = self.life()

    def do(self, work: Any) -> Any:
        """What an C{async def} returns, at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def fails(self, work: Any, *errors: type[Exception]) -> Any:
        """How an C{async def} fails, at once."""
        return self.failureResultOf(Deferred.fromCoroutine(work), *errors).value

    def life(self) -> PushNotifier:
        """A notifier that has started; the test's end stops it."""
        self.deliveries: dict[str, BrowserDelivery] = {}
        ids, audit = lambda: secrets.token_hex(13), self.store.audit
        self.browsers = PushBrowsers(self.bindings, audit, self.clock, ids, self.deliveries)
        notifier = PushNotifier(
            audit=self.store.audit,
            watermarks=self.store.watermarks,
            counter=PendingCounter(self.store.runs, self.store.snoozes.all, self.clock),
            browsers=self.browsers,
            sender=PushSender(post=self.post, clock=self.clock, randomness=secrets.token_bytes),
            deliveries=self.deliveries,
            clock=self.clock,
        )
        self.do(notifier.start())
        self.addCleanup(notifier.stop)
        return notifier

    def post(self, request: OutgoingRequest, _flight: Flight) -> Deferred[ServiceAnswer]:
        """Hand a request to its service."""
        said = self.service.answers.pop(0) if self.service.answers else _ACCEPTED
        if isinstance(said, Exception):
            return fail(said)
        if isinstance(said, Deferred):
            return said
        if said.status < 300:
            assert request.body is not None
            self.service.take(request.url, request.headers, request.body, self.clock.seconds())
        self.assertFalse(request.private_network)
        return succeed(said)

    def register(self, number: int = 1, name: str = "Chrome on Android") -> str:
        """Register a browser; its id. It knows of what is pending now."""
        double = BrowserDouble(f"https://push.example/send/{number}")
        self.doubles[double.endpoint] = double
        made = self.do(self.browsers.register(double.told(), name, DAEMON))
        self.wait()
        return str(made.id)

    def ask(self, *run_ids: str, **ask: Any) -> None:
        """Have runs asked for."""
        for run_id in run_ids:
            run = example_run(run_id, arguments={"text": CANARY})
            asked = example_transition(run, RunState.PENDING, ask=example_ask(**ask))
            event = example_event("approval.requested", run_id, {}, action=run.action, session_id=run.session_id)
            self.do(self.store.runs.receive(run, [evolve(asked, events=(event,))], PendingLimits(1000, 1000, 1000)))
        self.clock.advance(0)

    def withdraw(self, run_id: str) -> None:
        """Take one back."""
        run = self.do(self.store.runs.get(run_id))
        self.do(self.store.runs.apply(example_transition(run, RunState.CANCELLED, "run.cancelled")))

    def wait(self, seconds: float = GATHER_SECONDS + 0.5) -> None:
        """Let time pass, in small steps."""
        step = 0.1 if seconds < 20 else 0.5
        self.clock.pump([step] * (round(seconds / step) + 1))

    def events(self, type_: str) -> list[Mapping[str, Any]]:
        """The payloads of events, oldest first."""
        found = self.do(self.store.audit.list(AuditQuery(types=(type_,)))).items
        return [each.event.payload for each in reversed(found)]


class ToldTests(PushCase):
    """What browsers are told."""

    def test_told(self) -> None:
        """New requests are one message to each browser: an id and a number, of one size, urgent, for the time left."""
        ids = [self.register(1), self.register(2)]
        self.ask("run-1", "run-2", expires_at=utc(NOW) + timedelta(minutes=30))
        self.wait()
        self.assertEqual(sorted(url[-1] for url, _, _ in self.service.received), ["1", "2"])
        for _, headers, text in self.service.received:
            self.assertEqual(text, {"id": "run-2", "n": 2})
            self.assertEqual(headers["Urgency"], "high")
            self.assertTrue(1700 < int(headers["TTL"]) <= 1800, headers)
            self.assertNotIn(CANARY, json.dumps(headers))
        self.assertEqual((len(self.service.keys), self.service.sizes), (1, {615}))
        self.assertEqual({each.id for each in self.browsers.list()}, set(ids))
        self.assertEqual({each.problem for each in self.browsers.list()}, {None})
        self.assertNotIn(None, {each.sent_at for each in self.browsers.list()})
        self.wait(700)
        self.assertEqual(len(self.service.received), 2)

    def test_withdrawn(self) -> None:
        """A decision elsewhere is told by the number that is left, without waking the device; none left is 0."""
        self.register()
        self.ask("run-1", "run-2")
        self.wait()
        self.withdraw("run-2")
        self.wait(PAUSES_SECONDS[0] + 3)
        self.withdraw("run-1")
        self.wait(PAUSES_SECONDS[0] + 3)
        self.assertEqual(
            [text for _, _, text in self.service.received][1:], [{"id": "run-1", "n": 1}, {"id": "", "n": 0}]
        )
        self.assertEqual([headers["Urgency"] for _, headers, _ in self.service.received], ["high", "normal", "normal"])

    def test_decided_at_once(self) -> None:
        """What is decided within two seconds is not told."""
        self.register()
        self.wait(20)
        self.ask("run-1")
        self.clock.advance(0.5)
        self.withdraw("run-1")
        self.wait(60)
        self.assertEqual(self.service.counts, [])

    def test_one_for_another(self) -> None:
        """Where one was decided and another came, the number is the same, and it is told as new."""
        self.register()
        self.ask("run-1")
        self.wait()
        self.wait(PAUSES_SECONDS[0])
        self.withdraw("run-1")
        self.ask("run-2")
        self.wait(PAUSES_SECONDS[0] + 3)
        self.assertEqual(self.service.received[-1][2], {"id": "run-2", "n": 1})
        self.assertEqual(self.service.received[-1][1]["Urgency"], "high")

    def test_pace(self) -> None:
        """Who floods you with requests does not flood your browser: the pauses grow to five minutes."""
        self.register()
        times = []
        for number in range(900):
            self.ask(f"run-{number:04}") if number < 40 or not number % 20 else None
            before = len(self.service.received)
            self.clock.pump([1.0, 1.0])
            times += [self.clock.seconds()] * (len(self.service.received) - before)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        for gap, pause in zip(gaps, (*PAUSES_SECONDS, *PAUSES_SECONDS[-1:] * 9), strict=False):
            self.assertGreaterEqual(gap, pause - 2.5)
        self.assertLess(len(times), 14)
        self.assertGreater(len(times), 6)

    def test_snoozed(self) -> None:
        """What you have put aside is not counted, until its time is over."""
        self.register()
        self.ask("run-1", "run-2")
        until = utc(self.clock.seconds()) + timedelta(seconds=100)
        self.do(self.store.snoozes.put("run-2", until, ()))
        self.wait()
        self.assertEqual([text for _, _, text in self.service.received], [{"id": "run-1", "n": 1}])
        self.wait(130)
        self.assertEqual(self.service.received[-1][2], {"id": "run-2", "n": 2})

    def test_soon_after(self) -> None:
        """What comes right after registering is told, though the daemon has not looked in between."""
        double = BrowserDouble()
        self.doubles[double.endpoint] = double
        made = self.do(self.browsers.register(double.told(), "Chrome", DAEMON))
        self.do(self.notifier.set_baseline(made.id))
        self.ask("run-1")
        self.wait(20)
        self.assertEqual(self.service.counts, [1])

    def test_pending_before(self) -> None:
        """Registering notifies of nothing that its page shows already."""
        self.ask("run-1")
        self.register()
        self.wait(100)
        self.assertEqual(self.service.counts, [])


class TroubleTests(PushCase):
    """Locked vaults, restarts, services that fail, and browsers that are gone."""

    def test_locked(self) -> None:
        """While the vault is locked nothing is sent; once it is not, what is pending then."""
        self.register()
        self.vault.lock()
        self.ask("run-1")
        self.wait(60)
        self.assertEqual(self.service.counts, [])
        self.assertEqual(len(self.browsers.list()), 1)
        self.vault._state = VaultState.UNLOCKED
        self.ask("run-2")
        self.wait(20)
        self.assertEqual(self.service.counts, [2])

    def test_restart(self) -> None:
        """A restart repeats nothing, and tells what came while the daemon was down."""
        self.register()
        self.ask("run-1")
        self.wait()
        self.notifier.stop()
        self.ask("run-2")
        again = self.life()
        self.wait()
        self.assertEqual(self.service.counts, [1, 2])
        again.stop()
        self.life()
        self.wait(100)
        self.assertEqual(self.service.counts, [1, 2])
        self.assertNotIn("push.example", str(self.do(self.store.watermarks.all())))

    def test_row(self) -> None:
        """Whatever stands in the row, the daemon starts, and tells changes from then on."""
        self.register()
        for row in ("nonsense", "[]", '{"x": 1}', '{"x": [1]}', '{"x": ["a", "b", 1]}', "null"):
            self.notifier.stop()
            self.do(self.store.watermarks.put(ROW, row))
            self.notifier = self.life()
        self.wait()
        self.ask("run-1")
        self.wait(20)
        self.assertEqual(self.service.counts, [1])

    def test_gone(self) -> None:
        """404 and 410: the browser is removed, on record, and asked no more."""
        for number, status in enumerate((404, 410)):
            removed = self.register(number)
            self.service.answers.append(ServiceAnswer(status, {}, b""))
            self.ask(f"run-{number}")
            self.wait(20)
            self.assertEqual(self.browsers.list(), ())
            self.assertEqual(self.events("push.removed")[-1]["browser"], removed)
        self.assertEqual(self.service.counts, [])
        self.assertNotIn("/send/", json.dumps(self.events("push.removed") + self.events("push.registered")))

    def test_failing(self) -> None:
        """What a service does not accept is tried again, ever more seldom; another browser is not kept waiting."""
        first, second = self.register(1), self.register(2)
        self.service.answers += [ServiceUnreachable(), ServiceAnswer(201, {}, b"")]
        self.ask("run-1")
        self.wait()
        self.assertEqual(self.service.counts, [1])
        problems = {each.id: each.problem for each in self.browsers.list()}
        self.assertEqual({bool(problems[first]), bool(problems[second])}, {True, False})
        self.service.answers += [AddressRefused(), ServiceAnswer(500, {}, b"")]
        self.wait(RETRY_SECONDS[0] + 16)
        self.assertEqual(len(self.service.answers), 1)
        self.wait(RETRY_SECONDS[1] + 16)
        self.assertEqual(self.service.answers, [])
        self.assertIn("status 500", json.dumps([each.problem for each in self.browsers.list()]))
        self.wait(RETRY_SECONDS[2] + 16)
        self.assertEqual(self.service.counts, [1, 1])
        self.assertEqual({each.problem for each in self.browsers.list()}, {None})

    def test_asked_to_wait(self) -> None:
        """A service that asks for time gets it."""
        self.register()
        self.service.answers.append(ServiceAnswer(429, {"retry-after": "300"}, b""))
        self.ask("run-1")
        self.wait(280)
        self.assertEqual(self.service.counts, [])
        self.wait(40)
        self.assertEqual(self.service.counts, [1])

    def test_clock_set_back(self) -> None:
        """A time in the future, from before the clock was set back, keeps nothing from being sent."""
        browser = self.register()
        self.ask("run-1")
        self.wait()
        delivery = self.deliveries[browser]
        delivery.sent_at = self.clock.seconds() + 10**6
        delivery.fail("x", 0, self.clock.seconds() + 10**6)
        self.ask("run-2")
        self.wait(20)
        self.assertEqual(self.service.counts, [1, 2])

    def test_test(self) -> None:
        """A test goes to each browser, is no news, and changes nothing of what it knows."""
        self.register(1)
        self.register(2)
        self.service.answers.append(ServiceUnreachable())
        self.do(self.notifier.test())
        self.assertEqual([text for _, _, text in self.service.received], [{"id": "test", "n": 0}])
        self.assertEqual(sum(each.problem is not None for each in self.browsers.list()), 1)
        self.wait(100)
        self.assertEqual(len(self.service.received), 1)
        self.vault.lock()
        self.fails(self.notifier.test(), VaultLocked)


class BrowsersTests(PushCase):
    """Registering and removing."""

    def test_sealed(self) -> None:
        """Endpoint and keys lie in the vault alone; the record, the list and the database name the service's host."""
        self.register(1, "Chrome\N{RIGHT-TO-LEFT OVERRIDE} on (Android) \N{HEBREW LETTER ALEF}" + "x" * 300)
        (listed,) = self.browsers.list()
        self.assertEqual((listed.service, listed.id), ("push.example", identified("https://push.example/send/1")))
        self.assertTrue(listed.name.startswith("Chrome"), listed.name)
        self.assertTrue(listed.name.isascii() and len(listed.name) <= 60 and "(" not in listed.name)
        (event,) = self.events("push.registered")
        self.assertEqual(set(event), {"browser", "name", "service"})
        self.assertNotIn("send", repr(event) + repr(listed) + repr(self.bindings.list()))

    def test_again(self) -> None:
        """The same endpoint again is one browser."""
        first = self.register(1)
        self.assertEqual(self.register(1, "Another name"), first)
        (listed,) = self.browsers.list()
        self.assertEqual(listed.name, "Another name")

    def test_key(self) -> None:
        """The key is made once, and its public half told."""
        told = self.do(self.browsers.read_public_key())
        self.assertEqual((told, len(told)), (self.do(self.browsers.read_public_key()), 87))
        self.register()
        self.ask("run-1")
        self.wait()
        self.assertEqual(self.service.keys, {told})
        self.assertTrue(self.browsers.is_bound(KEY))
        self.assertFalse(self.browsers.is_bound("push://other") or self.browsers.is_bound("notice://phone"))

    def test_refused(self) -> None:
        """A forbidden endpoint or a wrong key is refused, and no message repeats it."""
        double = BrowserDouble()
        for told in (
            double.told(endpoint="https://127.0.0.1/canary"),
            double.told(endpoint="http://push.example/canary"),
            double.told(p256dh="canary"),
            double.told(auth="canary"),
            double.told(p256dh="A" * 87),
        ):
            error = self.fails(self.browsers.register(told, "x", DAEMON), InvalidRequest)
            self.assertNotIn("canary", repr(error.details))
        self.assertEqual((self.browsers.list(), self.events("push.registered")), ((), []))

    def test_flood(self) -> None:
        """There are so many browsers at a time, and so many registrations an hour; removing makes room."""
        ids = [self.register(number) for number in range(MOST_BROWSERS)]
        more = BrowserDouble("https://push.example/send/more")
        self.fails(self.browsers.register(more.told(), "x", DAEMON), Conflict)
        self.register(0)
        self.do(self.browsers.remove(ids[3], DAEMON))
        for _ in range(3):
            self.do(self.browsers.register(more.told(), "x", DAEMON))
        error = self.fails(self.browsers.register(more.told(), "x", DAEMON), LimitExceeded)
        self.assertGreater(error.details["retry_after"], 3000)
        self.wait(0)
        self.clock.advance(3600)
        self.do(self.browsers.register(more.told(), "x", DAEMON))
        self.assertEqual(len(self.browsers.list()), MOST_BROWSERS)

    def test_removed(self) -> None:
        """What is removed is sent nothing more; what is not there cannot be removed, nor can the daemon's key."""
        removed = self.register()
        self.do(self.browsers.remove(removed, DAEMON))
        self.ask("run-1")
        self.wait(20)
        self.assertEqual(self.service.counts, [])
        for name in (removed, "key", "", "../key"):
            self.fails(self.browsers.remove(name, DAEMON), NotFound)

    def test_locked(self) -> None:
        """While the vault is locked browsers are listed, and none is added or removed."""
        listed = self.register()
        self.vault.lock()
        self.assertEqual([each.id for each in self.browsers.list()], [listed])
        self.fails(self.browsers.register(BrowserDouble().told(), "x", DAEMON), VaultLocked)
        self.fails(self.browsers.remove(listed, DAEMON), VaultLocked)
        self.fails(self.browsers.read_public_key(), VaultLocked)
