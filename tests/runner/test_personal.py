"""Credentials that belong to one account: its agents alone use them, whatever way a run takes."""

from __future__ import annotations

from aileron.base.json import utc
from aileron.model.authority import NewGrant
from aileron.model.connectors import CredentialNeed, Outcome
from aileron.model.errors import BindingRequired, Forbidden
from aileron.model.people import Owner
from aileron.model.runs import Run, RunState
from aileron.model.vault import NewBinding, Scope
from aileron.testing import ScriptedConnector, scripted_description

from .kit import OPERATOR, manifest, step
from .test_inverse import BACK, UNDO
from .test_owners import ALICE, OwnersCase

BOB = Owner("per_bob", "bob")
FQN = "local://test/scripted"
NEED = CredentialNeed("api_key", "Authorization", "Bearer {key}")
MINE, SHARED = b"of-alice", b"of-everybody"


class PersonalCase(OwnersCase):
    """A connector with a shared credential and one of alice."""

    def setUp(self) -> None:
        super().setUp()
        description = scripted_description(credential=NEED)
        self.connector = ScriptedConnector(description, self.clock)
        self.connectors._connectors[description.name] = self.connector
        self.believe_connectors()
        self.scope = Scope(description.hosts, str(description.base_url), NEED.header, NEED.format)
        self.bind("alice", MINE, ALICE)
        self.bind("default", SHARED)

    def bind(self, identity: str, secret: bytes, owner: Owner | None = None) -> None:
        """Bind a credential."""
        self.bindings.add(NewBinding("api_key", "scripted", identity, FQN, secret, scope=self.scope, owner=owner))
        self.runner.check_changes()

    def revoke(self, identity: str) -> None:
        """Revoke a credential."""
        self.sync(self.bindings.revoke(f"api_key/scripted/{identity}"))
        self.runner.check_changes()

    def used(self) -> list[bytes | None]:
        """The secrets that were sent since the last look."""
        found = [each.secret for each in self.connector.sendings]
        self.connector.sendings.clear()
        return found


class PersonalTests(PersonalCase):
    """Which credential a run uses."""

    def test_own(self) -> None:
        """A person's agents use the person's credential; agents of others, and of the operator, the shared one."""
        for session, secret in (("of-alice", MINE), ("of-bob", SHARED), ("session-1", SHARED), (None, SHARED)):
            self.approve(self.submit(session=session))
            self.submit("open", session=session)
            self.assertEqual(self.used(), [secret, secret], session)

    def test_none(self) -> None:
        """Without a shared one, others have none: nothing is sent."""
        self.revoke("default")
        for session in ("of-bob", "session-1", None):
            for action in ("gated", "open"):
                error = self.fails(self.runner.submission.submit(self.call(action, session=session)), BindingRequired)
                self.assertNotIn("alice", error.message)
        self.assertEqual(self.used(), [])

    def test_shown(self) -> None:
        """The approval shows whose credential it is, and the shared one has no owner."""
        shown = [self.shown(self.submit(session=each)).review.steps[0].binding for each in ("of-alice", "of-bob")]
        self.assertEqual([each and each.owner for each in shown], [ALICE, None])

    def test_added_since(self) -> None:
        """A credential of the person that was added after the approval is not used without another one."""
        self.revoke("alice")
        self.offer("ruled", step("post"), expires="undo_seconds = 60")
        run = self.submit("ruled", session="of-alice")
        self.approve(run)
        self.bind("alice", MINE, ALICE)
        self.clock.advance(120)
        self.assertEqual((self.state(run), self.used()), (RunState.PENDING, []))

    def test_gone_since(self) -> None:
        """If the person's credential is revoked after the approval, the shared one is not used in its place."""
        self.offer("ruled", step("post"), expires="undo_seconds = 60")
        run = self.submit("ruled", session="of-alice")
        self.approve(run)
        self.revoke("alice")
        self.clock.advance(120)
        self.assertEqual((self.state(run), self.used()), (RunState.PENDING, []))

    def test_edited(self) -> None:
        """An edit of another person's request changes nothing about its credential."""
        run = self.submit(session="of-bob")
        self.sync(self.runner.decisions.edit(run.id, {"text": "other"}, None, type(OPERATOR)("human", "alice.ab12")))
        self.approve(run)
        self.assertEqual(self.used(), [SHARED])

    def test_undone(self) -> None:
        """What undoes a run uses the credential of the run's owner, whoever asks for it; so for everybody else."""
        self.write("open", manifest("open", step("post"), UNDO, gated=False))
        self.offer("take-back", BACK, gated=False)
        for session, secret in (("of-alice", MINE), ("of-bob", SHARED)):
            self.connector.script.append(Outcome({"ts": "17.4"}))
            run = self.submit("open", {"text": "hello", "times": 2}, session=session)
            undoing = self.sync(self.runner.submission.undo(run.id, OPERATOR))
            self.approve(undoing)
            self.assertEqual(self.used(), [secret, secret], session)

    def test_replayed(self) -> None:
        """The idempotency key of another person's call makes a run of one's own."""
        first = self.submit(session="of-alice", key="k")
        second = self.submit(session="of-bob", key="k")
        self.assertNotEqual(first.id, second.id)
        self.approve(second)
        self.assertEqual(self.used(), [SHARED])


class GrantTests(PersonalCase):
    """Standing grants."""

    def granted(self, session: str | None) -> Run:
        """Approve a request of this session, and grant more like it, to every session."""
        run = self.submit(session=session)
        wish = NewGrant((), 5, utc(self.clock.seconds() + 3600.0), session=False)
        self.sync(self.runner.decisions.approve_and_grant(run.id, self.yes(run), wish))
        return run

    def test_owner(self) -> None:
        """A grant for alice's agents allows nothing to bob's, nor to the operator's; and the other way round."""
        self.granted("of-alice")
        self.assertEqual(self.used(), [MINE])
        self.assertIs(self.submit(session="of-alice").state, RunState.APPROVED)
        for session in ("of-bob", "session-1"):
            self.assertIs(self.submit(session=session).state, RunState.PENDING)
        self.granted("session-1")
        self.assertIs(self.submit(session="of-bob").state, RunState.PENDING)


class ExecutorTests(PersonalCase):
    """The last check, where the credential is taken."""

    def test_another(self) -> None:
        """A step that was planned with another person's credential sends nothing, in no way."""
        planner, executor = self.runner.submission._planner, self.runner.submission._executor
        planned = planner.plan_read(FQN, "look", {"text": "a"}, ALICE)
        self.assertEqual(planned.binding and planned.binding.owner, ALICE)
        for owner in (BOB, None):
            outcome = self.sync(executor.preview(planned, owner, 5.0))
            self.assertEqual(outcome.fault and outcome.fault.kind, Forbidden.kind)
        self.assertEqual(self.used(), [])
        self.assertIsNone(self.sync(executor.preview(planned, ALICE, 5.0)).fault)
        self.assertEqual(self.used(), [MINE])
