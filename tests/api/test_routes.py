"""Every other route, as its callers meet it; each answer is held against the schema that is published."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import JSON, timestamp, utc
from aileron.base.load_error import LoadError
from aileron.features.gateway.values import OPENAI, Dialect, GatewaySettings, Provider, UpstreamSource
from aileron.model.actions import Inverse
from aileron.model.audit import Actor, Event
from aileron.model.connectors import Finding
from aileron.model.errors import StoreUnavailable
from aileron.model.queries import AuditQuery
from aileron.model.runs import RunState
from aileron.model.sessions import Process
from aileron.model.vault import VaultState
from aileron.testing import ScriptedRunner, scripted_offer
from tests.features.gateway.running import FixedWatch, relaying

from .case import LAUNCH_KEY, NOW, ApiCase, Heard, running

RUN = "/v1/actions/ship-update/run"


class HealthTests(ApiCase):
    """Alive, and how."""

    def test_health(self) -> None:
        """Both sites say that they are alive to anyone, HEAD without the body; the status counts what there is."""
        for site in (self.agents, self.operator):
            heard = site.ask("GET", "/v1/health")
            self.assertEqual((heard.status, heard.json["status"], heard.json["version"]), (200, "ok", "1.2.3"))
        heard = self.agents.ask("HEAD", "/v1/health")
        self.assertEqual((heard.status, heard.text), (200, ""))
        self.open_session()
        status = self.operator.ask("GET", "/v1/status", self.operator_token()).json
        self.assertEqual(status["uptime_seconds"], 60)
        self.assertEqual(status["vault_state"], "unlocked")
        counts = {"pending_approvals": 0, "actions": 2, "load_errors": 0, "sessions": 1, "unknown_outcomes": 0}
        self.assertEqual(status["counts"], counts)

    def test_status_upstreams(self) -> None:
        """Operator and launch key learn where the gateway relays to; an agent does not."""
        moved = Provider("x", "http://127.0.0.1:1/v2", "/x/y", Dialect.OPENAI, "api_key/x/d", UpstreamSource.CONFIG)
        environment = (("https_proxy", "http://u:canary@proxy.test:3128/"), ("no_proxy", "10.0.0.0/8, .x.test,::1"))
        gateway = relaying(GatewaySettings((OPENAI, moved), environment=environment))
        gateway.watch_requests(FixedWatch({"openai": "note"}))
        self.build(features=running(gateway))
        told = [
            self.operator.ask("GET", "/v1/status", self.operator_token()).json["gateway"],
            self.agents.ask("GET", "/v1/status", LAUNCH_KEY).json["gateway"],
        ]
        openai = {"name": "openai", "base_url": "https://api.openai.com", "prefix": "/openai"}
        other = {"name": "x", "base_url": "http://127.0.0.1:1/v2", "prefix": "/x/y"}
        for each in told:
            self.assertEqual(
                each["providers"],
                [
                    {**openai, "credential": False, "source": "default", "provider_tools": "note"},
                    {**other, "credential": True, "source": "config", "provider_tools": "off"},
                ],
            )
            self.assertEqual(
                each["proxies"],
                [
                    {"variable": "https_proxy", "value": "http://proxy.test:3128"},
                    {"variable": "no_proxy", "value": "10.0.0.0/8,.x.test,::1"},
                ],
            )
        self.assertNotIn("gateway", self.agents.ask("GET", "/v1/status", self.agent_token()).json)

    def test_no_route(self) -> None:
        """Unknown paths are 404 and other methods 405, in the envelope, and log no error."""
        for path in ("/", "/v1", "/v1/", "/v1/health/", "/v1/%ff", "/v1/runs/%00"):
            heard = self.agents.ask("GET", path)
            self.assertIn(
                (heard.status, heard.kind), {(404, "not_found"), (400, "invalid_request"), (401, "unauthorized")}
            )
        heard = self.agents.ask("DELETE", "/v1/health")
        self.assertEqual((heard.status, heard.kind, heard.headers["allow"]), (405, "invalid_request", "GET, HEAD"))
        self.assertEqual(self.flushLoggedErrors(), [])


class SessionTests(ApiCase):
    """Sessions from their beginning to their end."""

    def test_ended(self) -> None:
        """A session is opened, told and ended with its exit code once, by the operator too; both are on record."""
        opened = self.open_session("claude")
        self.assertEqual((opened["agent"], opened["working_dir"]), ("claude", "/src"))
        for _ in range(2):
            heard = self.operator.ask(
                "POST", f"/v1/sessions/{opened['id']}/end", self.operator_token(), {"exit_code": 3}
            )
            self.assertEqual((heard.json["state"], heard.json["exit_code"]), ("ended", 3))
        self.assertEqual(self.events(), ["session.started", "session.ended"])

    def test_notes_tools(self) -> None:
        """A launcher may have the tools that providers run noted for its session; that is shown, and on record."""
        told = []
        for wish in ({"notes_tools": True}, {"notes_tools": False}, {}):
            opened = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "a", **wish}).json
            shown = self.agents.ask("GET", f"/v1/sessions/{opened['id']}", opened["token"]).json
            page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery(limit=1))))
            told.append((shown["notes_tools"], page.items[0].event.payload.get("notes_tools")))
        self.assertEqual(told, [(True, True), (False, None), (False, None)])

    def test_claims_and_process(self) -> None:
        """Beside what an agent claims stands the process that was seen, for the operator and on record, or none."""
        asked = []

        def behind(peer: object, own: object) -> Process | None:
            asked.append((peer, own))
            return Process(7, "/usr/bin/x", "/tmp") if len(asked) == 1 else None

        self.build(process_behind=behind)
        seen = {"pid": 7, "executable": "/usr/bin/x", "working_dir": "/tmp"}
        for opened, expected in ((self.open_session(), seen), (self.open_session(), None)):
            shown = self.operator.ask("GET", f"/v1/sessions/{opened['id']}", self.operator_token()).json
            self.assertEqual(("/src", expected), (shown["working_dir"], shown["peer"]))
        records = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery()))).items
        self.assertEqual([None, seen], [record.event.payload["peer"] for record in records])

    def test_claims_are_checked(self) -> None:
        """An agent without a name, or the 65th live session, is refused, with when to try again."""
        for body in ({}, {"agent": ""}, {"agent": "a\x1bb"}, {"agent": "x" * 65}, {"agent": 1}, {"agent": "a", "b": 1}):
            self.assertEqual(self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, body).status, 400, body)
        for _ in range(64):
            self.open_session()
        heard = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "one-more"})
        self.assertEqual((heard.status, heard.kind), (429, "limit_exceeded"))
        self.assertIn("retry-after", heard.headers)

    def test_quiet(self) -> None:
        """A session that was silent for ten minutes is labelled so, and its token still works."""
        opened = self.open_session()
        self.clock.advance(601)
        listed = self.operator.ask("GET", "/v1/sessions?live=true", self.operator_token()).json["items"]
        self.assertEqual([item["state"] for item in listed], ["quiet"])
        self.assertEqual(self.agents.ask("GET", "/v1/status", opened["token"]).status, 200)


class NoVaultTests(ApiCase):
    """Without a vault."""

    vault_state = VaultState.MISSING

    def test_no_session(self) -> None:
        """No session is opened while there is no vault; the status is still told."""
        heard = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "x"})
        self.assertEqual((heard.status, heard.kind), (423, "vault_locked"))
        self.assertEqual(heard.json["error"]["details"], {"state": "missing"})
        self.assertEqual(self.agents.ask("GET", "/v1/vault/status", LAUNCH_KEY).json, {"state": "missing"})


class ActionTests(ApiCase):
    """What can be run."""

    def test_list(self) -> None:
        """Actions are listed by name, with what could not be loaded."""
        error = LoadError("parse_error", "line 3 is no TOML", "bad.md", 3)
        self.runner.offer(scripted_offer("b"), scripted_offer("a"), load_errors=[error])
        heard = self.agents.ask("GET", "/v1/actions", self.agent_token()).json
        self.assertEqual([item["name"] for item in heard["items"]], ["a", "b"])
        self.assertEqual([item["file"] for item in heard["load_errors"]], ["bad.md"])

    def test_long_poll(self) -> None:
        """With its generation a caller is held until it changes, or until the wait is over."""
        token = self.agent_token()
        generation = self.runner.offering().generation
        held = self.agents.start("GET", f"/v1/actions?wait=60&generation={generation}", token)
        self.assertNoResult(held)
        self.runner.offer(scripted_offer("new"))
        self.agents.treq.flush()
        heard = self.successResultOf(held).json
        self.assertEqual((heard["generation"], [item["name"] for item in heard["items"]]), (generation + 1, ["new"]))
        self.assertEqual(self.agents.ask("GET", f"/v1/actions?wait=60&generation={generation}", token).status, 200)
        generation = self.runner.offering().generation
        held = self.agents.start("GET", f"/v1/actions?wait=60&generation={generation}", self.agent_token())
        self.clock.advance(60)
        self.agents.treq.flush()
        self.assertEqual(self.successResultOf(held).json["generation"], generation)

    def test_one(self) -> None:
        """One action is shown as it is offered; the operator switches it off, and then it is not run."""
        token = self.agent_token()
        heard = self.agents.ask("GET", "/v1/actions/ship-update", token).json
        self.assertEqual((heard["destructive"], heard["open_world"], heard["output_schema"]), (True, True, None))
        self.assertEqual((heard["tool_name"], heard["gated"], heard["enabled"]), ("ship_update", True, True))
        self.assertEqual(heard["asks"], [])
        self.assertEqual(self.agents.ask("GET", "/v1/actions/none", token).status, 404)
        heard = self.operator.ask("PATCH", "/v1/actions/ship-update", self.operator_token(), {"enabled": False})
        self.assertIs(heard.json["enabled"], False)
        self.assertEqual(self.agents.ask("POST", RUN, self.agent_token(), {"args": {}}).status, 409)

    def test_most_used(self) -> None:
        """An agent learns which actions were carried out most often, by whomever; an operator has no use for it."""
        token = self.agent_token()
        self.assertEqual(self.agents.ask("GET", "/v1/most-used", token).json, {"items": []})
        self.agents.ask("POST", "/v1/actions/look-up/run", self.agent_token(), {"args": {"text": "x"}})
        self.agents.ask("POST", RUN, token, {"args": {"text": "x"}})
        self.assertEqual(self.agents.ask("GET", "/v1/most-used?limit=5", token).json, {"items": ["look-up"]})
        look_up, third = scripted_offer("look-up", gated=False), scripted_offer("third", gated=False)
        self.runner.offer(look_up, third)
        for action in ("third", "third"):
            self.agents.ask("POST", f"/v1/actions/{action}/run", token, {"args": {"text": "x"}})
        self.assertEqual(self.agents.ask("GET", "/v1/most-used", token).json, {"items": ["third", "look-up"]})
        self.assertEqual(self.agents.ask("GET", "/v1/most-used?limit=1", token).json, {"items": ["third"]})
        self.runner.offer(look_up)
        self.assertEqual(self.agents.ask("GET", "/v1/most-used?limit=1", token).json, {"items": ["look-up"]})
        self.assertEqual(self.agents.ask("GET", "/v1/most-used?limit=101", token).status, 400)
        self.assertEqual(self.operator.ask("GET", "/v1/most-used", self.operator_token()).status, 404)

    def test_queries(self) -> None:
        """A query of another shape is refused, every problem at its pointer."""
        heard = self.agents.ask("GET", "/v1/actions?wait=3601&generation=x&y=1&generation=2", self.agent_token())
        pointers = [problem["pointer"] for problem in heard.json["error"]["details"]["problems"]]
        self.assertEqual((heard.status, sorted(pointers)), (400, ["/generation", "/wait", "/y"]))
        self.assertEqual(self.agents.ask("GET", "/v1/actions?%ff=1", self.agent_token()).status, 400)


class ApprovalTests(ApiCase):
    """Decisions."""

    def setUp(self) -> None:
        super().setUp()
        self.token, self.operator_key = self.agent_token(), self.operator_token()
        self.agents.ask("POST", RUN, self.token, {"args": {"text": "hello"}})

    def approval(self) -> dict[str, str]:
        """The approval as the operator sees it."""
        heard = self.operator.ask("GET", "/v1/action-approvals/run-1", self.operator_key)
        self.assertEqual(heard.status, 200)
        return dict(heard.json)

    def decide(self, approved: bool, digest: str, **more: str) -> Heard:
        body = {"approved": approved, "digest": digest, **more}
        return self.operator.ask("POST", "/v1/action-approvals/run-1/decide", self.operator_key, body)

    def result(self) -> Heard:
        """What the agent is told."""
        return self.agents.ask("GET", "/v1/action-approvals/run-1/result", self.token)

    def test_identical(self) -> None:
        """Each listed approval names the others that ask the same; one that asks something else names none."""
        for text in ("hello", "other"):
            self.agents.ask("POST", RUN, self.token, {"args": {"text": text}})
        listed = self.operator.ask("GET", "/v1/action-approvals", self.operator_key).json["items"]
        self.assertEqual([item["identical"] for item in listed], [["run-2"], ["run-1"], []])

    def test_listed(self) -> None:
        """What waits is listed, oldest first; what is decided only where asked for."""
        self.agents.ask("POST", RUN, self.token, {"args": {}})
        self.decide(False, self.approval()["digest"])
        listed = self.operator.ask("GET", "/v1/action-approvals", self.operator_key).json["items"]
        self.assertEqual([item["approval_id"] for item in listed], ["run-2"])
        query = "?state=denied&state=pending_approval"
        listed = self.operator.ask("GET", "/v1/action-approvals" + query, self.operator_key).json["items"]
        self.assertEqual([item["approval_id"] for item in listed], ["run-1", "run-2"])

    def test_judged(self) -> None:
        """In the list and by itself, a request has title, group and warnings; a decided one no judgement."""
        (listed,) = self.operator.ask("GET", "/v1/action-approvals", self.operator_key).json["items"]
        shown: dict[str, Any] = self.approval()
        for each in (listed, shown):
            self.assertEqual((each["title"], each["group"]), ("Run ship-update", "look_closely"))
            standing = {warning["id"]: (warning["severity"], warning["standing"]) for warning in each["warnings"]}
            self.assertEqual(standing["destructive"], ("low", True))
        self.assertEqual(listed["warnings"], shown["warnings"])
        self.runner.offer(evolve(scripted_offer(), destructive=False))
        (listed,) = self.operator.ask("GET", "/v1/action-approvals", self.operator_key).json["items"]
        self.assertEqual(listed["group"], "routine")
        self.decide(False, shown["digest"])
        (listed,) = self.operator.ask("GET", "/v1/action-approvals?state=denied", self.operator_key).json["items"]
        self.assertEqual((listed["title"], listed["group"], listed["warnings"]), ("Run ship-update", None, []))

    def test_approved(self) -> None:
        """An approval names the digest that was shown; who decided is on it."""
        heard = self.decide(True, self.approval()["digest"])
        self.assertEqual((heard.status, heard.json["approved"]), (200, True))
        self.assertEqual(heard.json["decided_by"], self.operators.list()[0].id)
        self.assertEqual(self.result().json["status"], "running")

    def test_stale(self) -> None:
        """A decision over what is no longer shown is refused as stale; the second one is told the present state."""
        old = self.approval()["digest"]
        self.runner.restage("run-1", "other")
        heard = self.decide(True, old)
        self.assertEqual((heard.status, heard.kind), (409, "approval_stale"))
        self.assertEqual(self.approval()["stale"], "the action file changed")
        digest = self.approval()["digest"]
        self.decide(False, digest)
        heard = self.decide(True, digest)
        self.assertEqual((heard.status, heard.json["error"]["details"]), (409, {"state": "denied"}))

    def test_malformed(self) -> None:
        """A decision is a boolean and a digest, an edit an object of arguments, nothing looser."""
        digest = self.approval()["digest"]
        for body in ({}, {"approved": "true", "digest": digest}, {"approved": 1, "digest": digest}, {"approved": True}):
            heard = self.operator.ask("POST", "/v1/action-approvals/run-1/decide", self.operator_key, body)
            self.assertEqual(heard.status, 400, body)
        self.assertEqual(self.result().json["status"], "pending_approval")
        wrong: tuple[JSON, ...] = ({}, {"args": []}, {"args": {}, "digest": 1}, {"args": {}, "more": 1})
        for edited in wrong:
            self.assertEqual(self.edit(edited).status, 400, edited)
        self.decide(False, self.approval()["digest"])
        self.assertEqual(self.edit({"args": {}}).status, 409)

    def edit(self, body: JSON) -> Heard:
        return self.operator.ask("POST", "/v1/action-approvals/run-1/edit", self.operator_key, body)

    def test_edited(self) -> None:
        """An edit answers the approval under another digest, with what was asked and how that differs."""
        old = self.approval()["digest"]
        heard = self.edit({"args": {"text": "other"}, "digest": old})
        self.assertEqual(heard.status, 200)
        self.assertNotEqual(heard.json["digest"], old)
        change = {"path": "/text", "kind": "changed", "before": "hello", "after": "other"}
        self.assertEqual((heard.json["run"]["asked"], heard.json["run"]["edited"]), ({"text": "hello"}, [change]))
        self.assertEqual(self.edit({"args": {}, "digest": old}).kind, "approval_stale")

    def test_edited_result(self) -> None:
        """The agent learns how its arguments were edited once that was carried out, however it ended."""
        self.edit({"args": {"text": "other"}})
        self.assertNotIn("edited", self.result().json)
        for state in (RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN):
            self.runner.finish("run-1", state)
            (change,) = self.result().json["edited"]
            self.assertEqual((change["path"], change["before"], change["after"]), ("/text", "hello", "other"))
        self.runner.finish("run-1", RunState.DENIED)
        self.assertNotIn("edited", self.result().json)

    def test_denied_result(self) -> None:
        """The agent learns that it was denied, and why."""
        self.decide(False, self.approval()["digest"], reason="not now")
        heard = self.result().json
        self.assertEqual((heard["status"], heard["reason"], heard["retry_after"]), ("denied", "not now", 0))
        self.assertEqual(heard["failure"]["class"], "approval_denied")

    def test_result_waits(self) -> None:
        """A poll is held until the run is settled; an ungated run has a result like any other."""
        path = "/v1/action-approvals/run-1/result?wait=60"
        held = self.agents.start("GET", path, self.token)
        self.assertNoResult(held)
        self.runner.finish("run-1", result={"output": 1, "steps": {}})
        self.agents.treq.flush()
        heard = self.successResultOf(held).json
        self.assertEqual((heard["status"], heard["result"]), ("completed", {"output": 1, "steps": {}}))
        self.agents.ask("POST", "/v1/actions/look-up/run", self.token, {"args": {}})
        heard = self.agents.ask("GET", "/v1/action-approvals/run-2/result", self.token)
        self.assertEqual(heard.json["status"], "completed")

    def test_withdrawn(self) -> None:
        """An agent takes its own run back; afterwards it is too late."""
        path = "/v1/action-approvals/run-1/withdraw"
        heard = self.agents.ask("POST", path, self.token, {"reason": "changed my mind"})
        self.assertEqual((heard.json["status"], heard.json["reason"]), ("cancelled", "changed my mind"))
        self.assertEqual(self.agents.ask("POST", path, self.token).status, 409)


class RunsTests(ApiCase):
    """Looking back at runs."""

    def setUp(self) -> None:
        super().setUp()
        self.operator_key = self.operator_token()
        self.token = self.agent_token()
        self.agents.ask("POST", "/v1/actions/look-up/run", self.token, {"args": {}})
        self.agents.ask("POST", RUN, self.token, {"args": {}})
        self.runner.finish("run-2", RunState.UNKNOWN)

    def test_list(self) -> None:
        """Runs are listed newest first, and filtered; the status counts those of unknown outcome."""
        counts = self.operator.ask("GET", "/v1/status", self.operator_key).json["counts"]
        self.assertEqual(counts["unknown_outcomes"], 1)
        listed = self.operator.ask("GET", "/v1/runs", self.operator_key).json["items"]
        self.assertEqual([item["id"] for item in listed], ["run-2", "run-1"])
        for query, found in (
            ("gated=false", ["run-1"]),
            ("gated=true&limit=1", ["run-2"]),
            ("state=unknown", ["run-2"]),
            ("action=look-up", ["run-1"]),
            ("session=none", []),
        ):
            listed = self.operator.ask("GET", f"/v1/runs?{query}", self.operator_key).json["items"]
            self.assertEqual([item["id"] for item in listed], found, query)
        for query in ("state=x", "limit=0", "limit=1001", "gated=maybe"):
            self.assertEqual(self.operator.ask("GET", f"/v1/runs?{query}", self.operator_key).status, 400)

    def test_resolved(self) -> None:
        """The operator settles an unknown run one way, once, and sees steps and attempts as no agent does."""
        path = "/v1/runs/run-2/resolve"
        for body in ({"outcome": "maybe"}, {}):
            self.assertEqual(self.operator.ask("POST", path, self.operator_key, body).status, 400)
        body = {"outcome": "did_not_happen", "note": "looked at the channel"}
        heard = self.operator.ask("POST", path, self.operator_key, body)
        self.assertEqual((heard.json["state"], heard.json["reason"]), ("failed", "looked at the channel"))
        self.assertEqual(self.operator.ask("POST", path, self.operator_key, body).status, 409)
        seen = self.operator.ask("GET", "/v1/runs/run-1", self.operator_key).json
        self.assertEqual([step["id"] for step in seen["steps"]], ["post"])
        self.assertEqual([attempt["sent"] for attempt in seen["attempts"]], [True])
        self.assertNotIn("steps", self.agents.ask("GET", "/v1/runs/run-1", self.token).json)

    def test_again(self) -> None:
        """The operator has an unknown run put up once more, as a new run that names it; the agent reads of it."""
        path = "/v1/runs/run-2/resolve"
        heard = self.operator.ask("POST", path, self.operator_key, {"outcome": "run_again", "note": "try"})
        self.assertEqual((heard.status, heard.json["state"]), (200, "pending_approval"))
        self.assertEqual((heard.json["parent_id"], heard.json["gated"]), ("run-2", True))
        again = self.operator.ask("POST", path, self.operator_key, {"outcome": "run_again"})
        self.assertEqual(again.status, 409)
        told = self.operator.ask("GET", "/v1/action-approvals/run-2/result", self.operator_key).json
        self.assertEqual((told["status"], told["failure"]["details"]["run_again"]), ("unknown", heard.json["id"]))
        self.assertIn(heard.json["id"], told["failure"]["message"])

    def test_undone(self) -> None:
        """The operator requests what undoes a completed run; an agent cannot."""
        path = "/v1/runs/run-1/undo"
        self.assertEqual(self.agents.ask("POST", path, self.token, {}).status, 404)
        self.assertEqual(self.operator.ask("POST", path, self.operator_key, {}).status, 403)
        offers = self.runner.offering().offers
        looked_up = offers["look-up"]
        action = evolve(looked_up.action, inverse=Inverse("ship-update"))
        self.runner.offer(*{**offers, "look-up": evolve(looked_up, action=action)}.values())
        heard = self.operator.ask("POST", path, self.operator_key, {})
        self.assertEqual((heard.status, heard.json["action"], heard.json["session_id"]), (200, "ship-update", None))
        self.assertEqual(self.operator.ask("POST", path, self.operator_key, {}).json["id"], heard.json["id"])
        self.assertEqual(self.operator.ask("POST", "/v1/runs/run-2/undo", self.operator_key, {}).status, 409)

    def test_reconciled(self) -> None:
        """The operator has it looked for, and is told what was found, and how the run stands then."""
        path = "/v1/runs/run-2/reconcile"
        self.assertEqual(self.agents.ask("POST", path, self.token, {}).status, 404)
        heard = self.operator.ask("POST", path, self.operator_key, {}).json
        self.assertEqual((heard["happened"], heard["failure"], heard["run"]["state"]), (None, None, "unknown"))
        for can in (True, False):
            self.runner.reconcilable = can
            self.assertIs(self.operator.ask("GET", "/v1/runs/run-2", self.operator_key).json["reconcilable"], can)
        self.assertNotIn("reconcilable", self.operator.ask("GET", "/v1/runs/run-1", self.operator_key).json)
        self.assertNotIn("reconcilable", self.agents.ask("GET", "/v1/runs/run-2", self.token).json)
        self.runner.findings.append(Finding(True, {"ts": "1"}))
        heard = self.operator.ask("POST", path, self.operator_key, {}).json
        self.assertEqual((heard["happened"], heard["run"]["state"]), (True, "completed"))
        self.assertEqual(self.operator.ask("POST", path, self.operator_key, {}).status, 409)


class AuditTests(ApiCase):
    """The record."""

    def test_list(self) -> None:
        """Records are filtered by time and kind, listed newest first, paged by cursor and found by their id."""
        for _ in range(3):
            self.open_session()
        token = self.operator_token()
        soon, later = timestamp(utc(NOW)), timestamp(utc(NOW + 1))
        for query, count in (
            (f"since={soon}", 3),
            (f"since={later}", 0),
            ("type=session.started", 3),
            ("type=session.ended", 0),
        ):
            self.assertEqual(len(self.operator.ask("GET", f"/v1/audit?{query}", token).json["items"]), count, query)
        for wrong in ("yesterday", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "0001-01-01T00:00:00%2B23:59"):
            self.assertEqual(self.operator.ask("GET", f"/v1/audit?since={wrong}", token).status, 400, wrong)
        first = self.operator.ask("GET", "/v1/audit?limit=2", token).json
        second = self.operator.ask("GET", f"/v1/audit?limit=2&cursor={first['cursor']}", token).json
        self.assertEqual([item["sequence"] for item in first["items"] + second["items"]], [3, 2, 1])
        self.assertIsNone(second["cursor"])
        record = first["items"][0]
        self.assertEqual(self.operator.ask("GET", f"/v1/audit/{record['audit_id']}", token).json, record)
        self.assertEqual(self.operator.ask("GET", "/v1/audit/none", token).status, 404)
        for browser in (False, False, True):
            event = Event(
                self.fresh_id(), "operator.login", utc(NOW), Actor("human", "op"), payload={"browser": browser}
            )
            self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))
        for query, count in (("", 6), ("?logins=true", 6), ("?logins=false", 4)):
            self.assertEqual(len(self.operator.ask("GET", f"/v1/audit{query}", token).json["items"]), count, query)


class VaultTests(ApiCase):
    """Locking."""

    def begin_run(self) -> None:
        """Have a run in its effect."""
        self.runner.usual = RunState.EXECUTING
        self.agents.start("POST", "/v1/actions/look-up/run", self.agent_token(), {"args": {}})

    def test_lock_waits(self) -> None:
        """What runs may end first: no answer and no lock, the end, the lock."""
        self.begin_run()
        held = self.operator.start("POST", "/v1/vault/lock", self.operator_token(), {})
        self.assertNoResult(held)
        self.assertEqual(self.vault.state(), VaultState.UNLOCKED)
        self.runner.finish("run-1")
        self.operator.treq.flush()
        self.assertEqual(self.successResultOf(held).json, {"state": "locked"})

    def test_lock_does_not_wait_for_ever(self) -> None:
        """After ten seconds it is locked, whatever still runs."""
        self.begin_run()
        held = self.operator.start("POST", "/v1/vault/lock", self.operator_token(), {})
        self.clock.advance(10)
        self.operator.treq.flush()
        self.assertEqual(self.successResultOf(held).json, {"state": "locked"})

    def test_lock_and_leave(self) -> None:
        """A client that leaves while waiting leaves a locked vault."""
        self.begin_run()
        held = self.operator.start("POST", "/v1/vault/lock", self.operator_token(), {})
        held.cancel()
        self.failureResultOf(held)
        self.operator.treq.flush()
        self.assertEqual(self.vault.state(), VaultState.LOCKED)

    def test_locked_challenge(self) -> None:
        """While locked nobody can log in."""
        self.vault.lock()
        heard = self.operator.ask("POST", "/v1/operator/challenge", None, {"nonce": self.operators.CLIENT_NONCE})
        self.assertEqual((heard.status, heard.kind), (423, "vault_locked"))


class BrokenRunner(ScriptedRunner):
    """Its store does not answer."""

    async def pending(self, session_id: str | None) -> int:
        raise StoreUnavailable("The disk is full.")


class StoreTests(ApiCase):
    """When the database is gone."""

    def test_status(self) -> None:
        """The status says so, and what is known without it."""
        self.build(runner=BrokenRunner.of(scripted_offer()))
        status = self.agents.ask("GET", "/v1/status", LAUNCH_KEY).json
        self.assertEqual((status["store"], status["counts"]), ("unavailable", {"actions": 1, "load_errors": 0}))

    def test_ready(self) -> None:
        """A load balancer learns, without a credential, whether requests can be taken."""
        self.assertEqual(self.agents.ask("GET", "/v1/ready").json, {"status": "ready"})
        self.assertEqual(self.operator.ask("POST", "/v1/vault/lock", self.operator_token()).status, 200)
        heard = self.agents.ask("GET", "/v1/ready")
        self.assertEqual((heard.status, heard.kind), (423, "vault_locked"))

    def test_not_ready(self) -> None:
        """A daemon whose database does not respond is not ready."""
        self.build(runner=BrokenRunner.of(scripted_offer()))
        heard = self.operator.ask("GET", "/v1/ready")
        self.assertEqual((heard.status, heard.kind), (503, "store_unavailable"))
