"""Claims on answers outlive a restart, and go with their session or a day after their run has ended."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import Any

from attrs import evolve
from twisted.internet.task import Clock

from aileron.base.json import utc
from aileron.model.authority import PendingLimits
from aileron.model.errors import LimitExceeded
from aileron.model.queries import AuditQuery
from aileron.model.runs import RunState
from aileron.model.sessions import Session
from aileron.model.tool_claims import ToolClaim
from aileron.store import Store, _tool_claims
from aileron.testing import example_ask, example_event, example_run, example_session, example_transition, memory_store
from aileron.testing._examples import NOON

from .case import DatabaseCase

CLAIM = ToolClaim("run-1", "session-1", "form", 10, NOON)


class ToolClaimsTests(DatabaseCase):
    """A store at noon with a session and its pending run."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.clock.advance(NOON.timestamp())
        self.store = self.opened()
        event = example_event("session.started")
        self.do(self.store.sessions.open(example_session(), b"t" * 32, b"g" * 32, (event,)))
        self.run_of("run-1")

    def opened(self) -> Store:
        """Return a store on the file, opened."""
        return memory_store(self, self.clock, self.path, lambda *_: self.threads)

    def run_of(self, run_id: str) -> None:
        """Store a pending run with its claim."""
        run = example_run(run_id, session_id="session-1")
        claim = evolve(CLAIM, run_id=run_id, asked_at=utc(self.clock.seconds()))
        asked = example_transition(run, RunState.PENDING, ask=example_ask(), claim=claim)
        self.do(self.store.runs.receive(run, (asked,), PendingLimits()))

    def deny(self) -> None:
        """End the run now."""
        run = self.do(self.store.runs.get("run-1"))
        assert run is not None
        denied = example_transition(run, RunState.DENIED)
        self.do(self.store.runs.apply(denied))

    def claims(self) -> list[ToolClaim]:
        """Return the claims of the session."""
        return list(self.do(self.store.tool_claims.of_session("session-1")))

    def test_restart(self) -> None:
        """A claim is read again as it was kept last; those of other sessions are not read."""
        changed = evolve(CLAIM, told=frozenset({"group:1:2", "group:3:4"}), given=frozenset({"group:3:4"}))
        self.do(self.store.tool_claims.note_callers(changed))
        self.do(self.store.close())
        self.store = self.opened()
        self.assertEqual([changed], self.claims())
        self.assertEqual([], list(self.do(self.store.tool_claims.of_session("session-2"))))

    def test_open(self) -> None:
        """The bytes of requests count while their runs wait."""
        self.assertEqual({"session-1": (1, 10)}, self.do(self.store.tool_claims.count_open()))
        self.deny()
        self.assertEqual({}, self.do(self.store.tool_claims.count_open()))

    def test_session_ends(self) -> None:
        """The claims of a session outlive it. Their callers still change."""
        self.do(self.store.sessions.end("session-1", None, (example_event("session.ended"),)))
        self.assertEqual([CLAIM], self.claims())
        given = evolve(CLAIM, given=frozenset({"group:1:2"}))
        self.do(self.store.tool_claims.note_callers(given))
        self.assertEqual([given], self.claims())

    def test_ended_meanwhile(self) -> None:
        """A run that is stored just after its session has ended has a claim, for a later session."""
        self.do(self.store.sessions.end("session-1", None, (example_event("session.ended"),)))
        self.run_of("run-2")
        self.assertEqual(["run-1", "run-2"], [each.run_id for each in self.claims()])

    def test_no_session(self) -> None:
        """A claim of a session that does not exist is not stored. Its run is."""
        run = example_run("run-2")
        asked = example_transition(
            run, RunState.PENDING, ask=example_ask(), claim=evolve(CLAIM, run_id="run-2", session_id="session-2")
        )
        self.do(self.store.runs.receive(run, (asked,), PendingLimits()))
        self.assertEqual([], list(self.do(self.store.tool_claims.of_session("session-2"))))
        self.assertIsNotNone(self.do(self.store.runs.get("run-2")))

    def test_refused_run(self) -> None:
        """A run that is not stored has no claim."""
        run = example_run("run-2", session_id="session-1")
        asked = example_transition(run, RunState.PENDING, ask=example_ask(), claim=evolve(CLAIM, run_id="run-2"))
        self.refused(self.store.runs.receive(run, (asked,), PendingLimits(per_session=1)), LimitExceeded)
        self.assertEqual([CLAIM], self.claims())

    def test_known_key(self) -> None:
        """A call that repeats an idempotency key gets the earlier run, and no claim is stored for the new one."""
        for run_id in ("run-2", "run-3"):
            run = example_run(run_id, session_id="session-1", idempotency_key="key")
            claim = evolve(CLAIM, run_id=run_id)
            asked = example_transition(run, RunState.PENDING, ask=example_ask(), claim=claim)
            stored, created = self.do(self.store.runs.receive(run, (asked,), PendingLimits()))
            self.assertEqual(("run-2", run_id == "run-2"), (stored.id, created))
        self.assertEqual(["run-1", "run-2"], [each.run_id for each in self.claims()])

    def test_event(self) -> None:
        """That an answer was given is stored with the event that records it, also if another session has the claim."""
        for number, claim in enumerate((CLAIM, None, evolve(CLAIM, session_id="session-2"))):
            event = evolve(example_event("own_tools.answered"), id=f"event-{number}")
            self.do(self.store.tool_claims.note_callers(claim, event))
        found = self.do(self.store.audit.list(AuditQuery(type="own_tools.answered"))).items
        self.assertEqual(3, len(found))

    def test_unknown_claim(self) -> None:
        """The callers of a claim that was deleted are not stored."""
        self.do(self.store.tool_claims.note_callers(evolve(CLAIM, run_id="run-2")))
        self.assertEqual([CLAIM], self.claims())

    def test_expired(self) -> None:
        """A claim goes a day after its run has ended, however long the run waited."""
        self.clock.advance(timedelta(days=9).total_seconds())
        self.run_of("run-2")
        self.assertEqual(["run-1", "run-2"], [each.run_id for each in self.claims()])
        self.deny()  # at noon of the first day, by the example's clock
        self.run_of("run-3")
        self.assertEqual(["run-2", "run-3"], [each.run_id for each in self.claims()])

    def test_most(self) -> None:
        """Of very many claims of a session, the oldest go."""
        self.patch(_tool_claims, "MOST_CLAIMS", 3)
        for number in range(2, 6):
            self.run_of(f"run-{number}")
        self.assertEqual(["run-3", "run-4", "run-5"], [each.run_id for each in self.claims()])


class TakingOverTests(DatabaseCase):
    """A session that has ended, its claim, and a later session that may take it over."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.clock.advance(NOON.timestamp())
        self.store = memory_store(self, self.clock, self.path, lambda *_: self.threads)
        self.open("session-1")
        self.later = self.open("session-2")
        self.claim("run-1", "session-1")

    def claim(self, run_id: str, session_id: str) -> None:
        """Store a pending run of a session, and its claim, of which a caller was told."""
        run = example_run(run_id, session_id=session_id, action="github-tools")
        claim = evolve(CLAIM, run_id=run_id, session_id=session_id, told=frozenset({"group:1:2"}))
        asked = example_transition(run, RunState.PENDING, ask=example_ask(), claim=claim)
        self.do(self.store.runs.receive(run, (asked,), PendingLimits()))

    def open(self, session_id: str, **more: Any) -> Session:
        """Open a session, of the same agent in the same directory unless said otherwise."""
        session: Session = evolve(example_session(), id=session_id, **more)
        token, gateway = (sha256(f"{kind}{session_id}".encode()).digest() for kind in ("token", "gateway"))
        self.do(self.store.sessions.open(session, token, gateway, (example_event("session.started"),)))
        return session

    def end(self, session_id: str = "session-1") -> None:
        """End a session."""
        self.do(self.store.sessions.end(session_id, None, (example_event("session.ended"),)))

    def taken(self, session: Session | None = None, form: str = "form", action: str = "github-tools") -> str | None:
        """Return the run of the claim that a session takes over."""
        found = self.do(self.store.tool_claims.take_over(session or self.later, form, action))
        return None if found is None else found.run_id

    def of(self, session_id: str) -> list[ToolClaim]:
        """Return the claims of a session."""
        return list(self.do(self.store.tool_claims.of_session(session_id)))

    def test_once(self) -> None:
        """A claim is taken over once, without the callers of the session that has ended."""
        self.end()
        self.assertEqual("run-1", self.taken())
        self.assertEqual(([], [evolve(CLAIM, session_id="session-2")]), (self.of("session-1"), self.of("session-2")))
        self.assertIsNone(self.taken(self.open("session-3")))
        self.end("session-2")
        self.assertEqual("run-1", self.taken(self.open("session-4")), "nobody got the answer yet")

    def test_late_note(self) -> None:
        """What the session that has ended still notes changes nothing once the claim is another's."""
        self.end()
        self.taken()
        self.do(self.store.tool_claims.note_callers(evolve(CLAIM, given=frozenset({"group:1:2"}))))
        self.assertEqual([evolve(CLAIM, session_id="session-2")], self.of("session-2"))
        self.assertEqual([], self.of("session-1"))

    def test_live(self) -> None:
        """The claims of a live session are its own."""
        self.assertIsNone(self.taken())
        self.assertEqual(1, len(self.of("session-1")))

    def test_others(self) -> None:
        """Another agent, another directory, an unknown one and an earlier session get nothing."""
        self.end()
        before = NOON - timedelta(seconds=1)
        different: tuple[dict[str, Any], ...] = (
            {"agent": "another"},
            {"working_dir": "/somewhere/else"},
            {"working_dir": ""},
            {"working_dir": f"{self.later.working_dir}/"},
            {"started_at": before, "seen_at": before},
        )
        for number, more in enumerate(different):
            self.assertIsNone(self.taken(self.open(f"other-{number}", **more)), more)
        self.assertEqual("run-1", self.taken())

    def test_nowhere(self) -> None:
        """Two sessions whose directory is unknown are not of one project."""
        self.open("nowhere-1", working_dir="")
        self.claim("run-2", "nowhere-1")
        self.end("nowhere-1")
        self.assertIsNone(self.taken(self.open("nowhere-2", working_dir="")))
        self.assertEqual(["run-2"], [each.run_id for each in self.of("nowhere-1")])

    def test_other_request(self) -> None:
        """Another form or another action is another request."""
        self.end()
        self.assertIsNone(self.taken(form="another"))
        self.assertIsNone(self.taken(action="tracker-tools"))

    def test_given(self) -> None:
        """An answer that somebody got is nobody else's."""
        self.do(self.store.tool_claims.note_callers(evolve(CLAIM, given=frozenset({"group:1:2"}))))
        self.end()
        self.assertIsNone(self.taken())

    def test_expired(self) -> None:
        """A day after its run has ended it is gone; one that waits longer is not."""
        self.end()
        self.clock.advance(timedelta(days=9).total_seconds())
        self.assertEqual("run-1", self.taken())
        self.end("session-2")
        run = self.do(self.store.runs.get("run-1"))
        assert run is not None
        self.do(self.store.runs.apply(example_transition(run, RunState.DENIED)))  # at noon, by the example's clock
        self.assertIsNone(self.taken(self.open("session-3")))
