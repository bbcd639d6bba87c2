"""The routes of sandboxes' network access: let out by the launch key, decided by the operator, never by an agent."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from aileron.features.egress._file import EgressFile
from aileron.features.egress._sessions import EgressSessions
from aileron.features.egress.running import RunningEgress
from aileron.model.sessions import Session
from aileron.model.tool_claims import NO_CALLER, ToolCaller
from aileron.testing import MemoryOperatorLimits, MemoryTrust
from tests.api.case import LAUNCH_KEY, ApiCase, Heard, running


class EgressTests(ApiCase):
    """A daemon with a proxy, and a session."""

    def setUp(self) -> None:
        super().setUp()
        self.sessions = self.made(EgressSessions)
        self.build(features=running(RunningEgress(self.sessions)))
        self.session = self.open_session()
        self.key = self.operator_token()

    def made(self, kind: type[EgressSessions]) -> EgressSessions:
        """Make those who are let out."""
        return kind(
            file=EgressFile(self.state_directory.root / "egress.toml", MemoryTrust(self.vault)),
            trust=self.runner,
            audit=self.store.audit,
            operator_limits=MemoryOperatorLimits(self.vault),
            clock=self.clock,
            ids=self.fresh_id,
            listen=lambda: 3128,
        )

    def open(self, *words: str, token: str = LAUNCH_KEY, session_id: str | None = None) -> Heard:
        """Let it out."""
        path = f"/v1/sessions/{session_id or self.session['id']}/egress"
        return self.agents.ask("POST", path, token, {"allow": list(words)})

    def claim(self, caller: object) -> Heard:
        """Let it out, with a claim of the process that opened the connection."""
        body: Any = {"allow": ["npm"], "caller": caller}
        return self.agents.ask("POST", f"/v1/sessions/{self.session['id']}/egress", LAUNCH_KEY, body)

    def tried(self, host: str = "a.example:443") -> dict[str, Any]:
        """The host that the session tried to reach, as the operator is shown it."""
        redeemed = self.sessions.redeem(self.open("project").json["ticket"])
        assert redeemed is not None
        Deferred.fromCoroutine(self.sessions.admit(redeemed.access, host)).addErrback(lambda _: None)
        items: list[dict[str, Any]] = self.operator.ask("GET", "/v1/egress", self.key).json["items"]
        return items[0]

    def decide(self, item: dict[str, Any], decision: str, state: str = "pending", key: str | None = None) -> Heard:
        """Decide."""
        body = {"decision": decision, "state": state}
        return self.operator.ask("POST", f"/v1/egress/{item['id']}/decision", key or self.key, body)

    def test_open(self) -> None:
        """The launch key lets a live session out, to presets and hosts; every answer is another ticket."""
        first, second = self.open("npm"), self.open("npm")
        self.assertEqual((first.status, first.json["port"]), (200, 3128))
        self.assertNotEqual(first.json["ticket"], second.json["ticket"])
        self.assertIn("egress.opened", self.events())
        self.assertEqual(self.open("npm", "a.example:8443").status, 409)

    def test_caller(self) -> None:
        """A ticket carries the process that the launcher claims, whose command line has no invisible characters."""
        hostile = "gh \x1b[2J\u202e" + "\u202e" * 490
        redeemed = self.sessions.redeem(self.claim({"process": 7, "started": 123, "command": hostile}).json["ticket"])
        assert redeemed is not None
        caller = redeemed.caller
        self.assertEqual((caller.process, caller.started, len(caller.command)), (7, 123, 500))
        self.assertTrue(caller.command.startswith("gh ␛[2J\\u202e"), caller.command)
        self.assertNotIn("\u202e", caller.command)
        plain = self.sessions.redeem(self.open("npm").json["ticket"])
        assert plain is not None
        self.assertEqual(plain.caller, NO_CALLER)

    def test_odd_caller(self) -> None:
        """A claim that is incomplete, too long or of another form opens nothing."""
        good: dict[str, object] = {"process": 7, "started": 123, "command": "gh"}
        self.assertEqual(self.claim(good).status, 200)
        for changed in (
            {"process": 0},
            {"process": 2**31},
            {"process": "7"},
            {"started": -1},
            {"started": 2**53},
            {"command": "x" * 501},
            {"command": None},
            {"more": 1},
        ):
            self.assertEqual(self.claim({**good, **changed}).status, 400, changed)
        odds: tuple[object, ...] = ({"process": 7, "started": 1}, [], "gh", None)
        for odd in odds:
            self.assertEqual(self.claim(odd).status, 400, odd)

    def test_not_opened(self) -> None:
        """An agent's token lets nobody out, and neither does a session that is over or an unknown word."""
        self.assertEqual(self.open("npm", token=self.session["token"]).status, 403)
        unknown = self.open("nmp")
        self.assertEqual((unknown.status, unknown.kind), (400, "invalid_request"))
        self.assertIn("Use a host, or one of: npm, pypi", unknown.json["error"]["message"])
        self.assertEqual(self.open().status, 400)
        self.assertEqual(self.open("npm", session_id="nobody").status, 404)
        self.agents.ask("POST", f"/v1/sessions/{self.session['id']}/end", self.session["token"], {})
        self.assertEqual(self.open("npm").status, 404)
        self.build(features=running())
        self.assertEqual(self.operator.ask("GET", "/v1/egress", self.key).status, 404)

    def test_ended_meanwhile(self) -> None:
        """A session that ends while it is let out stays in: what was opened for it is over as well."""
        ask, path, token = self.agents.ask, f"/v1/sessions/{self.session['id']}/end", self.session["token"]

        class EndsMeanwhile(EgressSessions):
            async def open(
                self, session: Session, words: tuple[str, ...], caller: ToolCaller = NO_CALLER
            ) -> tuple[int, str]:
                ask("POST", path, token, {})
                return await super().open(session, words, caller)

        self.build(features=running(RunningEgress(self.made(EndsMeanwhile))))
        self.assertEqual(self.open("npm").status, 404)
        self.assertEqual(self.events()[-3:], ["session.ended", "egress.opened", "egress.ended"])

    def test_decide(self) -> None:
        """The operator decides what is shown, once; what stands otherwise by then is told."""
        item = self.tried()
        self.assertEqual((item["host"], item["state"], item["basis"]), ("a.example:443", "pending", ""))
        allowed = self.decide(item, "session")
        self.assertEqual((allowed.status, allowed.json["state"]), (200, "allowed"))
        late = self.decide(item, "deny")
        self.assertEqual((late.status, late.json["error"]["details"]), (409, {"state": "allowed"}))
        self.assertEqual(self.decide(item, "deny", "allowed").json["state"], "denied")

    def test_agents_decide_nothing(self) -> None:
        """An agent finds neither the list nor the decision on its site, and its token opens neither on the other."""
        item = self.tried()
        for site, status in ((self.agents, 404), (self.operator, 401)):
            self.assertEqual(site.ask("GET", "/v1/egress", self.session["token"]).status, status)
            body = {"decision": "session", "state": "pending"}
            found = site.ask("POST", f"/v1/egress/{item['id']}/decision", self.session["token"], body)
            self.assertEqual(found.status, status)
        self.assertEqual(self.sessions.pending(), 1)

    def test_counted(self) -> None:
        """A host that waits counts among the pending approvals, of its session and of all."""
        self.tried()
        for site, token in ((self.agents, self.session["token"]), (self.operator, self.key)):
            self.assertEqual(site.ask("GET", "/v1/status", token).json["counts"]["pending_approvals"], 1)
        self.assertEqual(
            self.agents.ask("GET", "/v1/status", self.agent_token()).json["counts"]["pending_approvals"], 0
        )

    def test_end(self) -> None:
        """A session that ends has no way out any more, however it ends."""
        self.tried()
        self.agents.ask("POST", f"/v1/sessions/{self.session['id']}/end", self.session["token"], {})
        self.assertEqual(self.operator.ask("GET", "/v1/egress", self.key).json, {"items": []})
        self.assertEqual(self.events()[-2:], ["session.ended", "egress.ended"])
