"""Tries a rule on the permission prompts of the past, before it holds."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from aileron.model.audit import Event
from aileron.model.interfaces.store import IAudit
from aileron.model.queries import AuditQuery

from .calls import MOST_RECORDED
from .patterns import read_rule
from .rules import find_rule
from .values import CallKind, CallText, PromptRule, ReplyKind

MOST_TRIED = 60
"""The number of past prompts that a rule is tried on: the newest."""

_ANSWERS = (ReplyKind.ALLOW.value, ReplyKind.ASK.value, ReplyKind.DENY.value)


@frozen
class PastAsk:
    """A permission prompt of the past, as the audit log has it.

    :ivar at: when the agent asked, as an RFC 3339 date and time.
    """

    id: str
    at: str
    agent: str
    tool: str
    text: str
    directory: str


@frozen
class RuleTrial:
    """The past prompts that a rule would have answered.

    :ivar tried: how many past prompts the rule was tried on.
    :ivar unknown: how many of them the audit log does not have whole, so that nobody can say.
    :ivar answered: the prompts that the rule would have answered, the newest first.
    """

    rule: str
    tried: int
    unknown: int
    answered: tuple[PastAsk, ...]


def read_tried_rule(words: str, answer: str = "", project: str = "") -> PromptRule:
    """Parse a rule that is not in config.yaml. Without an answer it allows.

    :param words: a tool, or a tool and a pattern.
    :raises ValueError: if it is not valid; the message is the end of a sentence whose subject is the rule.
    """
    tool, pattern = read_rule(words)
    if answer and answer not in _ANSWERS:
        raise ValueError(f"must have one of these answers: {', '.join(_ANSWERS)}")
    if project and not project.startswith("/"):
        raise ValueError("must name the whole path of its project")
    return PromptRule(ReplyKind(answer or ReplyKind.ALLOW), tool, pattern, project)


async def try_rule(audit: IAudit, rule: PromptRule) -> RuleTrial:
    """Return what a rule would have answered of the newest prompts that waited for somebody.

    :raises StoreUnavailable: if the audit log cannot be read.
    """
    found = await audit.list(AuditQuery(type="ask.requested", limit=MOST_TRIED))
    events = [record.event for record in found.items]
    unknown = [event for event in events if event.payload.get("whole") is not True]
    answered = tuple(_describe(event) for event in events if event not in unknown and _applies(rule, event))
    return RuleTrial(rule.words, len(events), len(unknown), answered)


def _applies(rule: PromptRule, event: Event) -> bool:
    text, directory = str(event.payload.get("text", "")), str(event.payload.get("directory", ""))
    kind = CallKind(str(event.payload.get("kind", CallKind.OTHER.value)))
    call = CallText(kind, next(_subjects(kind, text), ""), text)
    return find_rule((rule,), str(event.payload.get("tool", "")), call, (directory, directory)) is not None


def _subjects(kind: CallKind, text: str) -> Iterator[str]:
    if kind is CallKind.FILE:
        yield text.partition("\n")[0]
    elif kind is not CallKind.OTHER:
        yield text


def _describe(event: Event) -> PastAsk:
    said = {name: str(event.payload.get(name, ""))[:MOST_RECORDED] for name in ("agent", "tool", "text", "directory")}
    return PastAsk(str(event.payload.get("ask", "")), event.at.isoformat().replace("+00:00", "Z"), **said)
