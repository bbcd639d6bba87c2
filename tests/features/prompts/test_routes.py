"""The routes: an agent's hook asks on its site, and the operator answers on the other."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from aileron.features.prompts._asks import AskService
from aileron.features.prompts.running import RunningPrompts
from aileron.features.prompts.values import PromptSettings
from tests.api.case import LAUNCH_KEY, LOCAL_KEY, ApiCase, Heard, running

_ALLOWED = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}


class PromptsCase(ApiCase):
    """A daemon with a session whose agent asks."""

    def setUp(self) -> None:
        super().setUp()
        self.asks = AskService(
            PromptSettings(wait_seconds=60), self.store.audit, self.clock, self.fresh_id, lambda: "http://localhost:1"
        )
        self.build(features=running(RunningPrompts(self.asks)))
        self.token, self.key = self.open_session("claude")["token"], self.operator_token()

    def hook(self, command: str = "npm test", token: str | None = None) -> Deferred[Heard]:
        """Claude Code's hook asks."""
        body = {
            "hook_event_name": "PermissionRequest",
            "session_id": "s",
            "cwd": "/src",
            "tool_name": "Bash",
            "tool_input": {"command": command},
        }
        return self.agents.start("POST", "/v1/prompts/claude", token or self.token, body)

    def items(self, key: str | None = None) -> list[dict[str, Any]]:
        """What the operator is shown."""
        found: list[dict[str, Any]] = self.operator.ask("GET", "/v1/asks", key or self.key).json["items"]
        return found

    def answer(self, ask_id: str, key: str | None = None, **body: str) -> Heard:
        """Answer."""
        return self.operator.ask("POST", f"/v1/asks/{ask_id}/answer", key or self.key, body)


class HookTests(PromptsCase):
    """C{POST /v1/prompts/AGENT}."""

    def heard(self, hook: Deferred[Heard]) -> Heard:
        """The reply, once it is sent."""
        self.agents.treq.flush()
        return self.successResultOf(hook)

    def test_allowed(self) -> None:
        """A hook waits, is listed, and gets the answer in its agent's form."""
        hook = self.hook()
        self.assertNoResult(hook)
        (item,) = self.items()
        self.assertEqual(
            (item["agent"], item["tool"], item["text"], item["state"]), ("claude", "Bash", "npm test", "waiting")
        )
        self.assertEqual(item["patterns"], ["Bash(npm test)"])
        self.assertEqual(self.answer(item["id"], answer="once").json["state"], "allowed")
        heard = self.heard(hook)
        self.assertEqual((heard.status, heard.json), (200, _ALLOWED))

    def test_expired(self) -> None:
        """After the wait there is no decision."""
        hook = self.hook()
        self.clock.advance(60)
        self.assertEqual(self.heard(hook).json, {})

    def test_session_ended(self) -> None:
        """A session that ends asks no more."""
        self.hook()
        session_id = self.items()[0]["session_id"]
        self.agents.ask("POST", f"/v1/sessions/{session_id}/end", self.token, {})
        self.assertEqual(self.items()[0]["state"], "withdrawn")
        self.assertEqual(self.successResultOf(self.hook()).status, 401)

    def test_refused(self) -> None:
        """Only the session's token asks; an unknown agent and an unreadable payload are refused."""
        self.assertEqual(self.successResultOf(self.hook(token=LAUNCH_KEY)).status, 403)
        self.assertEqual(self.successResultOf(self.hook(token=self.key)).status, 401)
        self.assertEqual(self.agents.ask("POST", "/v1/prompts/nobody", self.token, {}).status, 404)
        self.assertEqual(self.agents.ask("POST", "/v1/prompts/claude", self.token, {"a": 1}).status, 400)
        self.assertEqual(self.items(), [])
        self.build(features=running())
        self.assertEqual(self.agents.ask("POST", "/v1/prompts/pi", self.token, {"tool": "x", "input": {}}).status, 404)
        self.assertEqual(self.operator.ask("GET", "/v1/asks", self.key).status, 404)


class AnswerTests(PromptsCase):
    """C{POST /v1/asks/ID/answer}."""

    def test_who_answers(self) -> None:
        """Only a login that may decide answers: no agent, no launcher, and no program that reads the home."""
        self.hook()
        (item,) = self.items(LOCAL_KEY)
        for key, status in ((self.token, 401), (LAUNCH_KEY, 401), (LOCAL_KEY, 403)):
            self.assertEqual(self.answer(item["id"], key, answer="once").status, status)
        body = {"answer": "once"}
        self.assertEqual(self.agents.ask("POST", f"/v1/asks/{item['id']}/answer", self.token, body).status, 404)
        self.assertEqual(self.agents.ask("GET", "/v1/asks", self.token).status, 404)
        self.assertEqual(self.items()[0]["state"], "waiting")

    def test_answers(self) -> None:
        """A pattern must cover the call; a second answer and an unknown ask are refused."""
        self.hook()
        ask_id = self.items()[0]["id"]
        self.assertEqual(self.answer(ask_id, answer="session").status, 400)
        self.assertEqual(self.answer(ask_id, answer="session", pattern="Read").status, 400)
        self.assertEqual(self.answer(ask_id, answer="deny", reason="no").json["reason"], "no")
        again = self.answer(ask_id, answer="once")
        self.assertEqual((again.status, again.json["error"]["details"]), (409, {"state": "denied"}))
        self.assertEqual(self.answer("x", answer="once").status, 404)

    def test_status(self) -> None:
        """The launcher learns whether to set up hooks; an ask is no pending approval."""
        self.hook()
        told = self.agents.ask("GET", "/v1/status", LAUNCH_KEY).json
        wanted = {"inbox": True, "checks": False, "wait_seconds": 60, "waiting": 1}
        self.assertEqual(told["prompts"], wanted)
        self.assertEqual(told["counts"]["pending_approvals"], 0)
        self.assertEqual(self.operator.ask("GET", "/v1/approvals", self.key).status, 404)


class TrialTests(PromptsCase):
    """C{GET /v1/asks/trial}."""

    def test_trial(self) -> None:
        """Every reader tries a rule; one that is none is refused, and an agent has no such route."""
        self.hook("npm test a")
        found = self.operator.ask("GET", "/v1/asks/trial?rule=Bash(npm%20test%20*)", LOCAL_KEY).json
        self.assertEqual((found["tried"], [each["text"] for each in found["answered"]]), (1, ["npm test a"]))
        denied = self.operator.ask("GET", "/v1/asks/trial?rule=Bash(rm%20*)&answer=deny&project=/src", self.key).json
        self.assertEqual(denied["answered"], [])
        for query in ("?rule=Bash(", "?rule=Bash&answer=none", "?rule=Bash&project=src"):
            self.assertEqual(self.operator.ask("GET", f"/v1/asks/trial{query}", self.key).status, 400)
        self.assertEqual(self.agents.ask("GET", "/v1/asks/trial?rule=Bash", self.token).status, 404)
