"""Hostile people with accounts, their agents, and those who have left: what each gets at every route."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from attrs import frozen
from treq.testing import StubTreq

from aileron.api._sites import agent_routes, operator_routes
from aileron.api.endpoint import Endpoint
from aileron.client import item_of
from aileron.features import FeatureSet
from aileron.features.egress._file import EgressFile
from aileron.features.egress._sessions import EgressSessions
from aileron.features.egress.running import RunningEgress
from aileron.model.audit import Actor
from aileron.model.errors import Forbidden, Unauthorized
from aileron.model.people import Role
from aileron.model.runs import Assertion, Call, Decision, Run, RunState
from aileron.model.signing import write_statement
from aileron.model.vault import VaultState
from aileron.testing import MemoryOperatorLimits, MemoryOperators, MemoryTrust, SigningBrowser
from aileron.web._table import PAGES
from tests.api.case import LAUNCH_KEY, LOCAL_KEY, running
from tests.features.mcp_http.test_routes import HELLO, ScriptedMcp, ServedMcp
from tests.features.phone.case import COOKIE, PUBLIC

from .case import OPERATOR, PASSPHRASE
from .test_agents import AgentsCase

WHO_MAY = """
GET    /metrics                                         -    ol   -
DELETE /v1/account/passkeys/<passkey_id>                -    -    vpd
GET    /v1/account/passkeys                             -    -    vpd
POST   /v1/account/passkeys                             -    -    vpd
POST   /v1/account/passkeys/ask                         -    -    vpd
POST   /v1/account/passkeys/offer                       -    -    vpd
GET    /v1/account/passkeys                             -    x    vpd
POST   /v1/account/passkeys                             -    x    vpd
DELETE /v1/account/passkeys/<passkey_id>                -    x    vpd
POST   /v1/account/passkeys/ask                         -    x    vpd
POST   /v1/account/passkeys/offer                       -    x    vpd
GET    /v1/action-approvals                             -    ol   -
GET    /v1/action-approvals/<approval_id>               -    ol   -
POST   /v1/action-approvals/<approval_id>/decide        -    o    pdo
POST   /v1/action-approvals/<approval_id>/edit          -    o    pdo
POST   /v1/action-approvals/<approval_id>/export        -    ol   -
POST   /v1/action-approvals/<approval_id>/forgive       -    o    -
POST   /v1/action-approvals/<approval_id>/passkey       -    o    o
GET    /v1/action-approvals/<approval_id>/result        a    ol   -
POST   /v1/action-approvals/<approval_id>/snooze        -    o    pdo
POST   /v1/action-approvals/<approval_id>/withdraw      a    o    pdo
GET    /v1/actions                                      a    ol   -
GET    /v1/actions/<name>                               a    ol   -
PATCH  /v1/actions/<name>                               -    o    -
POST   /v1/actions/<name>/dry-run                       -    ol   -
PUT    /v1/actions/<name>/file                          -    o    -
POST   /v1/actions/<name>/run                           a    o    -
POST   /v1/actions/check                                -    ol   -
GET    /v1/asks                                         -    ol   -
POST   /v1/asks/<ask_id>/answer                         -    o    -
GET    /v1/asks/trial                                   -    ol   -
GET    /v1/audit                                        -    ol   -
GET    /v1/audit/<audit_id>                             -    ol   -
GET    /v1/audit/export                                 -    ol   -
GET    /v1/audit/verify                                 -    ol   -
GET    /v1/bindings                                     -    ol   -
DELETE /v1/bindings/<path:name>                         -    o    -
GET    /v1/bindings/<path:name>                         -    ol   -
POST   /v1/bindings/<path:name>/rebind                  -    o    -
POST   /v1/bindings/<path:name>/replace                 -    o    -
POST   /v1/bindings/setup                               -    o    -
POST   /v1/bindings/target                              -    o    -
DELETE /v1/caps                                         -    o    -
GET    /v1/caps                                         -    ol   -
POST   /v1/caps                                         -    o    -
GET    /v1/connectors                                   -    ol   -
GET    /v1/daemons                                      -    ol   -
GET    /v1/egress                                       -    ol   -
POST   /v1/egress/<host_id>/decision                    -    o    -
GET    /v1/events                                       -    ol   vpdo
GET    /v1/gateway/limits                               -    ol   -
POST   /v1/gateway/limits                               -    o    -
DELETE /v1/gateway/limits/<limit_id>                    -    o    -
POST   /v1/gateway/limits/<limit_id>/raise              -    o    -
GET    /v1/gateway/usage                                -    ol   -
GET    /v1/grants                                       -    ol   -
POST   /v1/grants                                       -    o    -
DELETE /v1/grants/<grant_id>                            -    o    -
GET    /v1/grants/<grant_id>                            -    ol   -
GET    /v1/health                                       any  any  -
GET    /v1/most-used                                    a    -    -
GET    /v1/notifications                                -    ol   -
GET    /v1/notifications/browsers                       -    ol   -
POST   /v1/notifications/browsers                       -    o    o
DELETE /v1/notifications/browsers/<browser_id>          -    o    o
POST   /v1/notifications/browsers/key                   -    o    o
POST   /v1/notifications/browsers/test                  -    o    -
GET    /v1/notifications/pending                        -    ol   vpdo
GET    /v1/notifications/pending/<run_id>               -    ol   vpdo
POST   /v1/notifications/test                           -    o    -
GET    /v1/oidc                                         -    ol   -
DELETE /v1/oidc/removed/<name>                          -    o    -
GET    /v1/operator/approvers                           -    ol   -
POST   /v1/operator/approvers                           -    o    -
DELETE /v1/operator/approvers/<key_id>                  -    o    -
POST   /v1/operator/challenge                           -    any  -
GET    /v1/operator/handover                            -    o    -
POST   /v1/operator/handover                            -    o    -
POST   /v1/operator/handover/confirm                    -    o    -
POST   /v1/operator/login                               -    any  -
POST   /v1/operator/logout                              -    o    vpdo
DELETE /v1/operator/passkeys                            -    o    -
GET    /v1/operator/passkeys                            -    ol   -
POST   /v1/operator/passkeys                            -    o    -
DELETE /v1/operator/passkeys/<passkey_id>               -    o    -
POST   /v1/operator/passkeys/ask                        -    o    o
POST   /v1/operator/passkeys/confirm                    -    o    -
POST   /v1/operator/passkeys/offer                      -    o    -
POST   /v1/operator/passkeys/rule                       -    o    -
POST   /v1/operator/raise                               -    -    -
POST   /v1/operator/raise/ask                           -    -    -
DELETE /v1/operator/sessions                            -    o    -
GET    /v1/operator/sessions                            -    ol   -
DELETE /v1/operator/sessions/<session_id>               -    o    -
POST   /v1/pause                                        a    ol   pdo
GET    /v1/people                                       -    ol   d
POST   /v1/people                                       -    o    d
DELETE /v1/people/<name>                                -    o    d
POST   /v1/people/<name>/groups                         -    o    d
POST   /v1/people/<name>/invite                         -    o    d
POST   /v1/people/<name>/role                           -    o    d
POST   /v1/people/<name>/sessions                       -    o    pd
GET    /v1/phone                                        -    ol   -
DELETE /v1/phone/<phone_id>                             -    o    -
GET    /v1/phone/certificate                            -    ol   -
POST   /v1/phone/certificate                            -    o    -
GET    /v1/phone/pairing                                -    o    -
POST   /v1/phone/pairing                                -    o    -
POST   /v1/phone/pairing/confirm                        -    o    -
GET    /v1/profiles                                     -    ol   -
POST   /v1/profiles/preview                             k    -    -
POST   /v1/prompts/<agent>                              a    -    -
GET    /v1/ready                                        any  any  -
POST   /v1/resume                                       -    o    -
GET    /v1/runs                                         a    ol   -
GET    /v1/runs/<run_id>                                a    ol   -
POST   /v1/runs/<run_id>/reconcile                      -    o    -
POST   /v1/runs/<run_id>/resolve                        -    o    -
POST   /v1/runs/<run_id>/undo                           -    o    -
GET    /v1/sessions                                     a    ol   -
POST   /v1/sessions                                     k    -    -
GET    /v1/sessions/<session_id>                        a    ol   -
POST   /v1/sessions/<session_id>/deny                   -    o    pdo
POST   /v1/sessions/<session_id>/egress                 k    -    -
POST   /v1/sessions/<session_id>/end                    a    o    -
GET    /v1/sessions/<session_id>/lease                  k    -    -
GET    /v1/sessions/<session_id>/own-tools              k    -    -
POST   /v1/sessions/<session_id>/own-tools              k    -    -
POST   /v1/signed-decisions                             -    ol   -
GET    /v1/status                                       ak   ol   -
DELETE /v1/trust                                        -    o    -
GET    /v1/trust                                        -    ol   -
POST   /v1/trust                                        -    o    -
GET    /v1/vault/key-sources                            -    ol   -
POST   /v1/vault/key-sources                            -    o    -
DELETE /v1/vault/key-sources/<source_id>                -    o    -
POST   /v1/vault/lock                                   -    ol   -
GET    /v1/vault/status                                 ak   any  -
POST   /v1/wake                                         a    -    -
POST   /v1/wake/conversation                            a    -    -
"""
"""Each route of both sites, and who may call it: on the agent site with the token of an (a)gent or the launch (k)ey; at
the desk the (o)perator or a program with the (l)ocal key; at the public name a (v)iewer, an a(p)prover, an
a(d)ministrator, or the phone of the (o)perator; (x): nobody there. A route that is missing here fails the tests."""

_PARAMETER = re.compile(r"<[^>]+>")


@frozen
class Row:
    """A route, and who may call it on each site. C{any}: also without a credential."""

    method: str
    path: str
    agents: str
    desk: str
    public: str

    @property
    def key(self) -> tuple[str, str]:
        """The method and the path."""
        return self.method, self.path

    def fill(self, *values: str) -> str:
        """The path with these values of its parameters; the last one for all that are left."""
        given, end = [*values], "?after=x" if self.path == "/v1/events" else ""  # a stream would go on
        return _PARAMETER.sub(lambda _: given.pop(0) if len(given) > 1 else given[0], self.path) + end


ROWS = tuple(Row(*line.split()) for line in WHO_MAY.strip().splitlines())


class HostileCase(AgentsCase):
    """People of each role at the public name, and the keys of agents and programs."""

    def setUp(self) -> None:
        """Serve network access too, which launchers open for sessions."""
        super().setUp()
        egress = EgressSessions(
            file=EgressFile(self.state_directory.root / "egress.toml", MemoryTrust(self.vault)),
            trust=self.runner,
            audit=self.store.audit,
            operator_limits=MemoryOperatorLimits(self.vault),
            clock=self.clock,
            ids=self.fresh_id,
            listen=lambda: 3128,
        )
        self.build(features=running(self.running, self.people, RunningEgress(egress)))
        self.site = self.running._make_site(self.deps)
        self.treq = StubTreq(self.site.resource)

    def status(self, site: Any, row: Row, path: str, headers: dict[str, str], origin: str) -> tuple[int, str]:
        """Send a request with an empty body; return the status, and for a refusal its message."""
        data = None if row.method == "GET" else b"{}"
        fields = {"Content-Type": "application/json"} if data else {}
        treq: Any = StubTreq(site)
        sent = treq.request(row.method, origin + path, headers={**fields, **headers}, data=data)
        treq.flush()
        response = self.successResultOf(sent)
        code: int = response.code
        if code < 400:
            return code, ""
        body = self.successResultOf(response.content())
        return code, str(json.loads(body)["error"]["message"]) if body.startswith(b"{") else ""

    def bearer(self, site: Any, row: Row, path: str, token: str | None) -> tuple[int, str]:
        """The answer to a request with a token, or without one."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return self.status(site, row, path, headers, "http://localhost:7001")

    def page(self, row: Row, path: str, browser: SigningBrowser) -> tuple[int, str]:
        """The answer to a request of a page at the public name."""
        data = b"" if row.method == "GET" else b"{}"
        return self.status(self.site.resource, row, path, browser.headers(COOKIE, row.method, path, data), PUBLIC)


_NOT_YOURS = (
    "This credential may",
    "Only a person with an account",
    "You can watch;",
    "Your role is",
    "Accounts cannot",
    "Accounts are managed",
)


def is_refused(answer: tuple[int, str]) -> bool:
    """Whether the caller may not do that; not, that something is missing or cannot be done now."""
    return answer[0] == 401 or (answer[0] == 403 and answer[1].startswith(_NOT_YOURS))


class TableTests(HostileCase):
    """All routes against all callers."""

    def test_whole(self) -> None:
        """The table has each route that is declared, and no other; a new one has to be entered first."""
        declared = {(each.method, each.path) for each in _list_endpoints()}
        self.assertEqual({each.key for each in ROWS}, declared)
        described = set()
        for site in (self.agents, self.operator):
            document = site.ask("GET", "/v1/openapi.json").json
            described |= {(verb.upper(), path) for path, verbs in document["paths"].items() for verb in verbs}
        named = {(each.method, re.sub(r"<(?:path:)?(\w+)>", r"{\1}", each.path)) for each in ROWS}
        self.assertLessEqual(described, named)
        self.assertEqual(named - described, set())

    def test_agents(self) -> None:
        """On the agent site."""
        self.joined("bob")
        for row in ROWS:
            for letter, token in (("a", self.connect("bob")["token"]), ("k", LAUNCH_KEY), ("", None), ("", LOCAL_KEY)):
                self.clock.advance(60)
                answer = self.bearer(self.agents.resource, row, row.fill("x"), token)
                may = row.agents == "any" or (letter and letter in row.agents)
                is_served = row.agents != "-"
                if may:
                    self.assertFalse(is_refused(answer), (row, letter, answer))
                elif is_served:
                    self.assertTrue(is_refused(answer), (row, letter, answer))
                else:
                    self.assertIn(answer[0], (401, 403, 404, 405), (row, letter, answer))

    def test_desk(self) -> None:
        """At the desk no token of an agent and no page of an account opens anything."""
        self.joined("bob")
        agent, root = self.connect("bob")["token"], self.joined("root", Role.ADMINISTRATOR)
        for row in ROWS:
            if row.desk == "-":
                continue
            for letter, token in (("o", self.operator_token()), ("l", LOCAL_KEY), ("", agent), ("", LAUNCH_KEY)):
                answer = self.bearer(self.operator.resource, row, row.fill("x"), token)
                self.vault._state = VaultState.UNLOCKED
                may = row.desk == "any" or (letter and letter in row.desk)
                self.assertEqual(is_refused(answer), not may, (row, letter, answer))
            path = row.fill("x")
            headers = root.headers(COOKIE, row.method, path, b"" if row.method == "GET" else b"{}")
            answer = self.status(self.operator.resource, row, path, headers, "http://localhost:7001")
            self.assertEqual(is_refused(answer), row.desk != "any", (row, answer))

    def test_public(self) -> None:
        """At the public name each role; no token and no key counts there, and no other route is served."""
        self.add_phone()
        callers = {"o": self.sign_in()}
        callers |= {letter: self.joined(f"a-{role.value}", role) for letter, role in zip("vpd", Role, strict=True)}
        tokens = (self.connect("a-approver")["token"], LAUNCH_KEY, LOCAL_KEY, self.operator_token(), None)
        for row in sorted(ROWS, key=lambda each: each.path == "/v1/operator/logout"):
            for letter, browser in callers.items():
                if letter == "o" and row.path.startswith("/v1/people"):
                    continue  # refused after the body is read: RouteTests.test_phone
                self.clock.advance(5)
                answer = self.page(row, row.fill("x"), browser)
                if row.public == "-":
                    self.assertIn(answer[0], (404, 405), (row, letter, answer))
                else:
                    self.assertEqual(is_refused(answer), letter not in row.public, (row, letter, answer))
            for token in tokens:
                answer = self.bearer(self.site.resource, row, row.fill("x"), token)
                self.assertIn(answer[0], (401,) if row.public != "-" else (401, 404, 405), (row, answer))

    def test_pages(self) -> None:
        """An account sees the pages of requests, runs, history and itself; an administrator also that of accounts."""
        usual = {"/approvals", "/approvals/<run_id>", "/runs", "/runs/<run_id>", "/history", "/settings/account"}
        run = self.request(None)
        for role, added in ((Role.VIEWER, ()), (Role.APPROVER, ()), (Role.ADMINISTRATOR, ("/settings/people",))):
            browser, seen = self.joined(f"a-{role.value}", role), set()
            for path in (*PAGES, *FeatureSet().pages()):
                self.clock.advance(5)
                row = Row("GET", f"/fragments{path}", "-", "-", "-")
                if self.page(row, row.fill(run.id), browser)[0] == 200:
                    seen.add(path)
            self.assertEqual(seen, usual.union(added), role)


def _list_endpoints() -> Iterator[Endpoint]:
    """All endpoints of both sites."""
    for routes in (agent_routes(), operator_routes()):
        for endpoint, _allowed in routes.endpoints:
            yield endpoint


class LaunchKeyTests(HostileCase):
    """A program beside the daemon, such as an agent of the operator's, that has the launch key."""

    def test_session_of_another(self) -> None:
        """It opens nothing for the session of an account: neither network access nor tools that use a credential."""
        self.joined()
        hers, own = self.connect()["id"], self.open_session()["id"]
        for method, path, body in (
            ("POST", "egress", {"allow": ["npm"]}),
            ("GET", "own-tools", None),
            ("POST", "own-tools", {"services": ["github"]}),
            ("GET", "lease", None),
        ):
            heard = [
                self.agents.ask(method, f"/v1/sessions/{each}/{path}", LAUNCH_KEY, body) for each in (hers, "none", own)
            ]
            self.assertEqual((heard[0].status, heard[0].text), (404, heard[1].text), path)
            if path != "lease":
                self.assertNotEqual(heard[2].text, heard[0].text, path)


class AgentTests(HostileCase):
    """An agent of bob's, which wants what is alice's or the operator's."""

    def setUp(self) -> None:
        super().setUp()
        self.joined("bob")
        self.joined()
        self.hers, self.bobs = self.connect(), self.connect("bob")
        session = self.session(self.hers)
        call = Call("ship-update", {"text": "canary-of-alice"}, Actor("agent", session.id), session)
        self.waiting: Run = self.now(self.runner.submit(call))
        self.operators_run = self.request(None)

    def ask_as_bob(self, method: str, path: str, body: Any = None) -> Any:
        """What bob's agent is told."""
        return self.agents.ask(method, path, self.bobs["token"], body)

    def test_others(self) -> None:
        """At every route, what is another's is told apart from what there is not by nothing."""
        others = (self.waiting.id, self.operators_run.id, self.hers["id"], self.open_session()["id"])
        tried = 0
        for row in ROWS:
            if "a" not in row.agents or "<" not in row.path or "<agent>" in row.path:
                continue
            absent = self.ask_as_bob(row.method, row.fill("01JA9999999999999999999999"))
            for each in others:
                heard = self.ask_as_bob(row.method, row.fill(each))
                self.assertEqual(
                    (heard.status, heard.text.replace(each, "")),
                    (absent.status, absent.text.replace("01JA9999999999999999999999", "")),
                    row,
                )
                tried += 1
        self.assertGreater(tried, 20)
        self.assertTrue(self.session(self.hers).live)
        self.assertIs(self.now(self.runner.run(self.waiting.id)).state, RunState.PENDING)

    def test_lists(self) -> None:
        """No list, and no status, has anything of another's, whatever is asked for."""
        marks = ("canary-of-alice", "alice", self.hers["id"], self.waiting.id, self.operators_run.id)
        for row in ROWS:
            if "a" not in row.agents or "<" in row.path or row.method != "GET":
                continue
            for query in ("", f"?session={self.hers['id']}", "?owner=alice", "?session=", "?limit=100"):
                heard = self.ask_as_bob("GET", row.path + query)
                self.assertEqual([each for each in marks if each in heard.text], [], (row, query))
        self.assertEqual(self.ask_as_bob("GET", "/v1/status").json["counts"]["pending_approvals"], 0)

    def test_pause(self) -> None:
        """It pauses itself alone."""
        for name in (self.hers["id"], self.open_session()["id"]):
            self.assertEqual(self.ask_as_bob("POST", "/v1/pause", {"session": name}).status, 404)
        self.assertEqual(self.ask_as_bob("POST", "/v1/pause", {}).json["pause"]["session_id"], self.bobs["id"])

    def test_same_key(self) -> None:
        """The idempotency key of another's request is no way to its result."""
        asked = [
            self.agents.ask(
                "POST",
                "/v1/actions/ship-update/run",
                opened["token"],
                {"args": {"text": "same"}},
                headers={"Idempotency-Key": "one"},
            ).json["run_id"]
            for opened in (self.hers, self.bobs)
        ]
        self.assertEqual(len(set(asked)), 2)

    def test_own_request(self) -> None:
        """No key of its own decides, nor reads what is at the desk or the public name."""
        path = f"/v1/action-approvals/{self.waiting.id}/decide"
        for key in (self.bobs["token"], self.bobs["gateway_key"], LAUNCH_KEY):
            for row in ROWS:
                if row.desk not in ("any", "-"):
                    answer = self.bearer(self.operator.resource, row, row.fill(self.waiting.id), key)
                    self.assertEqual(answer[0], 401, row)
            sent = self.send(
                "POST", path, {"approved": True, "digest": "x"}, headers={"Authorization": f"Bearer {key}"}
            )
            self.assertEqual(sent.status, 401)


class GoneTests(HostileCase):
    """Somebody whose account was removed, and who kept an open page, its key and cookie, and an agent's token."""

    def setUp(self) -> None:
        super().setUp()
        self.page_before = self.joined(role=Role.ADMINISTRATOR)
        self.opened = self.connect()
        self.waiting = self.request(self.session(self.opened))
        self.link = self.add("late")

    def leave(self) -> None:
        """Remove the accounts, as at another daemon, which ends nothing here."""
        for name in ("alice", "late"):
            self.now(self.accounts.remove(name, OPERATOR))

    def test_every_route(self) -> None:
        """Every route and page that is served refuses the page, and every route the agent."""
        self.leave()
        for row in ROWS:
            if row.public != "-":
                self.assertEqual(self.page(row, row.fill("x"), self.page_before)[0], 401, row)
            if "a" in row.agents:
                answer = self.bearer(self.agents.resource, row, row.fill("x"), self.opened["token"])
                self.assertEqual(answer[0], 200 if row.agents == "any" else 401, row)
        for path in ("/approvals", f"/approvals/{self.waiting.id}", "/runs", "/history", "/settings/people"):
            row = Row("GET", f"/fragments{path}", "-", "-", "-")
            self.assertEqual(self.page(row, row.path, self.page_before)[0], 401, path)

    def test_mcp(self) -> None:
        """The agent's session of MCP is refused with its next request, and its open streams end within seconds."""
        mcp = ScriptedMcp()
        self.build(features=running(self.running, self.people, ServedMcp(mcp)))
        self.assertEqual(self.agents.ask("POST", "/mcp", self.opened["token"], HELLO).status, 200)
        self.leave()
        self.now(self.deps.leases.end_lapsed_sessions())
        self.assertEqual(mcp.over, [self.opened["id"]])
        for method in ("POST", "GET", "DELETE"):
            self.assertEqual(self.agents.ask(method, "/mcp", self.opened["token"], HELLO).status, 401)
        self.assertEqual(len(mcp.asked), 1)

    def test_signature(self) -> None:
        """What the page's key signs decides nothing, also what it had signed before."""
        digest = self.now(self.runner.approval(self.waiting.id)).digest
        decision = {"approved": True, "digest": digest}
        items = [item_of(self.waiting.id, decision)]
        before = self.page_before.sign_text(lambda nonce: write_statement(MemoryOperators.INSTANCE, nonce, items))
        self.leave()
        after = self.page_before.sign_text(lambda nonce: write_statement(MemoryOperators.INSTANCE, nonce, items))
        logins = [each.id for each in self.operators.list()]
        self.joined("bob")
        logins.append(next(each.id for each in self.operators.list() if each.id.startswith("bob.")))
        for text, signature in (before, after):
            signed = {**decision, "signed": {"statement": text, "signature": signature}}
            path = f"/v1/action-approvals/{self.waiting.id}/decide"
            self.assertEqual(self.send("POST", path, signed, self.page_before).status, 401)
            for login in logins:
                given = Decision(True, digest, login, assertion=Assertion(text, signature=signature))
                refusals = (Forbidden, Unauthorized)
                self.assertRaises(refusals, self.approvers.admit, "ship-update", self.waiting.id, given, None)
        self.assertIs(self.now(self.runner.run(self.waiting.id)).state, RunState.PENDING)

    def test_again(self) -> None:
        """Neither the passphrase nor a link of before lets anybody in, also once another has the name."""
        self.leave()
        self.now(self.accounts.add("alice", Role.APPROVER, OPERATOR))
        self.clock.advance(60)
        ways = (
            ("/signin/account", {"name": "alice", "passphrase": PASSPHRASE}),
            ("/join", {"code": self.link, "passphrase": PASSPHRASE}),
        )
        for path, body in ways:
            self.assertEqual(self.enter(path, body)[1].status, 401, path)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=self.page_before).status, 401)
        self.assertEqual(self.agents.ask("GET", "/v1/sessions", self.opened["token"]).status, 401)

    def test_waiting(self) -> None:
        """A request of the agent that waits for its result ends with its session, and is told nothing more."""
        path = f"/v1/action-approvals/{self.waiting.id}/result?wait=60"
        waiting = self.agents.start("GET", path, self.opened["token"])
        self.assertNoResult(waiting)
        self.leave()
        self.now(self.deps.leases.end_lapsed_sessions())
        self.clock.advance(60)
        self.agents.treq.flush()
        self.assertEqual(self.successResultOf(waiting).status, 401)
