"""The forms of the agents' hooks: how each agent describes a call, and how it reads the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from aileron.base.json import JSON
from aileron.model.errors import InvalidRequest

from .values import HookCall, HookEvent, HookReply, ReplyKind

SERVER = "aileron"
"""The name of Aileron's own tool server in the agents' settings."""

DENIED = "The user denied this."


class HookForm(Protocol):
    """Reads and writes the JSON of one agent's hook."""

    def read(self, payload: Mapping[str, JSON]) -> HookCall:
        """Return the call that the JSON from an agent's hook describes.

        :raises InvalidRequest: if it describes none.
        """

    def write(self, call: HookCall, reply: HookReply) -> JSON:
        """Return a reply as JSON in the form that the agent expects."""


class ClaudeForm:
    """The JSON of the hooks of Claude Code, which Qwen Code uses too."""

    _events: Mapping[str, HookEvent] = {
        "PermissionRequest": HookEvent.ASKS,
        "PreToolUse": HookEvent.CHECKS,
        "PostToolUse": HookEvent.SETTLED,
        "PostToolUseFailure": HookEvent.SETTLED,
        "PermissionDenied": HookEvent.SETTLED,
        "Stop": HookEvent.IDLE,
        "UserPromptSubmit": HookEvent.IDLE,
        "Elicitation": HookEvent.QUESTION,
    }

    def read(self, payload: Mapping[str, JSON]) -> HookCall:
        event = self._events.get(_text(payload, "hook_event_name"))
        if event is None:
            raise _unreadable("hook_event_name", "is no event of these hooks")
        conversation = f"{payload.get('session_id', '')} {payload.get('agent_id', '')}"
        directory = str(payload.get("cwd", ""))
        if event is HookEvent.QUESTION:
            return HookCall(event, _text(payload, "mcp_server_name"), payload, directory, conversation)
        if event is HookEvent.IDLE:
            return HookCall(event, directory=directory, conversation=conversation)
        tool, given = _text(payload, "tool_name"), _object(payload, "tool_input")
        return HookCall(event, tool, given, directory, conversation, shows_dialog=True)

    def write(self, call: HookCall, reply: HookReply) -> JSON:
        if call.event is HookEvent.QUESTION and reply.kind is ReplyKind.ALLOW:
            return {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept"}}
        if call.event is HookEvent.CHECKS:
            return _write_check(reply)
        if call.event is HookEvent.ASKS:
            return _write_permission(reply)
        return {}


class CodexForm:
    """The JSON of the hooks of Codex. Codex shows its own dialog only after its hook has ended."""

    _events: Mapping[str, HookEvent] = {"PermissionRequest": HookEvent.ASKS, "PreToolUse": HookEvent.CHECKS}

    def read(self, payload: Mapping[str, JSON]) -> HookCall:
        event = self._events.get(_text(payload, "hook_event_name"))
        if event is None:
            raise _unreadable("hook_event_name", "is no event of these hooks")
        tool, given = _text(payload, "tool_name"), _object(payload, "tool_input")
        return HookCall(event, tool, given, str(payload.get("cwd", "")), str(payload.get("session_id", "")))

    def write(self, call: HookCall, reply: HookReply) -> JSON:
        return _write_check(reply) if call.event is HookEvent.CHECKS else _write_permission(reply)


class GooseForm:
    """The JSON of the hooks of goose. Any decision but C{block} lets the call run."""

    def read(self, payload: Mapping[str, JSON]) -> HookCall:
        tool, given = _text(payload, "tool_name"), _object(payload, "tool_input")
        directory, conversation = str(payload.get("working_dir", "")), str(payload.get("session_id", ""))
        return HookCall(HookEvent.CHECKS, tool, given, directory, conversation)

    def write(self, call: HookCall, reply: HookReply) -> JSON:
        if reply.kind is ReplyKind.DENY:
            return {"decision": "block", "reason": reply.reason or DENIED}
        return {"decision": "allow"} if reply.kind is ReplyKind.ALLOW else {}


class PluginForm:
    """The JSON of Aileron's own plugins for OpenCode and pi, and of other programs: C{event, tool, input, cwd}."""

    _events: Mapping[str, HookEvent] = {each.value: each for each in HookEvent if each is not HookEvent.QUESTION}

    def read(self, payload: Mapping[str, JSON]) -> HookCall:
        event = self._events.get(str(payload.get("event", HookEvent.ASKS.value)))
        if event is None:
            raise _unreadable("event", f"must be one of: {', '.join(self._events)}")
        directory, conversation = str(payload.get("cwd", "")), str(payload.get("conversation", ""))
        if event is HookEvent.IDLE:
            return HookCall(event, directory=directory, conversation=conversation)
        shows = payload.get("dialog") is True
        tool, given = _text(payload, "tool"), _object(payload, "input")
        return HookCall(event, tool, given, directory, conversation, shows_dialog=shows)

    def write(self, call: HookCall, reply: HookReply) -> JSON:
        why: dict[str, JSON] = {"reason": reply.reason} if reply.reason else {}
        return {"decision": reply.kind.value, **why}


FORMS: Mapping[str, HookForm] = {
    "claude": ClaudeForm(),
    "codex": CodexForm(),
    "goose": GooseForm(),
    "opencode": PluginForm(),
    "pi": PluginForm(),
    "plugin": PluginForm(),
}
"""The forms by the last segment of the path."""


def _write_check(reply: HookReply) -> JSON:
    if reply.kind is ReplyKind.NONE:
        return {}
    said: dict[str, JSON] = {"hookEventName": "PreToolUse", "permissionDecision": reply.kind.value}
    if reply.kind is not ReplyKind.ALLOW:
        said["permissionDecisionReason"] = reply.reason or DENIED
    return {"hookSpecificOutput": said}


def _write_permission(reply: HookReply) -> JSON:
    if reply.kind not in (ReplyKind.ALLOW, ReplyKind.DENY):
        return {}
    decision: dict[str, JSON] = {"behavior": reply.kind.value}
    if reply.kind is ReplyKind.DENY:
        decision["message"] = reply.reason or DENIED
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


def _text(payload: Mapping[str, JSON], name: str) -> str:
    value = payload.get(name)
    if not isinstance(value, str) or not value:
        raise _unreadable(name, "must be a text")
    return value


def _object(payload: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    value = payload.get(name)
    if not isinstance(value, Mapping):
        raise _unreadable(name, "must be an object")
    return value


def _unreadable(name: str, problem: str) -> InvalidRequest:
    return InvalidRequest.listing("The body is not what this agent's hooks send.", (f"/{name}", problem))
