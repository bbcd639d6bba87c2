"""The claims of a session stay small, whatever its tools do."""

from __future__ import annotations

from datetime import UTC, datetime

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools._claims import SessionClaims
from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable
from aileron.model.sessions import Session
from aileron.model.tool_claims import MOST_CLAIMS, MOST_TOLD, ToolClaim
from aileron.testing import example_event

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class RefusingStore:
    """A database that cannot be written."""

    def __init__(self) -> None:
        self.kept: list[ToolClaim] = []

    async def note_callers(self, claim: ToolClaim | None, *events: Event) -> None:
        """Refuse."""
        assert claim is not None
        self.kept.append(claim)
        raise StoreUnavailable("The disk is full.")

    async def of_session(self, session_id: str) -> list[ToolClaim]:
        """Return nothing."""
        return []

    async def take_over(self, session: Session, form: str, action: str) -> ToolClaim | None:
        """Return nothing."""
        return None

    async def count_open(self) -> dict[str, tuple[int, int]]:
        """Return nothing."""
        return {}


class ClaimsTests(SynchronousTestCase):
    """Claims whose database refuses them."""

    def setUp(self) -> None:
        self.store = RefusingStore()
        self.claims = SessionClaims(self.store)

    def add(self, run_id: str, form: str = "form") -> None:
        """Add a claim."""
        claim = ToolClaim(run_id, "session-1", form, 1, NOON)
        self.claims.add(claim)

    def test_memory(self) -> None:
        """The callers of a claim that cannot be stored count all the same in this life of the daemon."""
        self.add("R")
        self.successResultOf(Deferred.fromCoroutine(self.claims.note_told("R", "A")))
        self.assertEqual((["R"], ("R",)), ([*self.claims.find_repeated("form", "B")], self.claims.find_owed("A")))
        self.successResultOf(
            Deferred.fromCoroutine(self.claims.note_given("R", "A", example_event("own_tools.answered")))
        )
        self.assertEqual(([], ()), ([*self.claims.find_repeated("form", "B")], self.claims.find_owed("A")))

    def test_most(self) -> None:
        """The oldest of very many claims go."""
        for number in range(MOST_CLAIMS + 2):
            self.add(f"R{number}", f"form-{number}")
        self.assertEqual([], [*self.claims.find_repeated("form-1", "A")])
        self.assertEqual(["R2"], [*self.claims.find_repeated("form-2", "A")])

    def test_many_callers(self) -> None:
        """Of very many callers that were told that a run waits, the last is known."""
        self.add("R")
        for number in range(MOST_TOLD + 1):
            self.successResultOf(Deferred.fromCoroutine(self.claims.note_told("R", f"C{number}")))
        self.assertTrue(self.claims.find_owed(f"C{MOST_TOLD}"))
        self.assertLessEqual(len(self.store.kept[-1].told), MOST_TOLD)
