"""Asks over a real store, on one clock, without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, utc
from aileron.features.prompts._asks import AskService
from aileron.features.prompts.patterns import read_rule
from aileron.features.prompts.values import (
    AgentAsk,
    HookCall,
    HookEvent,
    HookReply,
    PromptRule,
    PromptSettings,
    ReplyKind,
)
from aileron.model.audit import Actor
from aileron.model.queries import AuditQuery
from aileron.model.sessions import Session
from aileron.testing import memory_store

NOW = 1_760_000_000.0
PROJECT = "/home/me/shop"
OPERATOR = Actor("human", "operator-1")
URL = "http://localhost:7001"


def rule(answer: str, words: str, project: str = "", reason: str = "") -> PromptRule:
    """A rule as config.yaml has it."""
    tool, pattern = read_rule(words)
    return PromptRule(ReplyKind(answer), tool, pattern, project, reason)


def bash(command: str, event: HookEvent = HookEvent.ASKS, **more: Any) -> HookCall:
    """A hook's call about a command."""
    given: Mapping[str, JSON] = {"command": command}
    return HookCall(event, "Bash", given, **{"directory": PROJECT, "conversation": "talk", **more})


class AsksCase(SynchronousTestCase):
    """Sessions whose agents ask."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(NOW)
        self.store = memory_store(self, self.clock)
        self._ids = 0
        self.use()

    def use(self, *rules: PromptRule, audit: Any = None, **settings: Any) -> None:
        """Have a service with these rules."""
        self.asks = AskService(
            PromptSettings(rules=rules, **{"wait_seconds": 60, **settings}),
            audit or self.store.audit,
            self.clock,
            self.fresh_id,
            lambda: URL,
        )

    def fresh_id(self) -> str:
        """An id that sorts after those before."""
        self._ids += 1
        return f"01JA{self._ids:022d}"

    def session(self, session_id: str = "session-1", directory: str = PROJECT) -> Session:
        """A live session."""
        return Session(session_id, "claude", directory, utc(NOW), utc(NOW))

    def ask(self, call: HookCall, session_id: str = "session-1") -> Deferred[HookReply]:
        """Call the hook; its reply comes later."""
        return Deferred.fromCoroutine(self.asks.reply(self.session(session_id), "claude", call))

    def replied(self, call: HookCall, session_id: str = "session-1") -> HookReply:
        """The reply, which must come at once."""
        return self.successResultOf(self.ask(call, session_id))

    def answer(self, ask_id: str, answer: Any, **more: str) -> AgentAsk:
        """Answer as the operator."""
        return self.successResultOf(Deferred.fromCoroutine(self.asks.answer(ask_id, answer, OPERATOR, **more)))

    def only(self) -> AgentAsk:
        """The one ask that is listed."""
        (found,) = self.asks.list()
        return found

    def records(self) -> list[tuple[str, Mapping[str, JSON]]]:
        """What is on record, oldest first."""
        page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery(limit=500))))
        return [(each.event.type, each.event.payload) for each in reversed(page.items)]

    def types(self) -> list[str]:
        """The types of what is on record."""
        return [type_ for type_, _ in self.records()]


def without_project(call: HookCall) -> HookCall:
    """The same call elsewhere."""
    return evolve(call, directory="/elsewhere")
