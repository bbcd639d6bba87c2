"""Sessions that end by themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from twisted.internet.defer import Deferred

from aileron.api._sessions import CHECK_SECONDS, GRACE_SECONDS, Leases
from aileron.api.endpoint import Received, RequestContext
from aileron.api.faults import Streamed
from aileron.api.guard import Caller, Who
from aileron.api.routes.audit import STILL_HERE_SECONDS
from aileron.api.routes.sessions import hold_lease
from aileron.model.errors import NotFound
from aileron.model.queries import AuditQuery

from .case import LAUNCH_KEY, ApiCase


class LeaseCase(ApiCase):
    """A daemon that looks now and then."""

    def opened(self, **wishes: Any) -> dict[str, str]:
        """A session."""
        heard = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "a", **wishes})
        return cast("dict[str, str]", heard.json)

    def look(self, times: int = 1, leases: Leases | None = None) -> None:
        """Let so many looks pass."""
        for _ in range(times):
            self.clock.advance(CHECK_SECONDS)
            self.successResultOf(Deferred.fromCoroutine((leases or self.deps.leases).end_lapsed_sessions()))

    def shown(self, session: dict[str, str]) -> Any:
        """A session, as it is told of."""
        return self.operator.ask("GET", f"/v1/sessions/{session['id']}", self.operator_token()).json

    def hold(self, session_id: str) -> AsyncIterator[bytes]:
        """The chunks that a launcher gets."""
        context = RequestContext(Caller(Who.LAUNCH), {}, {}, None, 0.0, Received({}, bytes, ()))
        return self.successResultOf(Deferred.fromCoroutine(self.answer(context, session_id))).chunks

    async def answer(self, context: RequestContext, session_id: str) -> Streamed:
        """What the route answers."""
        return cast("Streamed", await hold_lease(context, self.deps, session_id))

    def next_of(self, chunks: AsyncIterator[bytes]) -> Deferred[bytes]:
        """The next chunk."""
        return Deferred.fromCoroutine(chunks.__anext__())  # type: ignore[arg-type]


class OrphanTests(LeaseCase):
    """A launcher that is gone."""

    def test_orphaned(self) -> None:
        """A leased session that nobody holds is ended after the grace, on record, and its token opens nothing."""
        session = self.opened(lease=True)
        self.look(int(GRACE_SECONDS / CHECK_SECONDS))
        self.assertEqual(self.shown(session)["state"], "running")
        self.look()
        shown = self.shown(session)
        self.assertEqual((shown["state"], shown["exit_code"]), ("orphaned", None))
        self.assertEqual(self.agents.ask("GET", "/v1/status", session["token"]).status, 401)
        record = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery()))).items[0]
        self.assertEqual((record.event.type, record.event.payload["ending"]), ("session.ended", "orphaned"))
        self.assertEqual(record.event.actor.type, "service")
        self.look(3)
        self.assertEqual(self.events(), ["session.started", "session.ended"])

    def test_agent_does_not_renew(self) -> None:
        """Whatever its agent asks meanwhile, and to hold the lease itself, changes nothing."""
        session = self.opened(lease=True)
        lease = f"/v1/sessions/{session['id']}/lease"
        for _ in range(int(GRACE_SECONDS / CHECK_SECONDS)):
            self.look()
            self.assertEqual(self.agents.ask("GET", "/v1/actions", session["token"]).status, 200)
            self.assertEqual(self.agents.ask("GET", lease, session["token"]).status, 403)
        self.look()
        self.assertEqual(self.shown(session)["state"], "orphaned")

    def test_held(self) -> None:
        """While its launcher holds it a session lives; after that it has the whole grace, and can be held again."""
        session = self.opened(lease=True)
        for _ in range(2):
            chunks = self.hold(session["id"])
            self.assertIn(b"held", self.successResultOf(self.next_of(chunks)))
            waiting = self.next_of(chunks)
            self.look(20)
            self.successResultOf(waiting)
            self.successResultOf(Deferred.fromCoroutine(chunks.aclose()))  # type: ignore[attr-defined]
            self.look(int(GRACE_SECONDS / CHECK_SECONDS))
            self.assertEqual(self.shown(session)["state"], "running")
        self.look()
        self.assertEqual(self.shown(session)["state"], "orphaned")

    def test_asleep(self) -> None:
        """A night asleep, a clock that is set, and one of two holders gone orphan nobody."""
        session = self.opened(lease=True)
        self.look()
        self.clock.advance(9 * 3600)
        self.look()
        self.clock.rightNow -= 3600
        self.look()
        self.assertEqual(self.shown(session)["ended_at"], None)
        session = self.opened(lease=True)
        with self.deps.leases.held(session["id"]):
            with self.deps.leases.held(session["id"]):
                self.look()
            self.look(30)
            self.assertEqual(self.shown(session)["state"], "running")

    def test_restarted(self) -> None:
        """A daemon that starts gives every launcher the whole grace to come back, and then ends what is orphaned."""
        session = self.opened(lease=True)
        self.look(10)
        again = Leases(self.store.sessions, self.clock, self.fresh_id)
        self.look(int(GRACE_SECONDS / CHECK_SECONDS), again)
        self.assertEqual(self.shown(session)["state"], "running")
        self.look(1, again)
        self.assertEqual(self.shown(session)["state"], "orphaned")

    def test_over(self) -> None:
        """The request of a launcher ends with its session; without a lease, or ended, there is none."""
        session, plain = self.opened(lease=True), self.opened()
        chunks = self.hold(session["id"])
        self.successResultOf(self.next_of(chunks))
        waiting = self.next_of(chunks)
        self.agents.ask("POST", f"/v1/sessions/{session['id']}/end", session["token"], {})
        self.clock.advance(STILL_HERE_SECONDS)
        self.failureResultOf(waiting, StopAsyncIteration)
        for each in (session["id"], plain["id"], "nobody"):
            context = cast("RequestContext", None)
            self.failureResultOf(Deferred.fromCoroutine(self.answer(context, each)), NotFound)


class SeveralTests(LeaseCase):
    """Several daemons serve the same sessions."""

    def test_elsewhere(self) -> None:
        """A session whose launcher is connected to another daemon goes on here; what was held here ends as ever."""
        here, elsewhere = self.opened(lease=True), self.opened(lease=True)
        leases = Leases(self.store.sessions, self.clock, self.fresh_id, several=True)
        with leases.held(here["id"]):
            self.look(30, leases)
        self.look(int(GRACE_SECONDS / CHECK_SECONDS) + 1, leases)
        self.assertEqual(self.shown(here)["state"], "orphaned")
        self.assertIn(self.shown(elsewhere)["state"], ("running", "quiet"))

    def test_forgotten(self) -> None:
        """A session that made no request for a day ends, as its launcher's daemon may be gone."""
        session = self.opened(lease=True)
        leases = Leases(self.store.sessions, self.clock, self.fresh_id, several=True)
        self.clock.advance(86_401)
        self.look(int(GRACE_SECONDS / CHECK_SECONDS) + 2, leases)
        self.assertEqual(self.shown(session)["state"], "orphaned")


class ExpiryTests(LeaseCase):
    """A session that has an end."""

    def test_minutes(self) -> None:
        """A session ends when its time is over, however it is used; where nothing is said, after a day."""
        session = self.opened(minutes=2)
        self.look(23)
        self.assertEqual(self.shown(session)["state"], "running")
        self.look()
        self.assertEqual(self.shown(session)["state"], "expired")
        self.assertEqual(self.agents.ask("GET", "/v1/status", session["token"]).status, 401)
        session = self.opened()
        self.clock.advance(86400 - CHECK_SECONDS - 1)
        self.look()
        self.assertEqual(self.shown(session)["state"], "quiet")
        self.look(1, Leases(self.store.sessions, self.clock, self.fresh_id))
        self.assertEqual(self.shown(session)["state"], "expired")

    def test_wishes(self) -> None:
        """Of a lease and an end each is told; an end that is none is refused."""
        self.assertIsNone(self.opened(lease=True)["ends_at"])
        both = self.shown(self.opened(lease=True, minutes=5))
        self.assertEqual((both["leased"], both["ends_at"] is None), (True, False))
        for minutes in (0, -1, 50_000, "9", True, 1.5):
            heard = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "a", "minutes": minutes})
            self.assertEqual(heard.status, 400, minutes)


class ClientTests(LeaseCase):
    """A client that opens a session for itself."""

    def test_by_name(self) -> None:
        """It is let in only by a name that the operator has named; a launcher is not asked."""
        wishes = {"client": True, "lease": True}
        heard = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "a", **wishes})
        self.assertEqual((heard.status, heard.kind), (403, "forbidden"))
        self.assertEqual(self.events(), [])
        self.build(clients=frozenset({"a"}))
        self.assertIn("token", self.opened(**wishes))
        self.assertEqual(self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "A", **wishes}).status, 403)
        self.assertEqual(self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "b"}).status, 201)


class SummaryTests(LeaseCase):
    """What a session came to."""

    def test_summary(self) -> None:
        """One session, and the answer to its end, tell what it came to and how long it lasted."""
        session = self.opened()
        self.clock.advance(65)
        ended = self.agents.ask("POST", f"/v1/sessions/{session['id']}/end", session["token"], {}).json
        nothing = dict.fromkeys(("calls", "waiting", "approvals", "denials", "effects", "in_doubt"), 0)
        self.assertEqual(ended["summary"], {**nothing, "seconds": 65})
        self.clock.advance(65)
        self.assertEqual(self.shown(session)["summary"], ended["summary"])
