"""One request in the list: whole where it is short, so that it can be ticked; else with a word that it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator

from attrs import frozen
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer, tags

from aileron.values import JSON, Approval, Precedents, Session, edits, plain, timestamp, visible
from aileron.web._parts import template
from aileron.web._texts import agent, moment

from .reading import reading
from .review import SentStep, arguments, seen, steps
from .risks import Risks, host_of, risks

_MOST_CHARACTERS = 160
_MOST_LINES = 10


@frozen
class Line:
    """One thing that there is to know.

    :ivar whole: whether nothing of it is hidden, cut, or to be looked at twice.
    """

    text: str
    whole: bool = True


@frozen
class Listed:
    """What a row is made of.

    :ivar session: of the agent that asks; L{None}: it is not there.
    """

    approval: Approval
    before: Precedents
    session: Session | None = None

    def lines(self) -> list[Line]:
        """Every argument, every line of the preview, and where each request goes."""
        found = seen(self.approval)
        given = [(each.label, each.value) for each in arguments(self.approval)]
        shown = [] if found is None else [(each.label, each.value) for each in found.lines]
        leaving = [Line(_leaving(step), step.request is not None) for step in steps(self.approval)]
        return [*(_line(label, value) for label, value in (*given, *shown)), *leaving]

    @property
    def whole(self) -> bool:
        """Whether its lines are all that there is to know, so that it can be decided by them."""
        approval = self.approval
        if approval.stale or approval.changes or edits(approval.run) or not steps(approval):
            return False
        found, lines = seen(approval), self.lines()
        missing = found is not None and (found.trouble or found.lacking or any(line.cut for line in found.lines))
        return not missing and len(lines) <= _MOST_LINES and all(line.whole for line in lines)

    @property
    def risks(self) -> Risks:
        """Those that do not depend on what is offered."""
        return risks(self.approval, self.before, None)


class Row(Element):
    """One of those that wait."""

    loader = template("approval_row.xml")

    def __init__(self, listed: Listed) -> None:
        super().__init__()
        self._listed = listed

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """Everything; the box for a tick names the digest of exactly what the row shows."""
        approval, run, whole = self._listed.approval, self._listed.approval.run, self._listed.whole
        return tag.fillSlots(
            id=visible(run.id),
            digest=visible(approval.digest),
            tick=f"tick-{visible(run.id)}-{visible(approval.digest)}",
            tickable="yes" if whole else "no",
            href=f"/approvals/{visible(run.id)}",
            action=visible(run.action),
            open_it="" if whole else "Open it to see all, and to decide.",
            asked_by=agent(self._listed.session) if run.session_id else "you",
            asked_at=moment(approval.requested_at),
            since=timestamp(approval.requested_at),
            stale="changed since it was asked" if approval.stale else "",
        )

    @renderer
    def lines(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """One each."""
        for line in self._listed.lines():
            yield tag.clone()(line.text)

    @renderer
    def chips(self, request: IRequest | None, tag: Tag) -> Tag:
        """What makes it one to look at twice, in a word or two."""
        return tag([tags.span(chip, **{"class": "chip"}) for chip in self._listed.risks.chips()])


def _line(label: str, value: JSON) -> Line:
    """One value behind its name; one that is long is cut, and says so."""
    words = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    if len(words) > _MOST_CHARACTERS:
        return Line(f"{visible(label)}: {visible(words[:_MOST_CHARACTERS])}… (open it to see all)", whole=False)
    return Line(visible(f"{label}: {words}"), "\n" not in words and reading(value).harmless)


def _leaving(step: SentStep) -> str:
    return f"→ {visible(step.operation)} at {visible(host_of(step))}, {visible(step.account)}"
