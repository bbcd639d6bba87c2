"""Standing grants: what they let through, and that nothing else goes by them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from aileron.base.json import JSON, utc
from aileron.model.authority import (
    MOST_LIVE_GRANTS,
    Grant,
    NewGrant,
    PendingLimits,
    Predicate,
    PredicateKind,
    StandingGrant,
)
from aileron.model.connectors import ConnectorDescription, Outcome
from aileron.model.errors import (
    BindingFailed,
    Conflict,
    InvalidRequest,
    NotFound,
    Paused,
    StoreUnavailable,
    VaultLocked,
)
from aileron.model.faults import Fault
from aileron.model.runs import Approval, Run, RunState
from aileron.model.trust import TrustKind
from aileron.model.vault import VaultState
from aileron.testing import ScriptedConnector, example_grant, new_binding, scripted_description

from .kit import AGENT, OPERATOR, RunnerCase, manifest, step
from .previewed import PreviewedCase

EXACT = {"text": "hello"}

ANY_TEXT = Predicate("text", PredicateKind.ANY)


class GrantedCase(RunnerCase):
    """A gated action with the arguments C{text} and C{times}."""

    def wish(self, *predicates: Predicate, **changes: Any) -> NewGrant:
        """What the operator might want: three more, for an hour, of this session."""
        until = utc(self.clock.seconds()) + timedelta(hours=1)
        return evolve(NewGrant(predicates, 3, until), **changes)

    def grant(self, *predicates: Predicate, arguments: Mapping[str, JSON] | None = None, **changes: Any) -> Grant:
        """Approve a call, and grant more like it."""
        return self.approve_and_grant(self.submit(arguments=arguments), self.wish(*predicates, **changes))[1]

    def approve_and_grant(self, run: Run, wish: NewGrant) -> tuple[Approval, Grant]:
        """Approve a run for what is shown of it now, with a grant."""
        return self.sync(self.runner.decisions.approve_and_grant(run.id, self.yes(run), wish))

    def standing(self, grant: Grant) -> StandingGrant:
        """A grant as it is shown now."""
        return self.sync(self.runner.grants.grant(grant.id))

    def revoke(self, grant: Grant) -> None:
        """Take it back."""
        self.sync(self.runner.grants.revoke_grant(grant.id, OPERATOR))


class NoWatermarks:
    """Of a database that cannot be written at the moment."""

    async def put(self, name: str, value: str) -> None:
        """Fail."""
        raise StoreUnavailable("The database is locked.")


class AlteredVault:
    """Whose file somebody has changed."""

    def sealed(self) -> None:
        """Fail."""
        raise BindingFailed("The vault's file was changed.")


class UseTests(GrantedCase):
    """A call that a grant allows."""

    def test_allowed(self) -> None:
        """It is done without being asked about, on record as the grant's doing, and the caller can read so."""
        grant = self.grant(ANY_TEXT)
        run = self.submit(arguments={"text": "another"})
        done = self.now(run)
        self.assertEqual((done.state, done.reason), (RunState.COMPLETED, "Allowed by a standing grant."))
        types = ["approval.requested", "grant.used", "approval.approved", "execution.started", "execution.succeeded"]
        self.assertEqual(self.events(run), types)
        approval = self.shown(run)
        self.assertEqual((approval.grant_id, approval.decided_by), (grant.id, f"grant:{grant.id}"))
        (used,) = self.recorded("grant.used")
        self.assertEqual((used.payload["grant"], used.payload["left"], used.actor.type), (grant.id, 2, "service"))
        self.assertEqual(len(self.connector.sendings), 2)

    def test_without_predicates(self) -> None:
        """What is not named must be exactly what was approved, and what was absent must be absent."""
        self.grant()
        for arguments in ({"text": "other"}, {"text": "hello "}, {"text": "hello", "times": 1}, {"text": "Hello"}):
            self.assertIs(self.submit(arguments=arguments).state, RunState.PENDING, arguments)
        self.assertIs(self.state(self.submit(arguments=EXACT)), RunState.COMPLETED)

    def test_uses(self) -> None:
        """Each call is one use, also of the same arguments, in any life; after the last the operator is asked."""
        grant = self.grant(ANY_TEXT, uses=2)
        self.assertIs(self.state(self.submit()), RunState.COMPLETED)
        self.next_life()
        self.assertIs(self.state(self.submit()), RunState.COMPLETED)
        self.assertIs(self.state(self.submit()), RunState.PENDING)
        self.assertEqual(self.standing(grant).state, "used_up")

    def lose_record(self) -> None:
        """The database cannot be written."""
        self.patch(self.runner._recovery._rollbacks, "_watermarks", NoWatermarks())

    def alter_vault(self) -> None:
        """Nobody can say how far the vault has come."""
        self.patch(self.runner._recovery._rollbacks, "_control", AlteredVault())

    def fill_disk(self) -> None:
        """The vault cannot be written."""
        self.grants.full = True

    def lock_vault(self) -> None:
        """The vault is locked."""
        self.vault.lock()

    def test_cannot_be_counted(self) -> None:
        """Where a use cannot be counted or noted, a person is asked; grants are still listed then."""
        for trouble in (UseTests.lose_record, UseTests.alter_vault, UseTests.fill_disk, UseTests.lock_vault):
            self.setUp()
            grant = self.grant(ANY_TEXT)
            trouble(self)
            self.assertIs(self.submit().state, RunState.PENDING)
            self.assertEqual((self.standing(grant).state, len(self.connector.sendings)), ("live", 1))

    def test_noted(self) -> None:
        """How far the vault came by a use is in the record before anything begins, or who puts it back has that use."""
        self.grant(ANY_TEXT)
        noted: list[int] = []
        self.connector.shows["post"] = lambda: self._note(noted)
        used = self.control.file_revision + 1
        self.submit()
        self.assertGreaterEqual(noted, [used])

    def _note(self, noted: list[int]) -> Outcome:
        with closing(sqlite3.connect(self.database)) as other:
            ((value,),) = other.execute("SELECT value FROM watermarks WHERE name = 'vault memory'")
        noted.append(int(value.split()[0]))
        return Outcome(output={"done": True})

    def test_idempotency_key(self) -> None:
        """A call that is repeated under its key costs no use, also where both arrive before either is kept."""
        grant = self.grant(ANY_TEXT)
        call = self.call(key="k")
        self.pool.hold()
        both = [self.later(self.runner.submission.submit(call)) for _ in range(2)]
        self.pool.release()
        ids = {*(self.successResultOf(each).id for each in both), self.submit(key="k").id}
        self.assertEqual((len(ids), self.standing(grant).grant.used), (1, 1))

    def test_time(self) -> None:
        """When its time is over it allows nothing, also if the clock is set back after it was seen to be over."""
        grant = self.grant(ANY_TEXT)
        self.clock.advance(3600)
        self.assertIs(self.submit().state, RunState.PENDING)
        self.assertEqual(self.standing(grant).state, "over")
        self.clock.rightNow -= 1800
        self.assertIs(self.submit().state, RunState.PENDING)

    def test_session(self) -> None:
        """One is for its action alone; of a session it is for no other, nor the operator; one for all is for all."""
        self.write("also", manifest("also", step("post")))
        first = self.grant(ANY_TEXT)
        self.assertIs(self.submit("also").state, RunState.PENDING)
        for session in ("session-2", None):
            self.assertIs(self.submit(session=session).state, RunState.PENDING)
        self.revoke(first)
        self.grant(Predicate("times", PredicateKind.ANY), arguments={"text": "x"}, session=False)
        for session in ("session-2", None):
            run = self.submit(arguments={"text": "x"}, session=session)
            self.assertIs(self.state(run), RunState.COMPLETED)

    def test_first_that_allows(self) -> None:
        """Of several the oldest that allows the call is used."""
        narrow, wide = self.grant(uses=1), self.grant(ANY_TEXT, arguments={"text": "x"})
        self.submit()
        self.submit()
        self.assertEqual([self.standing(each).grant.used for each in (narrow, wide)], [1, 1])

    def test_pending_limits(self) -> None:
        """A call that need not be asked about is not refused for what waits already."""
        self.limits = PendingLimits(per_session=1)
        self.restart()
        self.grant(ANY_TEXT, arguments={"text": "x", "times": 1})
        self.submit(arguments={"text": "waits"})
        self.assertIs(self.state(self.submit(arguments={"text": "y", "times": 1})), RunState.COMPLETED)

    def test_undo(self) -> None:
        """The seconds in which a run can be taken back are its as well."""
        self.offer("gated", step("post"), expires="undo_seconds = 60")
        first = self.submit()
        self.approve_and_grant(first, self.wish(ANY_TEXT))
        run = self.submit()
        self.assertIs(run.state, RunState.APPROVED)
        self.sync(self.runner.submission.withdraw(run.id, AGENT, None))
        self.clock.advance(60)
        self.assertEqual([self.state(each) for each in (first, run)], [RunState.COMPLETED, RunState.CANCELLED])


class IssueTests(GrantedCase):
    """A grant that is made."""

    def problems(self, wish: NewGrant, run: Run | None = None) -> list[Any]:
        """Where a wish is refused; nothing is granted or decided then."""
        run = self.submit() if run is None else run
        error = self.fails(self.runner.decisions.approve_and_grant(run.id, self.yes(run), wish), InvalidRequest)
        self.assertEqual((self.sync(self.runner.grants.grants()), self.state(run)), ((), RunState.PENDING))
        return [problem["pointer"] for problem in error.details["problems"]]

    def test_made(self) -> None:
        """Its call is approved by the person, and all of it is on record before it is in force."""
        run = self.submit(arguments={"text": "hello", "times": 2})
        approval, grant = self.approve_and_grant(
            run, self.wish(Predicate("times", PredicateKind.RANGE, {"maximum": 5}))
        )
        self.assertEqual(
            (approval.decided_by, approval.grant_id, self.state(run)), (OPERATOR.id, None, RunState.COMPLETED)
        )
        self.assertEqual((grant.exact, grant.run_id, grant.session_id), ({"text": "hello"}, run.id, "session-1"))
        (event,) = self.recorded("grant.issued")
        self.assertEqual((event.payload["exact"], event.payload["uses"], event.actor), ({"text": "hello"}, 3, OPERATOR))
        self.assertEqual(event.action, "gated")

    def test_every_fault(self) -> None:
        """Everything that is wrong with a wish is told at once."""

        def predicate(kind: PredicateKind, given_: Any, argument: str = "text") -> Predicate:
            return Predicate(argument, kind, given_)

        wrong = [
            predicate(PredicateKind.PATTERN, "("),
            predicate(PredicateKind.PATTERN, "(?i)hello"),
            predicate(PredicateKind.PATTERN, "é"),
            predicate(PredicateKind.PATTERN, "a" * 513),
            predicate(PredicateKind.RANGE, {"minimum": 3, "maximum": 2}),
            predicate(PredicateKind.RANGE, {"minimum": True}),
            predicate(PredicateKind.RANGE, {}),
            predicate(PredicateKind.RANGE, {"minimum": 1, "more": 2}),
            predicate(PredicateKind.DOMAIN, []),
            predicate(PredicateKind.DOMAIN, ["localhost"]),
            predicate(PredicateKind.DOMAIN, "example.com"),
            predicate(PredicateKind.ONE_OF, []),
            predicate(PredicateKind.ONE_OF, "abc"),
            predicate(PredicateKind.ANY, 1),
            predicate(PredicateKind.EQUALS, 2**60),
            predicate(PredicateKind.ANY, None, "unknown"),
        ]
        found = self.problems(self.wish(*wrong, uses=0, not_after=utc(0)))
        self.assertEqual(found[:2], ["/grant/uses", "/grant/not_after"])
        for position in range(len(wrong) - 1):
            self.assertIn(f"/grant/predicates/{position}/given", found)
        self.assertIn("/grant/predicates/15/argument", found)

    def test_written_forms(self) -> None:
        """Domains are kept in their ASCII form; a question mark after a bracket that is no group is no flag."""
        domains = Predicate("text", PredicateKind.DOMAIN, ["MÜNCHEN.de".lower(), "*.A.org"])
        grant = self.grant(domains, arguments={"text": "x@b.a.org"})
        self.assertEqual(grant.predicates[0].given, ["xn--mnchen-3ya.de", "*.a.org"])
        self.grant(Predicate("text", PredicateKind.PATTERN, r"\(?hello\)?(?:!|[?])*"))

    def test_refused(self) -> None:
        """What is too much, does not allow its own call, or is for nobody's session cannot be granted.

        What would have to stay the same is not kept if it is very long; naming it makes it short.
        """
        ahead = utc(self.clock.seconds()) + timedelta(days=90, seconds=1)
        self.assertEqual(self.problems(self.wish(uses=1001, not_after=ahead)), ["/grant/uses", "/grant/not_after"])
        others = Predicate("text", PredicateKind.ONE_OF, ["a"]), Predicate("times", PredicateKind.RANGE, {"minimum": 0})
        for other in others:
            self.assertEqual(self.problems(self.wish(other)), ["/grant/predicates/0"])
        self.assertEqual(self.problems(self.wish(), self.submit(session=None)), ["/grant/session"])
        run = self.submit(arguments={"text": "x" * 20_000})
        self.assertEqual(self.problems(self.wish(), run), ["/grant/predicates"])
        self.approve_and_grant(run, self.wish(ANY_TEXT))

    def test_most(self) -> None:
        """Only so many are in force at once, and the call waits on."""
        for number in range(MOST_LIVE_GRANTS):
            self.grants.put(example_grant(f"grant-{number}", not_after=utc(self.clock.seconds() + 60)))
        run = self.submit()
        self.fails(self.runner.decisions.approve_and_grant(run.id, self.yes(run), self.wish()), Conflict)
        self.assertIs(self.state(run), RunState.PENDING)

    def test_not_decided(self) -> None:
        """Where the call is not approved after all, the grant is revoked, on record; while locked there is none."""
        run = self.submit()
        decision = self.yes(run)
        self.sync(self.runner.limits.pause(None, "stop", OPERATOR))
        self.fails(self.runner.decisions.approve_and_grant(run.id, decision, self.wish(ANY_TEXT)), Paused)
        (standing,) = self.sync(self.runner.grants.grants())
        self.assertEqual(standing.state, "revoked")
        self.assertEqual([len(self.recorded(each)) for each in ("grant.issued", "grant.revoked")], [1, 1])
        self.vault.lock()
        self.fails(self.runner.decisions.approve_and_grant(run.id, decision, self.wish(ANY_TEXT)), VaultLocked)
        self.assertEqual((self.state(run), len(self.grants.all())), (RunState.PENDING, 1))

    def test_suggested(self) -> None:
        """Where an argument is an address, or some, its domains are suggested."""
        run = self.submit(arguments={"text": "me@Example.com"})
        approval = self.shown(run)
        suggested = self.runner.decisions.suggested(approval)
        self.assertEqual(suggested, (Predicate("text", PredicateKind.DOMAIN, ["example.com"]),))
        for text in ("hello", "Me <me@example.com>", "me@example.com, you@example.com"):
            other = evolve(approval, run=evolve(approval.run, arguments={"text": text, "times": 3, "more": []}))
            self.assertEqual(self.runner.decisions.suggested(other), ())


class RevokeTests(GrantedCase):
    """A grant that is taken back."""

    def test_revoked(self) -> None:
        """From then on the operator is asked; told twice, it is on record once, before the operator is told so."""
        grant = self.grant(ANY_TEXT)
        self.revoke(grant)
        watermark = self.sync(self.store.watermarks.all())["vault memory"]
        self.assertEqual(int(watermark.split()[0]), self.control.file_revision)
        self.revoke(grant)
        self.assertIs(self.submit().state, RunState.PENDING)
        self.assertEqual((self.standing(grant).state, len(self.recorded("grant.revoked"))), ("revoked", 1))
        self.fails(self.runner.grants.revoke_grant("no", OPERATOR), NotFound)
        self.fails(self.runner.grants.grant("no"), NotFound)

    def test_approved_by_it(self) -> None:
        """What it approved and has not begun is asked about."""
        self.offer("gated", step("post"), expires="undo_seconds = 60")
        grant = self.grant(ANY_TEXT)
        run = self.submit()
        self.revoke(grant)
        self.clock.advance(60)
        self.assertIs(self.state(run), RunState.PENDING)
        approval = self.shown(run)
        self.assertEqual((approval.stale, approval.grant_id), ("The grant that allowed it was revoked.", None))
        self.assertNotIn("tamper.detected", self.events(run))

    def test_over_before_it_begins(self) -> None:
        """So is what was approved in the last moment of one that is over by then."""
        self.offer("gated", step("post"), expires="undo_seconds = 60")
        self.grant(ANY_TEXT)
        self.clock.advance(3570)
        run = self.submit()
        self.assertIs(run.state, RunState.APPROVED)
        self.clock.advance(60)
        self.assertIs(self.state(run), RunState.PENDING)


class SuspensionTests(GrantedCase):
    """What a grant stands on has changed."""

    def suspended(self, *calls: str) -> str:
        """Why a grant that was made before allows nothing now; it is told once."""
        self.assertIs(self.submit().state, RunState.PENDING)
        (standing,) = self.sync(self.runner.grants.grants())
        self.sync(self.runner.grants.grants())
        self.assertEqual((standing.state, standing.grant.used), ("live", 0))
        (event,) = self.recorded("grant.suspended")
        self.assertEqual((event.payload["grant"], event.payload["reason"]), (standing.grant.id, standing.suspended))
        return standing.suspended or ""

    def test_what_it_uses(self) -> None:
        """Another text of the action, content or base URL of the connector, or binding of it; or no trust."""
        described = scripted_description()
        content = evolve(described, content_hash="sha256:" + "b" * 64)
        moved = evolve(described, base_url="https://scripted.invalid/v2")
        bound = new_binding("x", connector="local://test/scripted")
        for change, why in (
            (lambda: self.replace(content), "content of the connector of step only"),
            (lambda: self.replace(moved), "the base URL of step only"),
            (lambda: self.bindings.add(bound), "the credential of step only"),
            (lambda: self.offer("gated", step("post"), body="Other."), "the action's file"),
        ):
            self.setUp()
            grant = self.grant(ANY_TEXT)
            change()
            self.assertIn(why, self.suspended())
        self.offer("gated", step("post"))  # as it was
        self.assertIs(self.state(self.submit()), RunState.COMPLETED)
        self.trust.remove(TrustKind.ACTION, "gated")
        self.assertIn("It cannot be used now", self.standing(grant).suspended or "")

    def replace(self, description: ConnectorDescription) -> None:
        """Put another connector, trusted, in the place of the one that is there."""
        self.connectors.add(ScriptedConnector(description, clock=self.clock))
        self.believe_connectors()
        self.runner.check_changes()

    def test_before_it_begins(self) -> None:
        """What it approved and has not begun is asked about where what it stands on changes meanwhile."""
        self.offer("gated", step("post"), expires="undo_seconds = 60")
        self.grant(ANY_TEXT)
        run = self.submit()
        self.write("gated", manifest("gated", step("post"), expires="undo_seconds = 60", body="Other."))
        self.clock.advance(60)
        self.assertEqual((self.state(run), self.connector.sendings[1:]), (RunState.PENDING, []))


class TamperTests(GrantedCase):
    """Rows are not authority."""

    def held_by_grant(self) -> tuple[Run, Any]:
        """A run that a grant approved and that has not begun when the daemon ends."""
        self.offer("gated", step("post"), expires="undo_seconds = 60")
        grant = self.grant(ANY_TEXT)
        run = self.submit(arguments={"text": "held"})
        self.sync(self.runner.stop(1.0))
        return run, grant

    def assert_caught(self, run: Run) -> None:
        """When it may begin it is asked about, and that is on record."""
        self.clock.advance(61)
        self.restart()
        self.assertIs(self.state(run), RunState.PENDING)
        self.assertIn("tamper.detected", self.events(run))
        self.assertNotIn(b"held", b"".join(each.request.body or b"" for each in self.connector.sendings))

    def test_written(self) -> None:
        """A decision is none by a grant that the vault lacks, or that its row does not name, or where it hides one."""
        hidden = "UPDATE approvals SET grant_id = NULL, decided_by = 'operator-1' WHERE run_id = ?"
        for change in (
            lambda run, grant: self.grants.void(),
            lambda run, grant: self.sql("UPDATE approvals SET grant_id = 'another' WHERE run_id = ?", run.id),
            lambda run, grant: (self.grants.revoke(grant.id, utc(self.clock.seconds())), self.sql(hidden, run.id)),
        ):
            self.setUp()
            run, grant = self.held_by_grant()
            change(run, grant)
            self.assert_caught(run)

    def test_as_if_a_grant(self) -> None:
        """A waiting row that says a grant had approved it is none."""
        run, grant = self.held_by_grant()
        forged = self.sync(self.store.runs.approval(run.id))
        assert forged is not None
        self.restart()
        self.revoke(grant)
        waiting = self.submit(arguments={"text": "held too"})
        self.sync(self.runner.stop(1.0))
        self.sql(
            "UPDATE approvals SET (approved, decided_at, decided_by, not_after, decision_mark, grant_id) ="
            " (SELECT approved, decided_at, decided_by, not_after, decision_mark, grant_id FROM approvals"
            " WHERE run_id = ?) WHERE run_id = ?",
            run.id,
            waiting.id,
        )
        self.sql("UPDATE runs SET state = 'approved' WHERE id = ?", waiting.id)
        self.assert_caught(waiting)

    def test_crash_after_the_use(self) -> None:
        """Who ends between the use and the row has lost a use, and nothing was sent by it."""
        grant = self.grant(ANY_TEXT)
        sent, use = len(self.connector.sendings), self.grants.use

        def crash(*args: Any) -> Any:
            use(*args)
            self.pool.hold()  # and is never heard of again
            self.addCleanup(self.pool.release)
            return self.grants.get(grant.id)

        self.patch(self.grants, "use", crash)
        self.assertNoResult(self.later(self.runner.submission.submit(self.call())))
        self.assertEqual((self.grants.all()[0].used, len(self.connector.sendings)), (1, sent))

    def test_vault_put_back(self) -> None:
        """An older vault brings no uses back: all grants are void with all trust."""
        grant = self.grant(ANY_TEXT)
        self.submit()
        self.sync(self.runner.stop(1.0))
        self.control.file_revision -= 1
        self.restart()
        self.assertIsNone(self.grants.get(grant.id))

    def test_never_unlocked(self) -> None:
        """A life in which the vault was never opened knows of no grant, and asks."""
        self.grant(ANY_TEXT)
        self.unlock_anew(VaultState.LOCKED)
        self.restart()
        self.fails(self.runner.grants.grants(), VaultLocked)
        self.assertIs(self.submit().state, RunState.PENDING)


class PreviewTests(PreviewedCase, GrantedCase):
    """Grants of an action that shows the service's side."""

    def test_decided_once_it_is_there(self) -> None:
        """The call is decided when its preview came, bound to it, and done if that is still the same."""
        self.grant(ANY_TEXT)
        run = self.submit(arguments={"text": "another"})
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(
            self.events(run)[:4], ["approval.requested", "approval.previewed", "grant.used", "approval.approved"]
        )

    def test_unavailable(self) -> None:
        """Where there is none to be had the operator is asked, and no use is counted."""
        grant = self.grant(ANY_TEXT)
        self.answer(Outcome(fault=Fault("network_error", "no"), sent=False))
        run = self.submit(arguments={"text": "another"})
        self.assertEqual((self.state(run), self.standing(grant).grant.used), (RunState.PENDING, 0))

    def test_another_before_it_begins(self) -> None:
        """Where it shows something else when the run is to begin, the operator is asked."""
        grant = self.grant(ANY_TEXT)
        looks = iter([Outcome({"subject": "one", "etag": "v1"}), Outcome({"subject": "two", "etag": "v1"})])
        self.connector.shows["look"] = lambda: next(looks, Outcome({"subject": "two", "etag": "v1"}))
        run = self.submit(arguments={"text": "another"})
        self.assertEqual((self.state(run), self.standing(grant).grant.used), (RunState.PENDING, 1))

    def test_what_is_asked_anew(self) -> None:
        """What the operator is asked again is the operator's to answer, whatever a grant would allow."""
        late: Deferred[Outcome] = Deferred()
        self.grant(ANY_TEXT)
        self.answer(late)
        run = self.submit(arguments={"text": "another"})
        self.sync(self.runner.submission.withdraw(run.id, AGENT, None))
        late.callback(Outcome({"subject": "late"}))
        self.assertIs(self.state(run), RunState.CANCELLED)


class MatchingTests(GrantedCase):
    """What is let through, against a plain model of it."""

    @settings(deadline=None, max_examples=40)
    @given(st.text(max_size=4), st.none() | st.integers(-2, 6))
    def test_model(self, text: str, times: int | None) -> None:
        """Exactly the calls with this text, and a number of 1 to 4."""
        if not self.grants.all():
            between = Predicate("times", PredicateKind.RANGE, {"minimum": 1, "maximum": 4})
            self.limits = PendingLimits(10_000, 10_000, 10_000)
            self.restart()
            self.grant(between, arguments={"text": "a", "times": 2}, uses=1000)
        call = {"text": text} if times is None else {"text": text, "times": times}
        allowed = text == "a" and times is not None and 1 <= times <= 4
        state = self.state(self.submit(arguments=call))
        self.assertIs(state, RunState.COMPLETED if allowed else RunState.PENDING)
