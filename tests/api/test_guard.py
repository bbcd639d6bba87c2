"""Who may do what: every route of both sites against every credential."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from aileron.api import PROOF, Dependencies, mint, token_digest
from aileron.api._sites import agent_routes, operator_routes
from aileron.api.endpoint import Endpoint
from aileron.api.guard import Who
from aileron.model.queries import AuditQuery
from aileron.model.sessions import derive_gateway_key

from .case import COOKIE, LAUNCH_KEY, LOCAL_KEY, NOW, ApiCase, Heard, Site


def routes(served: tuple[tuple[Endpoint, Who], ...]) -> Iterator[tuple[str, str, Who]]:
    """Method, a path and who may, of each endpoint."""
    for endpoint, allowed in served:
        yield endpoint.method, re.sub(r"<[^>]+>", "x", endpoint.path), allowed


COURIER = {"/v1/action-approvals/x/export", "/v1/signed-decisions"}
"""What a program brings that has a signature by an enrolled key, which decides in its place."""


class TableTests(ApiCase):
    """The whole table."""

    def refused(self, site: Site, method: str, path: str, token: str | None) -> tuple[int, str]:
        """Status and class of a refusal."""
        heard = site.ask(method, path, token)
        return heard.status, heard.kind

    def test_operator_routes_refuse_agents(self) -> None:
        """No route of the operator site that needs anyone takes an agent's keys, a launch key or nothing."""
        agent = self.open_session()
        tried = 0
        for method, path, allowed in routes(operator_routes().endpoints):
            if Who.ANYONE in allowed:
                continue
            for token in (agent["token"], agent["gateway_key"], LAUNCH_KEY, None, "ail_o_" + "x" * 43, "ail_o_"):
                self.assertEqual(
                    self.refused(self.operator, method, path, token), (401, "unauthorized"), f"{method} {path}"
                )
            tried += 1
        self.assertGreater(tried, 20)

    def test_local_key(self) -> None:
        """The key of commands without a login opens what reads, and to pause and to lock: nothing that decides."""
        served = [*routes(operator_routes().endpoints)]
        for method, path, allowed in served:
            if path != "/v1/events":  # it goes on
                heard = self.operator.ask(method, path, LOCAL_KEY)
                refused = heard.status in (401, 403)
                self.assertEqual(refused, not allowed & (Who.LOCAL | Who.ANYONE), f"{method} {path} {heard.status}")
        opened = {path for method, path, allowed in served if Who.LOCAL in allowed and method != "GET"}
        self.assertEqual(
            opened, {"/v1/pause", "/v1/vault/lock", "/v1/actions/check", "/v1/actions/x/dry-run", *COURIER}
        )
        unread = {
            path for method, path, allowed in served if method == "GET" and not allowed & (Who.LOCAL | Who.ANYONE)
        }
        self.assertEqual(unread, {"/v1/operator/handover", "/v1/phone/pairing", "/v1/account/passkeys"})
        for method, path, allowed in routes(agent_routes().endpoints):
            if Who.ANYONE not in allowed:
                self.assertEqual(self.refused(self.agents, method, path, LOCAL_KEY), (401, "unauthorized"))

    def test_local_pause(self) -> None:
        """A pause by a command without a login is on record as that, and the operator alone lifts it."""
        self.assertEqual(self.operator.ask("POST", "/v1/pause", LOCAL_KEY, {}).json["pause"]["by"], "local")
        self.assertEqual(self.refused(self.operator, "POST", "/v1/resume", LOCAL_KEY), (403, "forbidden"))
        self.assertEqual(self.operator.ask("POST", "/v1/resume", self.operator_token(), {}).status, 200)

    def test_agent_routes_refuse_nobody(self) -> None:
        """No route of the agent site but health and readiness is answered with nothing, or another's key."""
        others = (self.operator_token(), self.open_session()["gateway_key"])
        open_routes = []
        for method, path, allowed in routes(agent_routes().endpoints):
            if Who.ANYONE in allowed:
                open_routes.append(path)
                continue
            for token in (None, *others, "ail_a_" + "x" * 43, "ail_l_" + "x" * 43):
                self.assertEqual(
                    self.refused(self.agents, method, path, token), (401, "unauthorized"), f"{method} {path}"
                )
        self.assertEqual(open_routes, ["/v1/health", "/v1/ready"])

    def test_wrong_kind(self) -> None:
        """A known credential of the wrong kind is forbidden, and may be told so."""
        agent = self.agent_token()
        tried = 0
        for method, path, allowed in routes(agent_routes().endpoints):
            for token, who in ((agent, Who.AGENT), (LAUNCH_KEY, Who.LAUNCH)):
                if not allowed & (who | Who.ANYONE):
                    self.assertEqual(self.refused(self.agents, method, path, token), (403, "forbidden"))
                    tried += 1
        self.assertGreater(tried, 8)

    def test_other_site(self) -> None:
        """Each site answers 404 to the routes that are only the other's, whatever the credential."""
        own = {(method, path) for method, path, _ in routes(agent_routes().endpoints)}
        other = {(method, path) for method, path, _ in routes(operator_routes().endpoints)}
        agents, operators = {path for _, path in own}, {path for _, path in other}
        agent = self.agent_token()
        for method, path in other - own:
            if path not in agents and not path.startswith(("/v1/runs/", "/v1/action")):
                self.assertEqual(self.refused(self.agents, method, path, agent), (404, "not_found"), path)
        for method, path in own - other:
            if path not in operators:
                self.assertEqual(self.refused(self.operator, method, path, self.operator_token()), (404, "not_found"))


class CredentialTests(ApiCase):
    """How credentials are read."""

    def status(self, authorization: str) -> Heard:
        """Ask for the status with this header."""
        return self.agents.ask("GET", "/v1/status", headers={"Authorization": authorization})

    def test_schemes(self) -> None:
        """Only a bearer token counts, as a 401 says; its scheme's case does not."""
        token = self.agent_token()
        for scheme, status in (("Bearer", 200), ("bearer", 200), ("Basic", 401), ("", 401)):
            self.assertEqual(self.status(f"{scheme} {token}").status, status, scheme)
        self.assertEqual(self.status(token).status, 401)
        self.assertEqual(self.status("x").headers["www-authenticate"], "Bearer")

    @settings(deadline=None, max_examples=60)
    @given(st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=80))
    def test_garbage(self, value: str) -> None:
        """No other text opens anything or breaks anything, on either site."""
        for site in (self.agents, self.operator):
            for sent in (value, f"Bearer {value}", f"Bearer ail_a_{value}", f"Bearer ail_o_{value}"):
                heard = site.ask("GET", "/v1/status", headers={"Authorization": sent.encode("latin-1")})
                self.assertEqual((heard.status, heard.kind), (401, "unauthorized"))
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_digest_is_kept(self) -> None:
        """The store learns digests, never tokens; neither a digest nor the token of an ended session opens anything."""
        token = self.agent_token()
        by_token = self.store.sessions.by_token
        self.assertIsNotNone(self.successResultOf(Deferred.fromCoroutine(by_token(token_digest(token)))))
        self.assertIsNone(self.successResultOf(Deferred.fromCoroutine(by_token(token.encode()))))
        self.assertEqual(self.status(f"Bearer ail_a_{token_digest(token).hex()}").status, 401)
        opened = self.open_session()
        self.agents.ask("POST", f"/v1/sessions/{opened['id']}/end", opened["token"], {"exit_code": 0})
        heard = self.status(f"Bearer {opened['token']}")
        self.assertEqual((heard.status, heard.kind), (401, "unauthorized"))

    def test_minted_keys(self) -> None:
        """A key is its prefix and 32 random bytes, and no two are the same."""
        self.assertRegex(self.agent_token(), r"^ail_a_[A-Za-z0-9_-]{43}$")
        self.assertRegex(self.open_session()["gateway_key"], r"^ail_g_[A-Za-z0-9_-]{43}$")
        self.assertNotEqual(self.agent_token(), self.agent_token())
        self.assertEqual(len(mint("ail_l_", self.randomness)), 6 + 43)

    def test_in_band_key(self) -> None:
        """Only who asks for it gets an in-band key, which is on record; the gateway key follows from it alone."""
        self.assertNotIn("in_band_key", self.open_session())
        said = {"agent": "aider", "working_dir": "/src", "in_band": True}
        opened = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, said).json
        self.assertRegex(opened["in_band_key"], r"^ail_i_[A-Za-z0-9_-]{43}$")
        self.assertRegex(opened["gateway_key"], r"^ail_g_[A-Za-z0-9_-]{43}$")
        self.assertEqual(derive_gateway_key(opened["in_band_key"]), opened["gateway_key"])
        for find, key in (("by_gateway_key", "gateway_key"), ("by_in_band_key", "in_band_key")):
            found = Deferred.fromCoroutine(getattr(self.store.sessions, find)(token_digest(opened[key])))
            self.assertEqual(self.successResultOf(found).id, opened["id"])
        shown = [self.agents.ask("GET", "/v1/sessions", opened["token"]).json["items"][0]["in_band"]]
        events = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery()))).items
        self.assertEqual([*shown, *(each.event.payload.get("in_band") for each in events)], [True, True, None])

    def test_in_band_key_opens_nothing_over_http(self) -> None:
        """By an in-band key no request over HTTP is let in; in this process alone it stands for its agent's token."""
        said = {"agent": "aider", "working_dir": "/src", "in_band": True}
        opened = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, said).json
        for site in (self.agents, self.operator):
            self.assertEqual(site.ask("GET", "/v1/actions", opened["in_band_key"]).status, 401)
        for routes, key, status in (
            (self.routes, "in_band_key", 401),
            (self.routes, "token", 200),
            (self.routes.in_band(), "in_band_key", 200),
            (self.routes.in_band(), "token", 401),
            (self.routes.in_band(), "gateway_key", 401),
        ):
            asked = routes.ask(opened[key], "GET", ("v1", "actions"), query={}, body=b"", prefer_seconds=None)
            self.assertEqual(self.successResultOf(Deferred.fromCoroutine(asked))[0], status)
        self.agents.ask("POST", f"/v1/sessions/{opened['id']}/end", opened["token"], {"exit_code": 0})
        asked = self.routes.in_band().ask(
            opened["in_band_key"], "GET", ("v1", "actions"), query={}, body=b"", prefer_seconds=None
        )
        self.assertEqual(self.successResultOf(Deferred.fromCoroutine(asked))[0], 401)

    def test_parts_are_checked(self) -> None:
        """A daemon wired to something that is no runner, or to a key instead of its digest, dies while starting."""
        self.assertRaises(TypeError, lambda: self.build(runner=object()))
        self.assertRaises(ValueError, lambda: self.build(launch_key_digest=LAUNCH_KEY.encode()))
        self.assertNotIn(repr(self.deps.launch_key_digest), repr(self.deps))
        self.assertIsInstance(self.deps, Dependencies)


class BrowserTests(ApiCase):
    """A browser needs the cookie, and its key's signature of exactly what it asks for."""

    def setUp(self) -> None:
        super().setUp()
        self.browser, self.session = self.operators.open_browser()

    def runs(self, headers: dict[str, str]) -> int:
        """The status of a list of runs."""
        return self.operator.ask("GET", "/v1/runs?limit=5", headers=headers).status

    def signed(self, **changes: Any) -> dict[str, str]:
        """The headers of a list of runs, by a browser that differs in this."""
        return evolve(self.browser, **changes).headers(COOKIE, "GET", "/v1/runs?limit=5")

    def test_both(self) -> None:
        """Cookie and signature together open the operator site; either alone, or another's, does not."""
        other, _session = self.operators.open_browser()
        self.assertEqual(self.runs(self.signed()), 200)
        for headers in (
            {"Cookie": self.signed()["Cookie"]},
            {PROOF: self.signed()[PROOF]},
            self.signed(key=other.key),
            self.signed(cookie=other.cookie),
            self.signed(instance="another"),
            {**self.signed(), PROOF: self.signed()["Cookie"]},
            {"Cookie": f"{COOKIE}=", PROOF: ""},
            {"Cookie": f"{COOKIE}=\u00e9", PROOF: "\u00e9"},
        ):
            self.assertEqual(self.runs(headers), 401)
        heard = self.operator.ask("POST", "/v1/operator/handover", browser=self.browser)
        self.assertEqual((heard.status, heard.kind), (403, "forbidden"))
        self.assertEqual(self.agents.ask("GET", "/v1/runs", browser=self.browser).status, 401)

    def test_signature(self) -> None:
        """A signature is good for one method, path, query and body, once, and while it is fresh."""
        good = self.signed()
        self.assertEqual(self.operator.ask("GET", "/v1/runs", headers=good).status, 401)
        self.assertEqual(self.operator.ask("GET", "/v1/runs?limit=6", headers=good).status, 401)
        self.assertEqual((self.runs(good), self.runs(good)), (200, 401))
        early, late = self.signed(seconds=lambda: NOW + 31), self.signed(seconds=lambda: NOW - 31)
        self.assertEqual((self.runs(early), self.runs(late)), (401, 401))
        self.assertEqual(self.runs(self.signed(seconds=lambda: NOW + 29)), 200)
        posted = self.browser.headers(COOKIE, "POST", "/v1/pause", b'{"reason": "mine"}')
        other = self.operator.ask("POST", "/v1/pause", body=b'{"reason": "other"}', headers=posted)
        self.assertEqual((other.status, self.runner.pauses()), (401, ()))
        self.assertEqual(self.operator.ask("POST", "/v1/pause", body={}, browser=self.browser).status, 200)

    def test_told_which_life(self) -> None:
        """A browser that is refused learns which life of the daemon refused it; nobody else does."""
        another = self.signed(instance="another")
        cookie = another["Cookie"].replace(COOKIE, "aileron_another")
        for headers in (another, {**another, "Cookie": cookie}, {PROOF: another[PROOF]}):
            refused = self.operator.ask("GET", "/v1/runs", headers=headers)
            self.assertEqual((refused.status, refused.headers["x-aileron-instance"]), (401, "life"))
        for headers in ({}, {"Authorization": "Bearer ail_o_x"}):
            self.assertNotIn("x-aileron-instance", self.operator.ask("GET", "/v1/runs", headers=headers).headers)


class OwnTests(ApiCase):
    """An agent sees and touches only what is its own."""

    def setUp(self) -> None:
        super().setUp()
        self.mine, self.other = self.open_session(), self.open_session("codex")
        self.agents.ask("POST", "/v1/actions/ship-update/run", self.mine["token"], {"args": {"text": "x"}})

    def test_runs(self) -> None:
        """Another's run is the same 404 as none, and so is one that the operator made in no session."""
        for method, path in (
            ("GET", "/v1/runs/{}"),
            ("GET", "/v1/runs/{}?wait=5"),
            ("GET", "/v1/action-approvals/{}/result"),
            ("POST", "/v1/action-approvals/{}/withdraw"),
        ):
            self.assertEqual(
                self.agents.ask(method, path.format("run-1"), self.other["token"]).text,
                self.agents.ask(method, path.format("run-9"), self.other["token"]).text,
            )
        self.assertEqual(self.agents.ask("GET", "/v1/runs/run-1", self.mine["token"]).status, 200)
        self.operator.ask("POST", "/v1/actions/look-up/run", self.operator_token(), {"args": {}})
        self.assertEqual(self.agents.ask("GET", "/v1/runs/run-2", self.mine["token"]).status, 404)

    def test_list(self) -> None:
        """An agent lists its own runs, whatever it asks for, and counts its own pending approvals."""
        own = f"?session={self.mine['id']}"
        self.assertEqual(self.agents.ask("GET", "/v1/runs" + own, self.other["token"]).json["items"], [])
        self.assertEqual(len(self.agents.ask("GET", "/v1/runs", self.mine["token"]).json["items"]), 1)
        for token, count in ((self.mine["token"], 1), (self.other["token"], 0), (LAUNCH_KEY, 1)):
            counts = self.agents.ask("GET", "/v1/status", token).json["counts"]
            self.assertEqual(counts["pending_approvals"], count)

    def test_sessions(self) -> None:
        """An agent sees and ends its own session only."""
        path = f"/v1/sessions/{self.mine['id']}"
        self.assertEqual(self.agents.ask("GET", path, self.other["token"]).status, 404)
        self.assertEqual(self.agents.ask("POST", path + "/end", self.other["token"]).status, 404)
        self.assertEqual(self.agents.ask("GET", path, self.mine["token"]).json["state"], "running")
        listed = self.agents.ask("GET", "/v1/sessions", self.other["token"]).json["items"]
        self.assertEqual([item["id"] for item in listed], [self.other["id"]])
