"""Agents of accounts: sessions that belong to a person, and end with the account."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from aileron.api._sessions import CHECK_SECONDS
from aileron.api.tokens import token_digest
from aileron.base.json import utc
from aileron.features.people._accounts import Accounts
from aileron.model.audit import Actor
from aileron.model.connectors import CredentialNeed
from aileron.model.people import AccountLogin, Owner, PersonAccount, Role
from aileron.model.queries import AuditQuery
from aileron.model.runs import Call, Run, RunState
from aileron.model.sessions import Session
from aileron.testing import MemoryConnectors, ScriptedConnector, scripted_description

from .case import OPERATOR, PeopleCase

ALICE, BOB = Owner("per_1", "alice"), Owner("per_2", "bob")


class AgentsCase(PeopleCase):
    """People whose agents are elsewhere."""

    def setUp(self) -> None:
        super().setUp()
        self.build(is_removed=lambda owner: owner.account not in self.book.people())

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the operator's site, with a login of the operator."""
        return self.operator.ask(method, path, self.operator_token(), body)

    def connect(self, name: str = "alice") -> dict[str, str]:
        """A session of an agent of this account, as the operator opens it."""
        opened = self.ask("POST", f"/v1/people/{name}/sessions", {"agent": "opencode", "minutes": 60})
        self.assertEqual(opened.status, 201, opened.text)
        told: dict[str, str] = opened.json
        return told

    def session(self, opened: dict[str, str]) -> Session:
        """The session as it is stored."""
        found = self.now(self.store.sessions.get(opened["id"]))
        assert isinstance(found, Session)
        return found

    def request(self, session: Session | None) -> Run:
        """A request of this session's agent."""
        actor = Actor("agent", "none" if session is None else session.id)
        run: Run = self.now(self.runner.submit(Call("ship-update", {}, actor, session)))
        return run


class ConnectTests(AgentsCase):
    """How a session gets its owner."""

    def test_operator(self) -> None:
        """The operator opens it for an account; it is on record, and the agent lists its own with the account."""
        self.joined()
        opened = self.connect()
        self.assertEqual(self.session(opened).owner, self.account().owner)
        [item] = self.agents.ask("GET", "/v1/sessions", opened["token"]).json["items"]
        self.assertEqual(item["owner"]["name"], "alice")
        [record] = self.now(self.store.audit.list(AuditQuery(types=("session.started",)))).items
        self.assertEqual(record.event.payload["owner"], {"account": self.account().id, "name": "alice"})
        self.assertEqual(record.event.actor.type, "human")

    def test_own(self) -> None:
        """A person opens one for their own account at the public name, and an administrator only for their own too."""
        for name, role, status in (("alice", Role.APPROVER, 201), ("root", Role.ADMINISTRATOR, 201)):
            page = self.joined(name, role)
            body = {"agent": "opencode", "minutes": 60}
            self.assertEqual(self.send("POST", f"/v1/people/{name}/sessions", body, page).status, status)

    def test_another(self) -> None:
        """Nobody opens one for somebody else, and a viewer none at all."""
        self.joined("bob")
        body = {"agent": "opencode", "minutes": 60}
        for name, role in (("alice", Role.APPROVER), ("root", Role.ADMINISTRATOR), ("vera", Role.VIEWER)):
            page = self.joined(name, role)
            self.assertEqual(self.send("POST", "/v1/people/bob/sessions", body, page).status, 403)
        self.assertEqual(self.send("POST", "/v1/people/vera/sessions", body, page).status, 403)
        self.assertEqual(self.now(self.store.sessions.list(False, 10, None)).items, ())

    def test_same_name(self) -> None:
        """A person who is removed meanwhile opens none for the person who gets the name."""
        page, find_account = self.joined(), Accounts.find_account
        logins: list[AccountLogin] = []

        async def find_later(accounts: Accounts, login: AccountLogin) -> PersonAccount | None:
            logins.append(login)
            if len(logins) > 1:  # the first look is that of the guard
                await accounts.remove("alice", OPERATOR)
                await accounts.add("alice", Role.APPROVER, OPERATOR)
            return await find_account(accounts, login)

        self.patch(Accounts, "find_account", find_later)
        heard = self.send("POST", "/v1/people/alice/sessions", {"agent": "opencode", "minutes": 60}, page)
        self.assertEqual((heard.status, len(logins)), (401, 2))
        self.assertEqual(self.now(self.store.sessions.list(False, 10, None)).items, ())

    def test_launch_key(self) -> None:
        """Who has the launch key opens sessions of the operator alone, whatever is asked for."""
        self.joined()
        self.assertIsNone(self.session(self.open_session()).owner)
        body = {"agent": "a", "owner": {"account": self.account().id, "name": "alice"}}
        heard = self.agents.ask("POST", "/v1/sessions", "ail_l_" + "A" * 43, body)
        self.assertIn(heard.status, (400, 401))

    def test_unknown(self) -> None:
        """An account that does not exist, or that something else altered, has no agents."""
        body = {"agent": "opencode", "minutes": 60}
        self.assertEqual(self.ask("POST", "/v1/people/nobody/sessions", body).status, 404)
        self.joined()
        altered = evolve(self.account(), role=Role.ADMINISTRATOR)
        self.assertTrue(self.now(self.store.people.change(altered, altered.revision, ())))
        self.assertEqual(self.ask("POST", "/v1/people/alice/sessions", body).status, 409)


class PageTests(AgentsCase):
    """The page of a person's account."""

    PATH = "/fragments/settings/account"

    def test_own(self) -> None:
        """A person sees the own agents, with a button that ends each, and no token; a viewer has no agents."""
        page = self.joined()
        self.joined("bob")
        mine, other = self.connect(), self.connect("bob")
        drawn = self.send("GET", self.PATH, browser=page)
        self.assertIn(f"POST /v1/sessions/{mine['id']}/deny", drawn.text)
        self.assertNotIn(other["id"], drawn.text)
        self.assertNotIn(mine["token"], drawn.text)
        self.assertIn('id="connect-agent"', drawn.text)
        viewer = self.joined("vera", Role.VIEWER)
        self.assertNotIn("connect-agent", self.send("GET", self.PATH, browser=viewer).text)

    def test_ended(self) -> None:
        """The button ends the own session, which is then not listed."""
        page = self.joined()
        body = {"agent": "opencode", "minutes": 60}
        heard = self.send("POST", "/v1/people/alice/sessions", body, page)
        self.assertEqual(heard.status, 201)
        path = f"/v1/sessions/{heard.json['id']}/deny"
        self.assertEqual(self.send("POST", path, {"reason": "over"}, page).status, 200)
        self.assertNotIn(heard.json["id"], self.send("GET", self.PATH, browser=page).text)


class RemovedTests(AgentsCase):
    """The account is removed."""

    def test_ended(self) -> None:
        """Its sessions end at once and what they requested is withdrawn; those of others go on."""
        self.joined()
        self.joined("bob")
        opened, other = self.connect(), self.connect("bob")
        mine, others, operators = (self.request(each) for each in (self.session(opened), self.session(other), None))
        self.assertEqual(self.ask("DELETE", "/v1/people/alice").status, 200)
        self.assertFalse(self.session(opened).live)
        self.assertTrue(self.session(other).live)
        self.assertEqual(self.agents.ask("GET", "/v1/sessions", opened["token"]).status, 401)
        self.assertEqual(self.agents.ask("GET", "/v1/sessions", other["token"]).status, 200)
        states = [self.now(self.runner.run(each.id)).state for each in (mine, others, operators)]
        self.assertEqual(states, [RunState.CANCELLED, RunState.PENDING, RunState.PENDING])

    def test_next_request(self) -> None:
        """If the daemon is killed while it removes the account, the session's next request is refused and ends it."""
        self.joined()
        opened = self.connect()
        self.now(self.accounts.remove("alice", OPERATOR))
        self.assertTrue(self.session(opened).live)
        self.assertEqual(self.agents.ask("GET", "/v1/sessions", opened["token"]).status, 401)
        self.assertFalse(self.session(opened).live)
        [record] = self.now(self.store.audit.list(AuditQuery(types=("session.ended",)))).items
        self.assertEqual(record.event.payload["ending"], "account_removed")

    def test_without_request(self) -> None:
        """The keys for its traffic end within seconds too, without a request."""
        self.joined()
        opened = self.connect()
        self.now(self.accounts.remove("alice", OPERATOR))
        self.clock.advance(CHECK_SECONDS)
        self.now(self.deps.leases.end_lapsed_sessions())
        found = self.now(self.store.sessions.by_gateway_key(token_digest(opened["gateway_key"])))
        self.assertFalse(found.live)

    def test_changed(self) -> None:
        """A session goes on when the account gets another role or another link."""
        self.joined()
        opened = self.connect()
        self.now(self.accounts.change_role("alice", Role.VIEWER, OPERATOR))
        self.now(self.accounts.invite("alice", OPERATOR))
        self.assertEqual(self.agents.ask("GET", "/v1/sessions", opened["token"]).status, 200)


class OthersTests(AgentsCase):
    """An approver meets what another person's agent requested."""

    def setUp(self) -> None:
        super().setUp()
        self.page, self.root = self.joined("bob"), self.joined("root", Role.ADMINISTRATOR)
        self.own = self.joined()
        self.opened = self.connect()
        self.run_id = self.request(self.session(self.opened)).id
        self.path = f"/v1/action-approvals/{self.run_id}"

    def test_edit(self) -> None:
        """Another approver does not edit it; the person and an administrator do."""
        self.assertEqual(self.send("POST", f"{self.path}/edit", {"args": {}}, self.page).status, 403)
        for page in (self.own, self.root):
            self.assertEqual(self.send("POST", f"{self.path}/edit", {"args": {}}, page).status, 200)

    def test_snooze(self) -> None:
        """Another approver does not put it aside."""
        until = {"until": utc(self.clock.seconds() + 3600).isoformat().replace("+00:00", "Z")}
        self.assertEqual(self.send("POST", f"{self.path}/snooze", until, self.page).status, 403)
        self.assertNotEqual(self.send("POST", f"{self.path}/snooze", until, self.own).status, 403)

    def test_end(self) -> None:
        """Another approver does not end the session; the person does."""
        path = f"/v1/sessions/{self.opened['id']}/deny"
        self.assertEqual(self.send("POST", path, {}, self.page).status, 403)
        self.assertTrue(self.session(self.opened).live)
        self.assertEqual(self.send("POST", path, {}, self.own).status, 200)
        self.assertFalse(self.session(self.opened).live)

    def test_withdraw(self) -> None:
        """Everybody who may decide stops it."""
        self.assertEqual(self.send("POST", f"{self.path}/withdraw", {}, self.page).status, 200)


class FollowTests(AgentsCase):
    """What an agent reads of earlier sessions."""

    def test_owner(self) -> None:
        """A session resumes only sessions of the same account."""
        now = utc(self.clock.seconds())
        mine, later = (Session(each, "opencode", "/src", now, now, owner=ALICE) for each in "ab")
        self.assertTrue(later.follows(mine))
        for owner in (BOB, None):
            self.assertFalse(evolve(later, owner=owner).follows(mine))
            self.assertFalse(mine.follows(evolve(later, owner=owner)))


class CredentialTests(AgentsCase):
    """Credentials of an account."""

    def setUp(self) -> None:
        super().setUp()
        need = CredentialNeed("api_key", "Authorization", "Bearer {key}")
        self.build(connectors=MemoryConnectors.of([ScriptedConnector(scripted_description(credential=need))]))
        self.joined()

    def set_up(self, **more: str) -> Any:
        """Bind a credential."""
        body = {"service": "slack", "connector": "local://test/scripted", "secret": "canary-secret", **more}
        return self.ask("POST", "/v1/bindings/setup", body)

    def test_bound(self) -> None:
        """It is named after the account, and listed and recorded with it; a shared one has no owner."""
        made = self.set_up(owner="alice")
        self.assertEqual(made.status, 201, made.text)
        self.assertEqual((made.json["identity"], made.json["owner"]["name"]), ("alice", "alice"))
        self.assertNotIn("owner", self.set_up().json)
        self.assertEqual([each.owner for each in self.deps.bindings.list()], [self.account().owner, None])
        records = self.now(self.store.audit.list(AuditQuery(types=("binding.created",)))).items
        self.assertEqual([each.event.payload.get("owner", {}).get("name") for each in records], [None, "alice"])

    def test_refused(self) -> None:
        """An account that does not exist has none, and a target that is no connector is for everybody."""
        self.assertEqual(self.set_up(owner="nobody").status, 400)
        self.assertEqual(self.set_up(owner="alice", connector="gateway://openai").status, 400)
        self.assertEqual(self.deps.bindings.list(), ())

    def test_removed(self) -> None:
        """With the account its credentials are revoked, on record; the shared one stays."""
        self.set_up(owner="alice")
        self.set_up()
        self.assertEqual(self.ask("DELETE", "/v1/people/alice").status, 200)
        self.assertEqual([each.identity for each in self.deps.bindings.list()], ["default"])
        [record] = self.now(self.store.audit.list(AuditQuery(types=("binding.revoked",)))).items
        self.assertEqual(record.event.payload["owner"]["name"], "alice")
