"""Claims on answers outlive a restart, and go with their session or a day after their run has ended."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve
from twisted.internet.task import Clock

from aileron.model.authority import PendingLimits
from aileron.model.runs import RunState
from aileron.model.tool_claims import MOST_CLAIMS, ToolClaim
from aileron.store import Store
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
        self.do(self.store.tool_claims.keep(CLAIM))

    def opened(self) -> Store:
        """Return a store on the file, opened."""
        return memory_store(self, self.clock, self.path, lambda *_: self.threads)

    def run_of(self, run_id: str) -> None:
        """Store a pending run."""
        run = example_run(run_id, session_id="session-1")
        asked = example_transition(run, RunState.PENDING, ask=example_ask())
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
        self.do(self.store.tool_claims.keep(changed))
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
        """The claims of a session go with it, and none is kept afterwards."""
        self.do(self.store.sessions.end("session-1", None, (example_event("session.ended"),)))
        self.assertEqual([], self.claims())
        self.do(self.store.tool_claims.keep(CLAIM))
        self.assertEqual([], self.claims())

    def test_expired(self) -> None:
        """A claim goes a day after its run has ended, however long the run waited."""
        self.clock.advance(timedelta(days=9).total_seconds())
        self.run_of("run-2")
        self.do(self.store.tool_claims.keep(evolve(CLAIM, run_id="run-2")))
        self.assertEqual(["run-1", "run-2"], [each.run_id for each in self.claims()])
        self.deny()  # at noon of the first day, by the example's clock
        self.do(self.store.tool_claims.keep(evolve(CLAIM, run_id="run-2")))
        self.assertEqual(["run-2"], [each.run_id for each in self.claims()])

    def test_most(self) -> None:
        """Of very many claims of a session, the oldest go."""
        for number in range(MOST_CLAIMS + 3):
            self.do(self.store.tool_claims.keep(evolve(CLAIM, run_id=f"run-{number:05}")))
        found = [each.run_id for each in self.claims()]
        self.assertEqual(MOST_CLAIMS, len(found))
        self.assertTrue({f"run-{number:05}" for number in range(4)}.isdisjoint(found))
