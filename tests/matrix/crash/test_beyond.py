"""The judge of the crash matrix finds what must not be."""

from __future__ import annotations

import random
import time
from itertools import count
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.values import DAEMON, Event, Run, RunState, utc

from .beyond import Beyond
from .book import BEYOND, BY_NAME, DOUBLED, LOST, UNASKED, WRONG, Book, Call
from .words import FIRST_LIMIT, LIMIT
from .world import World


class BeyondTests(SynchronousTestCase):
    """Each fault, in a record that is made up."""

    def setUp(self) -> None:
        """A home in which nothing has happened."""
        self.book = Book(World(random.Random(1), lambda: None))
        self.runs: list[Run] = []
        self.events: list[Event] = []
        self._numbers = count(1)

    def run_of(self, action: str, state: RunState = RunState.COMPLETED) -> Run:
        """A run, called with a text of its own."""
        id_ = f"run-{len(self.runs)}"
        gated, now = BY_NAME[action].gated, utc(time.time())
        run = Run(id_, action, "1.0.0", "sha256:0", {"text": id_}, state, gated, f"key-{id_}", now, now)
        self.runs.append(run)
        self.book.calls[id_] = Call(id_, BY_NAME[action], None, id_)
        return run

    def event(self, type_: str, whose: Run | None = None, later: float = 0.0, **payload: Any) -> None:
        """The next event."""
        run_id, action = (None, None) if whose is None else (whose.id, whose.action)
        id_, at = f"event-{next(self._numbers)}", utc(time.time() + later)
        self.events.append(Event(id_, type_, at, DAEMON, run_id=run_id, action=action, payload=payload))

    def begin(self, run: Run, happens: bool = True) -> Run:
        """Something begins, and happens."""
        self.event("execution.started", run)
        if happens:
            self.book.world.by_key[f"{run.effect_key}.only"] += 1
        return run

    def found(self) -> list[str]:
        """The promises that are broken."""
        return [promise for promise, _ in Beyond(self.book, BY_NAME, self.runs, self.events).all()]

    def test_sound(self) -> None:
        """What was approved and done is as it should be."""
        self.begin(self.run_of("once"))
        self.book.calls["run-0"].asked.add("approve")
        self.assertEqual(self.found(), [])

    def test_approvals(self) -> None:
        """A confirmed approval gives way only where the record tells that it was asked anew."""
        run = self.run_of("few", RunState.DENIED)
        self.event("approval.approved", run)
        self.assertEqual(self.found(), [])
        self.book.calls[run.id].confirmed.add("approve")
        self.assertEqual(self.found(), [LOST])
        self.event("approval.stale", run)
        self.assertEqual(self.found(), [])

    def test_alarms(self) -> None:
        """No crash is told as tampering."""
        self.event("tamper.detected", self.run_of("few"), found="The decision on record had given way before.")
        self.assertEqual(self.found(), [LOST])

    def test_quiet(self) -> None:
        """Nothing begins from when a pause or a lock was confirmed to when somebody asked for its end."""
        for begins, ends in (
            (self.book.words.paused, self.book.words.resuming),
            (self.book.words.locked, self.book.words.unlocking),
        ):
            begins()
            self.event("execution.started", later=1.0)
            self.assertEqual(self.found(), [UNASKED])
            ends()
            self.assertEqual(self.found(), [])
            self.events.clear()

    def test_limits(self) -> None:
        """Neither a file's limit nor the operator's is exceeded."""
        for action, most in (("open-few", BY_NAME["open-few"].most or 0), (LIMIT, FIRST_LIMIT)):
            for _ in range(most):
                self.begin(self.run_of(action))
            self.assertEqual(self.found(), [])
            self.begin(self.run_of(action))
            self.assertEqual(self.found(), [BEYOND])
            self.runs.clear()
            self.book.world.by_key.clear()
            self.events.clear()

    def granted(self, left: int) -> Run:
        """A run that began by a grant."""
        run = self.run_of("allowed")
        self.event("grant.used", run, grant="grant-1", left=left)
        self.event("approval.approved", run, grant="grant-1")
        return self.begin(run)

    def test_grants(self) -> None:
        """A grant is one that was asked for, and each of its uses another."""
        self.event("grant.issued", grant="grant-1", run="run-x", uses=2)
        self.granted(1)
        self.assertEqual(self.found(), [UNASKED])
        self.book.words.uses["run-x"] = [2]
        self.granted(0)
        self.assertEqual(self.found(), [])
        self.granted(0)
        self.assertEqual(self.found(), [BEYOND])

    def test_revoked(self) -> None:
        """Nothing begins by a grant that was ended."""
        self.book.words.uses["run-x"] = [2]
        self.event("grant.issued", grant="grant-1", run="run-x", uses=2)
        self.event("grant.revoked", grant="grant-1")
        self.granted(1)
        self.assertEqual(self.found(), [BEYOND])

    def test_approved_since(self) -> None:
        """What a grant had allowed that was then ended may begin when a person approves it."""
        self.book.words.uses["run-x"] = [2]
        self.event("grant.issued", grant="grant-1", run="run-x", uses=2)
        run = self.run_of("allowed")
        self.event("grant.used", run, grant="grant-1", left=1)
        self.event("approval.approved", run, grant="grant-1")
        self.event("grant.revoked", grant="grant-1")
        self.event("approval.approved", run, grant=None)
        self.begin(run)
        self.assertEqual(self.found(), [])

    def test_nobody_asked(self) -> None:
        """What began must have been approved; what another with its key did needs no word of its own."""
        parent, child = self.run_of("open-safe"), self.run_of("open-safe", RunState.CANCELLED)
        self.runs[-1] = evolve(child, gated=True, effect_key=parent.effect_key, parent_id=parent.id)
        self.book.calls["run-0"].asked.add("approve")
        self.begin(parent)
        self.assertEqual(self.found(), [])
        self.begin(self.run_of("once"))
        self.assertEqual(self.found(), [UNASKED])

    def test_effects(self) -> None:
        """An effect has a run that began and that somebody said yes to, and is told of as what it is."""
        self.begin(self.run_of("once"))
        self.assertEqual(self.found(), [UNASKED])
        self.book.calls["run-0"].asked.add("approve")
        self.begin(self.run_of("open-once", RunState.FAILED))
        self.assertEqual(self.found(), [WRONG])
        self.begin(self.runs[-1])
        self.assertEqual(self.found(), [DOUBLED, WRONG])

    def test_never_began(self) -> None:
        """An effect of a run of which the record says nothing is wrong."""
        run = self.run_of("open-once")
        self.book.world.by_key[f"{run.effect_key}.only"] = 1
        self.assertEqual(self.found(), [WRONG])

    def test_again(self) -> None:
        """What is done again was approved, and not known to have happened."""
        parent = self.begin(self.run_of("open-once"))
        self.begin(self.again(parent))
        self.assertEqual(self.found(), [UNASKED])
        self.book.child(self.book.calls[parent.id], "run-1").asked.add("approve")
        self.assertEqual(self.found(), [])
        self.event("run.settled", parent, happened=True)
        self.begin(self.runs[-1], happens=False)
        self.assertEqual(self.found(), [DOUBLED])

    def again(self, parent: Run) -> Run:
        """A run that does another again."""
        self.runs.append(evolve(parent, id="run-1", gated=True, effect_key="key-2", parent_id=parent.id))
        return self.runs[-1]

    def test_early(self) -> None:
        """What was put off does not happen before its time."""
        call = self.book.calls["text"] = Call("text", BY_NAME["put-off"], None)
        call.begins = time.time() + 10.0
        self.book.heard("text")
        self.assertEqual(self.found(), [UNASKED])
