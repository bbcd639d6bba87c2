"""Composes a short message from notices that still apply.

Contents of calls are included only if the operator wants them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from attrs import evolve, frozen
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.json import utc
from aileron.base.text import visible
from aileron.model.interfaces.store import IRuns, ISessions
from aileron.model.interfaces.vault import IVault
from aileron.model.queries import RunQuery
from aileron.model.runs import Run, RunState
from aileron.model.titles import MOST_TITLE
from aileron.model.vault import VaultState
from aileron.review import InboxGroup, RequestReview, list_labels

from .rules import TEST
from .values import Message, Notice

MOST_LINES = 6
_MOST_CHARACTERS: Mapping[str, int] = {
    **dict.fromkeys(("action", "session", "run_id", "agent"), 80),
    "title": MOST_TITLE,
    "reason": 200,
    "arguments": 300,
}
_CUT = "…"
_MOST_CAUTIONS, _MOST_CAUTION = 12, 300

_PENDING = RunQuery(states=(RunState.PENDING,), limit=1, oldest_first=True)
_MOST_ARGUMENTS = 2000
_log = Logger()
T = TypeVar("T")


@frozen(kw_only=True)
class MessageComposer:
    """The composer of messages. If the store does not answer, messages have less detail.

    :param ids: returns a fresh ULID at each call.
    :param operator_url: returns the URL of the operator site, once it listens.
    :param public_urls: the URLs of the pages under public names, which do not change. Messages link to the
        first, if there is one.
    :param find_review: returns the review of a call that waits for a decision, by the run's id.
    :param contents: True if messages hold the arguments of calls.
    """

    runs: IRuns
    sessions: ISessions
    vault: IVault
    clock: IReactorTime
    ids: Callable[[], str]
    operator_url: Callable[[], str]
    find_review: Callable[[str], Awaitable[RequestReview]]
    contents: bool = False
    public_urls: Collection[str] = ()

    async def compose(self, notices: Sequence[Notice], more: int = 0) -> Message | None:
        """Return a message about the notices that still apply, or None if none applies.

        Decided requests do not apply any more.

        :param more: the number of further notices.
        """
        found = [await _or_else(each, self._complete(each)) for each in notices]
        current = [each for each in found if each is not None]
        if not current:
            return None
        now = utc(self.clock.seconds())
        desk = self.operator_url()
        # guard of the phone: what leaves this machine links to the public name
        #    -> notices.test_notifier.LinkTests.test_public, instead origin = desk
        origin = min(self.public_urls, default=desk)
        return message_of(
            current,
            more,
            message_id=self.ids(),
            now=now,
            page=partial(_write_url, origin),
            desk=partial(_write_url, desk),
            besides=await self._besides(now),
        )

    async def _besides(self, now: datetime) -> Sequence[str]:
        """Return lines about all pending calls and the vault."""
        waiting, oldest = await _or_else((0, None), self._count_waiting())
        lines = []
        if oldest is not None and waiting > 1:
            lines.append(f"{waiting} pending approvals in total, the oldest for {_age(now, oldest)}.")
        if self.vault.state() is VaultState.LOCKED:
            lines.append("The vault is locked. Unlock it: aileron vault unlock")
        return lines

    async def _count_waiting(self) -> tuple[int, datetime | None]:
        """Return the number of pending calls, and when the oldest was received, or None if there are none."""
        first = (await self.runs.list(_PENDING)).items
        return await self.runs.count(_PENDING), first[0].received_at if first else None

    async def _complete(self, notice: Notice) -> Notice | None:
        run = None if notice.run_id is None else await self.runs.get(notice.run_id)
        wanted = notice.rule.while_state
        if wanted is not None and (run is None or run.state is not wanted):
            return None
        session = None if notice.session is None else await self.sessions.get(notice.session)
        completed = evolve(
            notice, agent=None if session is None else str(session.agent), arguments=self._arguments(run)
        )
        if run is None or wanted is not RunState.PENDING:
            return completed
        return await _or_else(completed, self._judge(completed, run.id))

    async def _judge(self, notice: Notice, run_id: str) -> Notice:
        """Return a copy of the notice with the call's group and warnings.

        If messages have contents, the copy has the call's title and the sentences of the warnings too.

        :raises NotFound: if there is no such request.
        """
        review = await self.find_review(run_id)
        judged = evolve(notice, group=review.group.value, warnings=list_labels(review.warnings))
        if not self.contents:
            return judged
        return evolve(judged, title=review.title, cautions=tuple(each.text for each in review.warnings))

    def _arguments(self, run: Run | None) -> str | None:
        if run is None or not self.contents:
            return None
        return json.dumps(dict(run.arguments), ensure_ascii=False, default=str)[:_MOST_ARGUMENTS]


def _write_url(origin: str, run_id: str | None) -> str:
    return f"{origin}/approvals" + ("" if run_id is None else f"/{run_id}")


async def _or_else(otherwise: T, looking: Awaitable[T]) -> T:
    """Return the result of C{looking}. If that fails, log the failure and return C{otherwise}.

    So a message is sent even if a row of the store cannot be read.
    """
    try:
        return await looking
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - the message has less detail; the error may quote contents
        _log.warn("a message says less, since a lookup failed ({kind})", kind=type(error).__name__)
        return otherwise


def message_of(
    notices: Sequence[Notice],
    more: int,
    *,
    message_id: str,
    now: datetime,
    page: Callable[[str | None], str],
    desk: Callable[[str | None], str] | None = None,
    besides: Sequence[str] = (),
) -> Message:
    """Return one message about all of C{notices}, of which there is at least one.

    :param more: the number of further notices.
    :param message_id: the ID of the message.
    :param page: returns the URL of the page of a run, or of all pending approvals.
    :param desk: returns the same page's URL at the address for browsers on this machine, or None if it is the same URL.
    :param besides: lines to add after those of the notices.
    """
    shown = tuple(
        _to_shown(each) for each in sorted(notices, key=lambda each: (each.rule.rank, each.rule.kind, each.at))
    )
    runs = {each.run_id for each in shown}
    only = runs.pop() if len(runs) == 1 and not more else None
    return Message(
        id=message_id,
        at=now,
        title=f"Aileron: {_title(shown, more)}",
        subject=f"Aileron: {shown[0].title}" if len(shown) == 1 and not more and shown[0].title else "",
        lines=(*_lines(shown, more, now), *besides),
        url=page(only),
        desk_url="" if desk is None else desk(only),
        notices=shown,
        urgent=any(each.rule.urgent for each in shown),
        contents=tuple(_contents(shown)),
        more=more,
    )


def _to_shown(notice: Notice) -> Notice:
    """Return the notice with texts that are visible and short."""
    texts: dict[str, Any] = {name: _text(getattr(notice, name), most) for name, most in _MOST_CHARACTERS.items()}
    cautions = tuple(_text(each, _MOST_CAUTION) or "" for each in notice.cautions[:_MOST_CAUTIONS])
    return evolve(notice, **texts, cautions=cautions)


def _text(text: str | None, most: int) -> str | None:
    if text is None:
        return None
    seen = visible(text[: most + 1])
    return seen if len(seen) <= most else seen[: most - 1] + _CUT


def _title(notices: Sequence[Notice], more: int) -> str:
    first = notices[0]
    alike = sum(each.rule == first.rule for each in notices)
    others = len(notices) - alike + more
    said = first.rule.many.format(n=alike) if alike > 1 else _one(first)
    return f"{said}, and {others} more" if others else said


def _one(notice: Notice) -> str:
    stopped = f"the action {notice.action}" if notice.session is None else "a session"
    whole = "everything" if notice.session is None else "a session"
    return notice.rule.one.format(action=notice.action or "a request", what=stopped, whole=whole)


def _lines(notices: Sequence[Notice], more: int, now: datetime) -> Iterable[str]:
    grouped: dict[tuple[object, ...], list[Notice]] = {}
    for each in notices:
        grouped.setdefault((each.rule, each.action, each.session, each.reason), []).append(each)
    groups = list(grouped.values())
    for alike in groups[:MOST_LINES]:
        yield _line(alike, now)
    left = sum(len(alike) for alike in groups[MOST_LINES:]) + more
    if left:
        yield f"… and {left} more."


def _line(alike: Sequence[Notice], now: datetime) -> str:
    first, times = alike[0], f" ({len(alike)} times)" if len(alike) > 1 else ""
    said = _one(first)
    since = "" if first.rule is TEST else f", {_age(now, first.at)} ago"
    why = f": {first.reason}" if first.reason else "."
    labels = dict.fromkeys(label for each in alike for label in each.warnings)
    closely = any(each.group == InboxGroup.LOOK_CLOSELY for each in alike)
    words = "Look closely" if closely else "Check before you approve"
    check = f" {words}: {', '.join(labels)}." if labels else f" {words}." if closely else ""
    return f"{said[0].upper()}{said[1:]}{times}{_who(first)}{since}{why}{check}"


def _who(notice: Notice) -> str:
    """Return words for the session and its agent, whose name is self-reported. Without a session, return no text."""
    if notice.session is None:
        return ""
    agent = "" if notice.agent is None else f"{notice.agent}, "
    return f", by {agent}session {notice.session}"


def _age(now: datetime, then: datetime) -> str:
    seconds = max(0, round((now - then).total_seconds()))
    minutes, hours = seconds // 60, seconds // 3600
    return f"{hours} h" if hours else f"{minutes} min" if minutes else f"{seconds} s"


def _contents(notices: Sequence[Notice]) -> Iterable[str]:
    told = [each for each in notices if each.arguments is not None]
    for each in told[:MOST_LINES]:
        yield from filter(None, (each.title,))
        yield f"{each.action}: {each.arguments}"
        yield from (f"{each.action}: {caution}" for caution in each.cautions)
