"""The asks of live sessions: an agent's questions whether it may call one of its own tools.

They are recorded, listed, answered by the operator or a rule, and closed if nobody answers. They are in memory: if the
daemon ends, the agent asks in its own terminal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from aileron.base.json import JSON, utc
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable
from aileron.model.failures import log_failure
from aileron.model.interfaces.store import IAudit
from aileron.model.sessions import Session

from .calls import describe_call, identify_call, record_text
from .forms import SERVER
from .patterns import matches, read_rule, suggest_patterns
from .rules import find_rule
from .values import (
    NO_DECISION,
    AgentAsk,
    AskAnswer,
    AskState,
    CallText,
    HookCall,
    HookEvent,
    HookReply,
    PromptRule,
    PromptSettings,
    ReplyKind,
)

MOST_WAITING_OF_SESSION = 16
MOST_WAITING = 64
"""The number of asks of one session, and of all, that may wait. For a further call there is no decision."""

MOST_BYTES = 64 * 1024
"""The length of a call as text. For a longer call there is no decision, as it could not be shown whole."""

MOST_PER_MINUTE = 120
"""The number of asks of one session that are recorded within a minute."""

_MOST_CLOSED = 50
_MOST_RULES_OF_SESSION = 50
_MINUTE = 60.0
_LATE = "Nobody answered in time."
_MANY = "Too many questions of this session wait for an answer."
_log = Logger()


@define(eq=False)
class _WaitingAsk:
    """An ask (a permission prompt of an agent) whose hook waits for the reply.

    :ivar identity: equal for equal calls only.
    :ivar is_recorded: whether the audit log has the ask. It is listed from then on.
    :ivar is_claimed: whether an answer is being recorded, so that nothing else closes the ask.
    """

    ask: AgentAsk
    call: HookCall
    text: CallText
    identity: str
    reply: Deferred[HookReply] = field(factory=Deferred)
    timer: IDelayedCall | None = None
    is_recorded: bool = False
    is_claimed: bool = False


@define(eq=False)
class AskService:
    """The permission prompts ("asks") of the agents of all sessions, with their answers.

    :param ids: returns a fresh ULID at each call.
    :param operator_url: returns the URL of the operator site.
    """

    settings: PromptSettings
    _audit: IAudit
    _clock: IReactorTime
    _ids: Callable[[], str]
    _operator_url: Callable[[], str]
    _waiting: dict[str, _WaitingAsk] = field(init=False, factory=dict)
    _closed: deque[AgentAsk] = field(init=False, factory=lambda: deque(maxlen=_MOST_CLOSED))
    _allowed: dict[str, list[PromptRule]] = field(init=False, factory=dict)
    _times: dict[str, deque[float]] = field(init=False, factory=dict)
    _overflowed: set[str] = field(init=False, factory=set)
    _writing: set[Deferred[Any]] = field(init=False, factory=set)

    async def reply(self, session: Session, agent: str, call: HookCall) -> HookReply:
        """Return the reply to an agent's hook.

        If the agent or a rule asks for permission, wait for the operator's answer.

        If the wait is cancelled, the question is withdrawn.
        """
        if not self.settings.inbox:
            return NO_DECISION
        if call.event is HookEvent.QUESTION:
            return self._reply_to_question(call)
        if call.event in (HookEvent.SETTLED, HookEvent.IDLE):
            self._settle(session.id, call)
            return NO_DECISION
        text = describe_call(call.given)
        rule = find_rule(self.settings.rules, call.tool, text, (session.working_dir, call.directory))
        if rule is not None and rule.answer is ReplyKind.DENY:
            return await self._deny_by_rule(session, agent, call, text, rule)
        asks = rule is not None and rule.answer is ReplyKind.ASK
        if call.event is HookEvent.CHECKS and (call.shows_dialog or not asks):
            return HookReply(ReplyKind.ASK) if asks else NO_DECISION
        return await self._ask(session, agent, call, text, rule)

    def list(self) -> tuple[AgentAsk, ...]:
        """Return the permission prompts: those that wait, the oldest first, then those that were closed last."""
        waiting = (each.ask for each in self._waiting.values() if each.is_recorded)
        return (*waiting, *reversed(self._closed))

    def count_waiting(self) -> int:
        """Return the number of permission prompts that wait for an answer."""
        return sum(each.is_recorded for each in self._waiting.values())

    async def answer(
        self, ask_id: str, answer: AskAnswer, actor: Actor, *, pattern: str = "", reason: str = ""
    ) -> AgentAsk:
        """Record the operator's answer, send it to the agent, and return the ask.

        :param pattern: for C{SESSION}: the rule by which further calls of the session are allowed.
        :param reason: for C{DENY}: the reason, which the agent's model reads.
        :raises NotFound: if there is no such ask.
        :raises Conflict: if the ask was answered or closed already.
        :raises InvalidRequest: if the pattern does not apply to this call.
        :raises StoreUnavailable: if the answer cannot be recorded; the ask still waits.
        """
        waiting = self._find(ask_id)
        rule = _read_session_rule(waiting, pattern) if answer is AskAnswer.SESSION else None
        state = AskState.DENIED if answer is AskAnswer.DENY else AskState.ALLOWED
        said: dict[str, JSON] = {"by": "operator", "answer": answer.value}
        said |= {"reason": reason} if reason else {}
        said |= {"pattern": rule.words} if rule is not None else {}
        await self._record_answer(waiting, self._event(f"ask.{state.value}", waiting.ask, actor, **said))
        if rule is not None:
            rules = self._allowed.setdefault(waiting.ask.session_id, [])
            rules.append(rule)
            del rules[:-_MOST_RULES_OF_SESSION]
        self._close(waiting, state, by="operator", pattern=rule.words if rule else "", reason=reason, is_told=True)
        return waiting.ask

    def session_ended(self, session_id: str) -> None:
        """Withdraw the permission prompts of a session, and forget what the operator allowed for it. Idempotent."""
        for each in self._of_session(session_id):
            self._close(each, AskState.WITHDRAWN)
        self._allowed.pop(session_id, None)
        self._times.pop(session_id, None)
        self._overflowed.discard(session_id)

    async def stop(self) -> None:
        """Close all permission prompts without a decision, and wait until this is recorded."""
        for each in tuple(self._waiting.values()):
            self._close(each, AskState.WITHDRAWN)
        while self._writing:
            await next(iter(self._writing))

    def _reply_to_question(self, call: HookCall) -> HookReply:
        """Answer a question whether to open one of Aileron's own pages, as no decision."""
        url = str(call.given.get("url", ""))
        # guard of prompts: another server's question, or one for another address, stays the person's
        #    -> test_asks.QuestionTests.test_own, instead is_own = True
        is_own = call.tool == SERVER and call.given.get("mode") == "url" and url.startswith(f"{self._operator_url()}/")
        return HookReply(ReplyKind.ALLOW) if is_own else NO_DECISION

    def _settle(self, session_id: str, call: HookCall) -> None:
        """Close the permission prompt of a call that has ended, since it was answered in the agent's terminal.

        For an event without a call, close those of a conversation in which no dialog is open.
        """
        identity = identify_call(call.tool, call.given)
        for each in self._of_session(session_id):
            if each.call.conversation == call.conversation and call.event is HookEvent.IDLE:
                self._close(each, AskState.ANSWERED_IN_TERMINAL, by="terminal")
            elif each.call.conversation == call.conversation and each.identity == identity:
                self._close(each, AskState.ANSWERED_IN_TERMINAL, by="terminal")
                return

    async def _deny_by_rule(
        self, session: Session, agent: str, call: HookCall, text: CallText, rule: PromptRule
    ) -> HookReply:
        ask = evolve(self._make(session, agent, call, text), state=AskState.DENIED, by="rule", pattern=rule.words)
        self._closed.append(_shorten(ask))
        try:
            await self._audit.append(self._event("ask.denied", ask, by="rule", pattern=rule.words))
        except StoreUnavailable as error:
            _log.warn("a denial by a rule is not recorded: {why}", why=error.message)
        return HookReply(ReplyKind.DENY, rule.reason or f"A rule of the user denies this: {rule.words}.")

    async def _ask(
        self, session: Session, agent: str, call: HookCall, text: CallText, rule: PromptRule | None
    ) -> HookReply:
        size = len(text.text.encode("utf-8", "replace")) + len(text.rest.encode("utf-8", "replace"))
        if size > MOST_BYTES or self._is_flooded(session.id):
            return self._overflow(session, agent, call)
        self._times.setdefault(session.id, deque()).append(self._clock.seconds())
        own = next((each for each in self._allowed.get(session.id, ()) if matches(each, call.tool, text)), None)
        allowing = own or (rule if rule is not None and rule.answer is ReplyKind.ALLOW else None)
        ask = self._make(session, agent, call, text)
        if allowing is None:
            return await self._wait(_WaitingAsk(ask, call, text, identify_call(call.tool, call.given)))
        by = "session" if own else "rule"
        try:
            await self._audit.append(self._event("ask.allowed", ask, by=by, pattern=allowing.words))
        except StoreUnavailable:
            return NO_DECISION
        self._closed.append(_shorten(evolve(ask, state=AskState.ALLOWED, by=by, pattern=allowing.words)))
        return HookReply(ReplyKind.ALLOW)

    async def _wait(self, waiting: _WaitingAsk) -> HookReply:
        ask = waiting.ask
        self._waiting[ask.id] = waiting
        try:
            await self._audit.append(self._event("ask.requested", ask, Actor("agent", ask.session_id)))
            if waiting.ask.state is AskState.WAITING:
                waiting.is_recorded = True
                waiting.timer = self._clock.callLater(self.settings.wait_seconds, self._expire, waiting)
            return await waiting.reply
        except StoreUnavailable:
            self._waiting.pop(ask.id, None)
            return _reply_without(waiting.call, "The audit log cannot be written.")
        except CancelledError:
            self._close(waiting, AskState.WITHDRAWN)
            raise

    def _expire(self, waiting: _WaitingAsk) -> None:
        waiting.timer = None
        self._close(waiting, AskState.EXPIRED)

    async def _record_answer(self, waiting: _WaitingAsk, event: Event) -> None:
        """Record the answer to a permission prompt. Nothing else closes it meanwhile.

        :raises StoreUnavailable: if the answer cannot be recorded.
        """
        waiting.is_claimed = True
        try:
            await self._audit.append(event)
        except StoreUnavailable:
            waiting.is_claimed = False
            if waiting.reply.called:  # the agent has gone
                self._close(waiting, AskState.WITHDRAWN)
            elif waiting.timer is None:
                self._close(waiting, AskState.EXPIRED)
            raise
        except CancelledError:  # whether the answer is recorded is not known
            waiting.is_claimed = False
            self._close(waiting, AskState.WITHDRAWN)
            raise
        waiting.is_claimed = False

    def _close(
        self,
        waiting: _WaitingAsk,
        state: AskState,
        *,
        by: str = "",
        pattern: str = "",
        reason: str = "",
        is_told: bool = False,
    ) -> None:
        """Close an ask and reply to the agent. If the ask is closed, or its answer is being recorded, do nothing.

        :param is_told: whether the audit log has this already.
        """
        if waiting.ask.state is not AskState.WAITING or waiting.is_claimed:
            return
        waiting.ask = evolve(waiting.ask, state=state, by=by, pattern=pattern, reason=reason)
        self._waiting.pop(waiting.ask.id, None)
        self._closed.append(_shorten(waiting.ask))
        self._overflowed.discard(waiting.ask.session_id)
        if waiting.timer is not None:
            waiting.timer.cancel()
            waiting.timer = None
        if not is_told:
            self._record(self._event(f"ask.{state.value}", waiting.ask))
        if not waiting.reply.called:
            kinds = {AskState.ALLOWED: HookReply(ReplyKind.ALLOW), AskState.DENIED: HookReply(ReplyKind.DENY, reason)}
            waiting.reply.callback(kinds.get(state) or _reply_without(waiting.call, _LATE))

    def _overflow(self, session: Session, agent: str, call: HookCall) -> HookReply:
        """Reply without a decision to a call that is not listed. The first such call of a session is recorded."""
        if session.id not in self._overflowed:
            self._overflowed.add(session.id)
            payload: dict[str, JSON] = {"agent": agent, "tool": call.tool[:100]}
            self._record(self._make_event("ask.overflowed", session.id, DAEMON, payload))
        return _reply_without(call, _MANY)

    def _is_flooded(self, session_id: str) -> bool:
        now, times = self._clock.seconds(), self._times.get(session_id, deque())
        while times and not now - _MINUTE <= times[0] <= now:
            times.popleft()
        # guard of prompts: a flood of asks buries nothing and fills no memory
        #    -> test_asks.FloodTests.test_session, instead return False
        return (
            len(self._of_session(session_id)) >= MOST_WAITING_OF_SESSION
            or len(self._waiting) >= MOST_WAITING
            or len(times) >= MOST_PER_MINUTE
        )

    def _of_session(self, session_id: str) -> tuple[_WaitingAsk, ...]:
        return tuple(each for each in self._waiting.values() if each.ask.session_id == session_id)

    def _find(self, ask_id: str) -> _WaitingAsk:
        waiting = self._waiting.get(ask_id)
        if waiting is not None and waiting.is_recorded and not waiting.is_claimed:
            return waiting
        closed = next((each for each in self._closed if each.id == ask_id), None)
        if closed is None and waiting is None:
            raise NotFound("There is no such question, or it was closed long ago.")
        state = AskState.WAITING if closed is None else closed.state
        raise Conflict("This question was answered or closed already.", {"state": state.value})

    def _make(self, session: Session, agent: str, call: HookCall, text: CallText) -> AgentAsk:
        now = self._clock.seconds()
        return AgentAsk(
            id=self._ids(),
            session_id=session.id,
            agent=agent,
            tool=call.tool,
            kind=text.kind,
            text=text.text,
            rest=text.rest,
            directory=call.directory or session.working_dir,
            asked_at=utc(now),
            ends_at=utc(now + self.settings.wait_seconds),
            is_plain=text.is_plain,
            patterns=tuple(suggest_patterns(call.tool, text)),
        )

    def _event(self, type_: str, ask: AgentAsk, actor: Actor = DAEMON, **more: JSON) -> Event:
        text, is_whole = record_text(ask.text)
        payload: dict[str, JSON] = {
            "ask": ask.id,
            "agent": ask.agent,
            "tool": ask.tool[:100],
            "kind": ask.kind.value,
            "text": text,
            "whole": is_whole and ask.is_plain,
            "directory": ask.directory[:1000],
        }
        return self._make_event(type_, ask.session_id, actor, {**payload, **more})

    def _make_event(self, type_: str, session_id: str, actor: Actor, payload: dict[str, JSON]) -> Event:
        return Event(self._ids(), type_, utc(self._clock.seconds()), actor, payload, session_id=session_id)

    def _record(self, event: Event) -> None:
        """Write an event to the audit log in the background. A failure is logged."""
        writing = Deferred.fromCoroutine(self._audit.append(event))
        self._writing.add(writing)
        writing.addErrback(lambda why: log_failure(_log, "recording {type}", why, type=event.type))
        writing.addBoth(lambda _: self._writing.discard(writing))


def _read_session_rule(waiting: _WaitingAsk, pattern: str) -> PromptRule:
    """Return the rule that allows calls of a session.

    :raises InvalidRequest: if the rule does not apply to the call that waits.
    """
    try:
        rule = PromptRule(ReplyKind.ALLOW, *read_rule(pattern))
    except ValueError as error:
        raise InvalidRequest.listing("The pattern is not valid.", ("/pattern", str(error))) from None
    if not matches(rule, waiting.call.tool, waiting.text):
        raise InvalidRequest.listing("The pattern is not valid.", ("/pattern", "does not apply to this call"))
    return rule


def _reply_without(call: HookCall, why: str) -> HookReply:
    """Return the reply to a call that nobody answered. If a rule asks and no dialog follows, the call is denied."""
    # guard of prompts: a call that a rule asks about does not run because nobody answered
    #    -> test_asks.ChecksTests.test_nobody_answers
    if call.event is HookEvent.CHECKS and not call.shows_dialog:
        return HookReply(ReplyKind.DENY, why)
    return NO_DECISION


def _shorten(ask: AgentAsk) -> AgentAsk:
    """Return a closed permission prompt as it is listed: its text is cut as in the audit log."""
    return evolve(ask, text=record_text(ask.text)[0], rest="", patterns=())
