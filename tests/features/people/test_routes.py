"""The routes by which accounts are managed, at the desk and at the public name."""

from __future__ import annotations

import re
from typing import Any

from attrs import evolve
from twisted.web.template import flattenString

from aileron.base.json import utc
from aileron.model.audit import Actor
from aileron.model.authority import PasskeyRule
from aileron.model.people import ApproverRule, PersonAccount, Role
from aileron.model.runs import Call
from aileron.testing import scripted_offer
from aileron.web.approvals.page import draw_asked_by
from tests.features.phone.case import PUBLIC

from .case import PASSPHRASE, PeopleCase


class RouteTests(PeopleCase):
    """The operator and administrators manage accounts."""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the operator's site, with a login of the operator."""
        return self.operator.ask(method, path, self.operator_token(), body)

    def test_whole(self) -> None:
        """An account is added, joined, listed, changed, invited again and removed."""
        made = self.ask("POST", "/v1/people", {"name": "alice", "role": "approver"})
        self.assertEqual(made.status, 201, made.text)
        base, _, code = made.json["url"].partition("/join#")
        self.assertEqual(base, PUBLIC)
        self.assertEqual(self.ask("GET", "/v1/people").json["items"][0]["state"], "invited")
        page, heard = self.enter("/join", {"code": code, "passphrase": PASSPHRASE})
        self.assertEqual(heard.status, 200)
        [item] = self.ask("GET", "/v1/people").json["items"]
        self.assertEqual((item["state"], item["role"], item["invited_until"]), ("active", "approver", None))
        changed = self.ask("POST", "/v1/people/alice/role", {"role": "viewer"})
        self.assertEqual(changed.json["role"], "viewer")
        self.assertEqual([each for each in self.operators.list() if each.account], [])
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 401)
        again = self.ask("POST", "/v1/people/alice/invite")
        self.assertNotEqual(again.json["url"], made.json["url"])
        self.assertEqual(self.ask("DELETE", "/v1/people/alice").json, {"name": "alice"})
        self.assertEqual(self.ask("GET", "/v1/people").json["items"], [])
        self.assertEqual(self.ask("DELETE", "/v1/people/alice").status, 404)

    def test_taken(self) -> None:
        """A name can be given once."""
        self.add()
        self.assertEqual(self.ask("POST", "/v1/people", {"name": "alice", "role": "viewer"}).status, 409)

    def test_names(self) -> None:
        """A name is short and plain: no dot, no slash, nothing that could pass for another one."""
        for name in ("", "Alice", "a.b", "a/b", "ops_1", "álice", "a b", "-a", "a" * 33, "alice\n"):
            self.assertEqual(self.ask("POST", "/v1/people", {"name": name, "role": "viewer"}).status, 400, name)
        self.assertEqual(self.ask("POST", "/v1/people", {"name": "alice", "role": "owner"}).status, 400)

    def test_administrator(self) -> None:
        """An administrator manages accounts at the public name, on the page too."""
        page = self.joined("root", Role.ADMINISTRATOR)
        made = self.send("POST", "/v1/people", {"name": "bob", "role": "viewer"}, page)
        self.assertEqual(made.status, 201, made.text)
        self.assertEqual(self.send("GET", "/fragments/settings/people", browser=page).status, 200)
        self.assertEqual(self.send("DELETE", "/v1/people/bob", {}, page).status, 200)

    def test_forged_role(self) -> None:
        """No header and no member of a body gives a role."""
        page = self.joined(role=Role.VIEWER)
        forged = {**page.headers("__Host-aileron_life", "GET", "/v1/people"), "X-Aileron-Role": "administrator"}
        self.assertEqual(self.send("GET", "/v1/people", headers=forged).status, 403)

    def test_cross_site(self) -> None:
        """A page of another site cannot make a browser that is signed in change an account."""
        page = self.joined("root", Role.ADMINISTRATOR)
        cookie = {"Cookie": f"__Host-aileron_life={page.cookie}", "Content-Type": "application/json"}
        heard = self.send("POST", "/v1/people", {"name": "evil", "role": "administrator"}, headers=cookie)
        self.assertEqual(heard.status, 401)

    def test_phone(self) -> None:
        """The operator's phone manages no accounts, and has no page of them."""
        self.add_phone()
        page = self.sign_in()
        for method, path, body in (
            ("GET", "/v1/people", None),
            ("POST", "/v1/people", {"name": "bob", "role": "administrator"}),
            ("GET", "/fragments/settings/people", None),
        ):
            self.assertEqual(self.send(method, path, body, page).status, 403, path)


class PageTests(PeopleCase):
    """The page of accounts."""

    def test_roles(self) -> None:
        """Only an administrator sees it at the public name."""
        for role in Role:
            page = self.joined(f"a-{role.value}", role)
            expected = 200 if role is Role.ADMINISTRATOR else 403
            self.assertEqual(self.send("GET", "/fragments/settings/people", browser=page).status, expected)

    def test_drawn(self) -> None:
        """It lists the accounts with buttons, and the settings lead to it."""
        self.add()
        browser, _ = self.operators.open_browser()
        drawn = self.desk("/fragments/settings/people", browser)
        self.assertIn("alice", drawn)
        self.assertIn("DELETE /v1/people/alice", drawn)
        self.assertIn("Invited", drawn)
        self.assertIn("/settings/people", self.desk("/fragments/settings", browser))

    def test_forged_name(self) -> None:
        """The buttons of a row that a program wrote lead nowhere else, whatever its name."""
        name = "../operator/sessions? #\u202e"
        forged = PersonAccount("per_f", name, Role.VIEWER, 1, utc(self.clock.seconds()))
        self.now(self.store.people.add(forged, ()))
        page = self.joined("root", Role.ADMINISTRATOR)
        drawn = self.send("GET", "/fragments/settings/people", browser=page).text
        paths = {each for each in re.findall(r'data-act="\S+ ([^"]*)"', drawn) if "root" not in each}
        base = "/v1/people/..%2Foperator%2Fsessions%3F%20%23%E2%80%AE"
        self.assertEqual(paths, {base, f"{base}/role"})


class RefusedTests(PeopleCase):
    """A request of an action whose rule names who may approve."""

    def setUp(self) -> None:
        """An action that only alice may approve, and a request of it."""
        super().setUp()
        offer = scripted_offer()
        rule = evolve(offer.action.approval, by=("alice",), not_requester=True)
        self.runner.offer(evolve(offer, action=evolve(offer.action, approval=rule)))
        self.run_id = self.now(self.runner.submit(Call("ship-update", {}, Actor("agent", "s")))).id

    def test_page(self) -> None:
        """Who may not approve sees the request, and why the button is disabled; who may sees no such words."""
        path = f"/fragments/approvals/{self.run_id}"
        self.assertNotIn("needs an approval by", self.send("GET", path, browser=self.joined()).text)
        bob = self.send("GET", path, browser=self.joined("bob"))
        self.assertEqual(bob.status, 200)
        self.assertIn("This action needs an approval by: alice.", bob.text)
        self.add_phone()
        mine = self.send("GET", path, browser=self.sign_in())
        self.assertIn("by somebody else than the requester", mine.text)

    def test_count(self) -> None:
        """The count of approvals is separated from what is before it, and is missing where one person is enough."""
        approval = self.now(self.runner.approval(self.run_id))
        several = evolve(approval, approvers=ApproverRule(count=2))
        drawn = [
            self.successResultOf(flattenString(None, [*draw_asked_by(each, None, ())])).decode()
            for each in (approval, several)
        ]
        self.assertIn('</time><strong id="progress"></strong>', drawn[0])
        self.assertIn('</time> · <strong id="progress">0 of 2 approvals</strong>', drawn[1])

    def test_alone(self) -> None:
        """An administrator, and the operator at the desk, are offered to approve alone; nobody else is."""
        path = f"/fragments/approvals/{self.run_id}"
        root = self.joined("root", Role.ADMINISTRATOR)
        offered = self.send("GET", path, browser=root).text
        self.assertIn('id="alone"', offered)
        self.assertIn("This action needs an approval by: alice. The run starts without", offered)
        self.assertIn('id="alone"', self.desk(path, self.operators.open_browser()[0]))
        self.add_phone()
        phone = self.sign_in()
        for page in (phone, self.joined(), self.joined("bob"), self.joined("vera", Role.VIEWER)):
            self.assertNotIn("alone", self.send("GET", path, browser=page).text)
        self.passkey_book.keep_passkeys((), PasskeyRule(actions=("ship-*",)))
        self.assertNotIn("alone", self.send("GET", path, browser=root).text)

    def test_usual(self) -> None:
        """Nobody approves alone what needs no other approval."""
        self.runner.offer(scripted_offer())
        run_id = self.now(self.runner.submit(Call("ship-update", {}, Actor("agent", "s")))).id
        root = self.joined("root", Role.ADMINISTRATOR)
        self.assertNotIn("alone", self.send("GET", f"/fragments/approvals/{run_id}", browser=root).text)
