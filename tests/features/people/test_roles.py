"""Each role does what it may, and nothing else; a change applies to the next request."""

from __future__ import annotations

from typing import Any

from treq.testing import StubTreq

from aileron.api._sites import operator_routes
from aileron.api.roles import ACCOUNT_ONLY, LEAST_ROLES, OPERATOR_ONLY, find_least_role, require_role
from aileron.client import item_of
from aileron.features import FeatureSet
from aileron.features.people.running import ROUTES as PEOPLE_ROUTES
from aileron.features.phone._entrance import ROUTES
from aileron.model.audit import Actor
from aileron.model.errors import Forbidden
from aileron.model.people import Role
from aileron.model.runs import Assertion, Call, Decision, RunState
from aileron.model.signing import write_statement
from aileron.testing import MemoryOperators, SigningBrowser

from .case import OPERATOR, PeopleCase


class TableTests(PeopleCase):
    """The table of the least roles."""

    def test_names(self) -> None:
        """Each name in the table is that of a route, and no route is in both parts."""
        names = {endpoint.name for endpoint, _ in operator_routes(FeatureSet()).endpoints}
        self.assertLessEqual(set(LEAST_ROLES) | OPERATOR_ONLY, names)
        self.assertFalse(set(LEAST_ROLES) & OPERATOR_ONLY)

    def test_unlisted(self) -> None:
        """Every other route of the operator needs an administrator, also one that is added later."""
        for endpoint, _ in operator_routes(FeatureSet()).endpoints:
            if endpoint.name not in LEAST_ROLES:
                self.assertIs(find_least_role(endpoint.name), Role.ADMINISTRATOR, endpoint.name)
                for role in (Role.VIEWER, Role.APPROVER):
                    self.assertRaises(Forbidden, require_role, endpoint.name, role)
        self.assertIs(find_least_role("made_next_year"), Role.ADMINISTRATOR)

    def test_writes(self) -> None:
        """A viewer may call nothing that changes something, but log out and manage the own passkeys."""
        for endpoint, _ in operator_routes(FeatureSet()).endpoints:
            if endpoint.method != "GET" and find_least_role(endpoint.name) is Role.VIEWER:
                self.assertIn(endpoint.name, {"logout"} | ACCOUNT_ONLY)

    def test_approvers(self) -> None:
        """An approver may call no route about credentials, files, trust, settings or accounts, but the own passkeys."""
        mine = {name for name, role in LEAST_ROLES.items() if role is not Role.ADMINISTRATOR} - ACCOUNT_ONLY
        for word in ("bind", "trust", "connector", "install", "people", "person", "grant", "passkey", "resume", "lock"):
            self.assertEqual([name for name in mine if word in name], [], word)


class RoleTests(PeopleCase):
    """What people with different roles get at the public name."""

    def test_every_route(self) -> None:
        """Every route that is served there is refused to a role that is too low, before anything else is looked at."""
        pages = {role: self.joined(f"a-{role.value}", role) for role in Role}
        for endpoint, _ in operator_routes(FeatureSet()).endpoints:
            if endpoint.name not in (*ROUTES, *PEOPLE_ROUTES):
                continue
            path = endpoint.path.replace("<path:", "<").replace("<", "").replace(">", "")
            for role, page in pages.items():
                if endpoint.name in ("logout", "follow_events"):
                    continue
                self.clock.advance(5)
                heard = self.send(endpoint.method, path, None if endpoint.method == "GET" else {}, page)
                may = role.covers(find_least_role(endpoint.name)) and endpoint.name not in OPERATOR_ONLY
                self.assertEqual(heard.status == 403, not may, (endpoint.name, role, heard.text))

    def test_viewer(self) -> None:
        """A viewer sees the requests; the page learns that it decides nothing, and why."""
        page = self.joined(role=Role.VIEWER)
        heard = self.send("GET", "/fragments/approvals", browser=page)
        self.assertEqual(heard.status, 200)
        self.assertEqual((heard.headers["x-aileron-level"], heard.headers["x-aileron-role"]), ("reading", "viewer"))
        refused = self.send("POST", "/v1/pause", {}, page)
        self.assertEqual(refused.status, 403)
        self.assertIn("Your role is viewer", refused.text)

    def test_approver(self) -> None:
        """The page of an approver may decide."""
        heard = self.send("GET", "/fragments/approvals", browser=self.joined())
        self.assertEqual((heard.headers["x-aileron-level"], heard.headers["x-aileron-role"]), ("deciding", "approver"))

    def test_phone(self) -> None:
        """The operator's own phone has no role, and does what it did."""
        self.add_phone()
        heard = self.send("GET", "/fragments/approvals", browser=self.sign_in())
        self.assertNotIn("x-aileron-role", heard.headers)

    def test_removed(self) -> None:
        """A removed person's cookie and key open nothing at the next request, and the login is gone."""
        page = self.joined()
        self.now(self.accounts.remove("alice", OPERATOR))
        for path in ("/fragments/approvals", "/v1/people"):
            self.assertEqual(self.send("GET", path, browser=page).status, 401)
        self.assertEqual(self.operators.list(), ())

    def test_changed(self) -> None:
        """A person whose role was changed signs in again, with the new role."""
        page = self.joined(role=Role.ADMINISTRATOR)
        self.now(self.accounts.change_role("alice", Role.VIEWER, OPERATOR))
        self.assertEqual(self.send("GET", "/v1/people", browser=page).status, 401)

    def test_elsewhere(self) -> None:
        """A person of one home is nobody at another, which has another vault and database."""
        page = self.joined()
        other = PeopleCase()
        other.setUp()
        self.addCleanup(other.doCleanups)
        self.assertEqual(other.send("GET", "/fragments/approvals", browser=page).status, 401)

    def test_feature_off(self) -> None:
        """Where nothing serves accounts, no login of one is valid."""
        page = self.joined()
        self.running.accounts.clear()
        self.treq = StubTreq(self.running._make_site(self.deps).resource)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 401)

    def test_stream(self) -> None:
        """The stream of events of a removed person ends."""
        page = self.joined()
        sent = self.treq.request(
            "GET",
            "https://phone.example.org/v1/events",
            headers=page.headers("__Host-aileron_life", "GET", "/v1/events"),
        )
        self.treq.flush()
        response = self.successResultOf(sent)
        body = response.content()
        self.now(self.accounts.remove("alice", OPERATOR))
        self.clock.advance(15)
        self.treq.flush()
        self.assertNotIn(b"record", self.successResultOf(body).partition(b"ready")[2])


class DecidingTests(PeopleCase):
    """People decide with the key of their login."""

    def setUp(self) -> None:
        """A request."""
        super().setUp()
        run = self.now(self.runner.submit(Call("ship-update", {}, Actor("agent", "s"))))
        self.run_id = run.id
        self.digest = self.now(self.runner.approval(run.id)).digest
        self.path = f"/v1/action-approvals/{run.id}"

    def signed(self, page: SigningBrowser, decision: dict[str, Any]) -> dict[str, Any]:
        """A decision with the signature of a page's key."""
        items = [item_of(self.run_id, decision)]
        text, signature = page.sign_text(lambda nonce: write_statement(MemoryOperators.INSTANCE, nonce, items))
        return {**decision, "signed": {"statement": text, "signature": signature}}

    def decide(self, page: SigningBrowser, decision: dict[str, Any]) -> Any:
        """Send a decision, and return the answer."""
        return self.send("POST", f"{self.path}/decide", decision, page)

    def state(self) -> RunState:
        """The state of the run."""
        found: RunState = self.now(self.runner.approval(self.run_id)).run.state
        return found

    def test_approves(self) -> None:
        """An approver's decision names the person."""
        page = self.joined()
        heard = self.decide(page, self.signed(page, {"approved": True, "digest": self.digest}))
        self.assertEqual(heard.status, 200, heard.text)
        decided = self.now(self.runner.approval(self.run_id)).decided_by
        self.assertEqual(Actor("human", decided).person, "alice")

    def test_viewer(self) -> None:
        """A viewer decides nothing, not even with a signature."""
        page = self.joined(role=Role.VIEWER)
        for approved in (True, False):
            heard = self.decide(page, self.signed(page, {"approved": approved, "digest": self.digest}))
            self.assertEqual(heard.status, 403)
        self.assertEqual(self.state(), RunState.PENDING)

    def test_of_another(self) -> None:
        """A signature by the key of another person's login is refused."""
        alice, bob = self.joined(), self.joined("bob")
        login = next(each.id for each in self.operators.list() if each.id.startswith("alice."))
        for page, may in ((bob, False), (alice, True)):
            signed = self.signed(page, {"approved": True, "digest": self.digest})["signed"]
            assertion = Assertion(signed["statement"], signature=signed["signature"])
            given = Decision(True, self.digest, login, assertion=assertion)
            if may:
                self.assertIsNotNone(self.approvers.admit("ship-update", self.run_id, given, None).signed)
            else:
                self.assertRaises(Forbidden, self.approvers.admit, "ship-update", self.run_id, given, None)

    def test_passkey(self) -> None:
        """The operator's passkey signs nothing in a person's login."""
        page = self.joined()
        credential = {"nonce": "A", "credential": {"id": "x", "response": {}}}
        heard = self.decide(page, {"approved": True, "digest": self.digest, "passkey": credential})
        self.assertEqual(heard.status, 403)
        self.assertEqual(self.state(), RunState.PENDING)

    def test_forced(self) -> None:
        """An approver forces nothing."""
        page = self.joined()
        heard = self.decide(page, {"approved": True, "digest": self.digest, "forced": True, "reason": "Now."})
        self.assertEqual(heard.status, 403)
        self.assertIn("administrator", heard.text)
        self.assertEqual(self.state(), RunState.PENDING)

    def test_forced_denial(self) -> None:
        """A denial that says that it is forced is a denial, which an approver may give."""
        page = self.joined()
        heard = self.decide(page, self.signed(page, {"approved": False, "digest": self.digest, "forced": True}))
        self.assertEqual((heard.status, self.state()), (200, RunState.DENIED), heard.text)

    def test_grant(self) -> None:
        """An approver issues no grant with an approval."""
        page = self.joined()
        grant = {"uses": 1, "not_after": "2026-01-01T00:00:00Z"}
        heard = self.decide(page, {"approved": True, "digest": self.digest, "grant": grant})
        self.assertEqual(heard.status, 403)
        self.assertIn("administrator", heard.text)
        self.assertEqual(self.state(), RunState.PENDING)
