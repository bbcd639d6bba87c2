"""The agents' hooks: payloads as the real programs send them, and replies as they read them."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.prompts.forms import FORMS
from aileron.features.prompts.values import NO_DECISION, HookEvent, HookReply, ReplyKind
from aileron.model.errors import InvalidRequest

_ALLOW, _DENY, _ASK = HookReply(ReplyKind.ALLOW), HookReply(ReplyKind.DENY, "No."), HookReply(ReplyKind.ASK)
_CLAUDE: dict[str, Any] = {
    "session_id": "s1",
    "transcript_path": "/t",
    "cwd": "/p",
    "permission_mode": "default",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
}


class FormsTests(SynchronousTestCase):
    """Each agent's form."""

    def written(self, agent: str, reply: HookReply, **payload: Any) -> Any:
        """The reply to a payload."""
        return FORMS[agent].write(FORMS[agent].read(payload), reply)

    def test_permission(self) -> None:
        """Claude Code and Codex read an answer to their question in one form; without a decision they go on."""
        for agent in ("claude", "codex"):
            payload = {**_CLAUDE, "hook_event_name": "PermissionRequest"}
            call = FORMS[agent].read(payload)
            self.assertEqual((call.event, call.tool, call.given), (HookEvent.ASKS, "Bash", {"command": "ls"}))
            self.assertEqual((call.directory, call.conversation.strip()), ("/p", "s1"))
            decision = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
            self.assertEqual(self.written(agent, _ALLOW, **payload), {"hookSpecificOutput": decision})
            decision = {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "No."}}
            self.assertEqual(self.written(agent, _DENY, **payload), {"hookSpecificOutput": decision})
            self.assertEqual(self.written(agent, NO_DECISION, **payload), {})

    def test_check(self) -> None:
        """Before a call they read another; Codex, which refuses C{ask}, gets none."""
        for agent in ("claude", "codex"):
            payload = {**_CLAUDE, "hook_event_name": "PreToolUse", "tool_use_id": "t"}
            said = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "No."}
            self.assertEqual(self.written(agent, _DENY, **payload), {"hookSpecificOutput": said})
            self.assertEqual(self.written(agent, NO_DECISION, **payload), {})
            self.assertEqual(FORMS[agent].read(payload).shows_dialog, agent == "claude")
        said = self.written("claude", _ASK, **payload)["hookSpecificOutput"]
        self.assertEqual(said["permissionDecision"], "ask")

    def test_claude_others(self) -> None:
        """Claude Code tells when a call ended and when a conversation rests, which needs no reply."""
        for name in ("PostToolUse", "PostToolUseFailure", "PermissionDenied"):
            payload = {**_CLAUDE, "hook_event_name": name}
            self.assertEqual(FORMS["claude"].read(payload).event, HookEvent.SETTLED)
            self.assertEqual(self.written("claude", NO_DECISION, **payload), {})
        for name in ("Stop", "UserPromptSubmit"):
            call = FORMS["claude"].read({"hook_event_name": name, "session_id": "s1"})
            self.assertEqual((call.event, call.conversation), (HookEvent.IDLE, "s1 "))
        sub = FORMS["claude"].read({**_CLAUDE, "hook_event_name": "PermissionRequest", "agent_id": "a1"})
        self.assertEqual(sub.conversation, "s1 a1")

    def test_elicitation(self) -> None:
        """A question of a tool server is accepted, or left alone."""
        payload: dict[str, Any] = {
            "hook_event_name": "Elicitation",
            "mcp_server_name": "aileron",
            "mode": "url",
            "url": "http://x/",
            "message": "m",
        }
        self.assertEqual(FORMS["claude"].read(payload).tool, "aileron")
        accepted = {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept"}}
        self.assertEqual(self.written("claude", _ALLOW, **payload), accepted)
        self.assertEqual(self.written("claude", NO_DECISION, **payload), {})

    def test_goose(self) -> None:
        """goose blocks by its own word, as any other lets the call run."""
        payload: dict[str, Any] = {
            "event": "PreToolUse",
            "tool_name": "shell",
            "tool_input": {"command": "ls"},
            "working_dir": "/p",
        }
        self.assertEqual(FORMS["goose"].read(payload).event, HookEvent.CHECKS)
        self.assertEqual(self.written("goose", _DENY, **payload), {"decision": "block", "reason": "No."})
        self.assertEqual(self.written("goose", _ALLOW, **payload), {"decision": "allow"})
        self.assertEqual(self.written("goose", NO_DECISION, **payload), {})

    def test_plugin(self) -> None:
        """Our plugins send and read a plain form."""
        payload: dict[str, Any] = {"tool": "bash", "input": {"command": "ls"}, "cwd": "/p", "conversation": "c"}
        call = FORMS["opencode"].read(payload)
        self.assertEqual(
            (call.event, call.tool, call.directory, call.shows_dialog), (HookEvent.ASKS, "bash", "/p", False)
        )
        self.assertEqual(FORMS["pi"].read({**payload, "event": "checks", "dialog": True}).shows_dialog, True)
        self.assertEqual(self.written("pi", _DENY, **payload), {"decision": "deny", "reason": "No."})
        self.assertEqual(self.written("pi", NO_DECISION, **payload), {"decision": "none"})
        self.assertEqual(FORMS["pi"].read({"event": "idle"}).event, HookEvent.IDLE)

    def test_unreadable(self) -> None:
        """What is no payload of an agent's is refused."""
        for agent, payload in (
            ("claude", {}),
            ("claude", {**_CLAUDE, "hook_event_name": "SessionStart"}),
            ("claude", {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": "ls"}),
            ("codex", {**_CLAUDE, "hook_event_name": "PostToolUse"}),
            ("goose", {"tool_input": {}}),
            ("pi", {"event": "question", "tool": "x", "input": {}}),
            ("pi", {"tool": "", "input": {}}),
            ("pi", {"tool": "x", "input": []}),
        ):
            self.assertRaises(InvalidRequest, FORMS[agent].read, payload)
