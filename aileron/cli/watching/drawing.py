"""The state as rows of the terminal, all of them its own: whatever is foreign has come through L{visible}."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from attrs import frozen

from aileron.values import visible

from .model import Asking, Opened, Purpose, Size, State, Waiting
from .rows import columns, cut, padded

_AGE_COLUMNS, _MOST_AGENT_COLUMNS = 5, 20
_LIST_KEYS = "↑↓ select   Enter open   q quit"
_OPEN_KEYS = "Space more   y approve   l later   d deny   x deny all and end   e edit   q back"
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "m"))


class Look(enum.Enum):
    """How a row stands out, where the terminal can."""

    PLAIN = "0"
    BOLD = "1"
    SELECTED = "7"


@frozen
class Row:
    """One row."""

    text: str
    look: Look = Look.PLAIN


def drawn(state: State, now: float) -> list[Row]:
    """As many rows as the terminal has, or fewer.

    :param now: seconds since the epoch.
    """
    body = _opened(state.opened, state.size) if state.opened else _list(state, now)
    frame = [Row(_title(state), Look.BOLD), *body[: state.size.body]]
    frame += [Row("")] * (state.size.height - 2 - len(frame))
    frame += [Row(_bottom(state), Look.BOLD), Row(_keys(state))]
    return [Row(cut(row.text, state.size.width), row.look) for row in frame[-state.size.height :]]


def age(seconds: float) -> str:
    """How long something waits, in words of at most four columns."""
    for span, unit in _SPANS:
        if seconds >= span:
            return f"{min(int(seconds // span), 999)}{unit}"
    return f"{max(0, int(seconds))}s"


def question(opened: Opened, asking: Asking) -> str:
    """What is asked at the bottom."""
    if asking.purpose is Purpose.WHEN:
        return "Approve, and begin when (such as +2h)? "
    if asking.purpose is Purpose.DENY:
        return "Deny; why (Enter: no reason, Esc: do not)? "
    if asking.purpose is Purpose.FLOOD:
        return f"Deny all that session {visible(str(opened.session))} asks, and end it? [y/N] "
    return f"Let exactly this run{f', from {visible(asking.when)} on' if asking.when else ''}? [y/N] "


def _title(state: State) -> str:
    if state.opened is None:
        return f"Aileron: {len(state.waiting)}{'+' if state.more else ''} waiting for you"
    shown, total = state.opened.top + min(state.size.body, len(state.opened.rows)), len(state.opened.rows)
    read = "all of it read" if state.opened.all_read else "Space shows more"
    return f"{state.position + 1} of {len(state.waiting)}, rows {state.opened.top + 1} to {shown} of {total}: {read}"


def _list(state: State, now: float) -> list[Row]:
    if not state.waiting:
        return [Row("Nothing waits for you.")]
    first = max(0, min(state.position - state.size.body // 2, len(state.waiting) - state.size.body))
    return [_line(each, state, now) for each in state.waiting[first : first + state.size.body]]


def _line(waiting: Waiting, state: State, now: float) -> Row:
    selected = waiting.id == state.chosen
    mark = ">" if selected else " "
    agent_columns = min(_MOST_AGENT_COLUMNS, state.size.width // 4)
    cells = (padded(age(now - waiting.asked_at), _AGE_COLUMNS), padded(visible(waiting.agent), agent_columns))
    changed = "   CHANGED" if waiting.changed else ""
    text = f"{mark} {''.join(f'{cell} ' for cell in cells)}{visible(waiting.action)}{changed}"
    return Row(text, Look.SELECTED if selected else Look.PLAIN)


def _opened(opened: Opened, size: Size) -> list[Row]:
    rows: Sequence[str] = opened.rows[opened.top : opened.top + size.body]
    return [Row(row) for row in rows]


def _bottom(state: State) -> str:
    if state.asking and state.opened:
        asked = question(state.opened, state.asking) + visible(state.asking.text)
        return _end_of(asked, state.size.width)
    if state.opened and state.opened.changed and not state.news:
        return f"{state.opened.changed} Nothing can be decided. Look anew: r"
    return visible(state.news)


def _end_of(text: str, width: int) -> str:
    """What is typed is seen where it grows."""
    while columns(text) > width:
        text = text[1:]
    return text


def _keys(state: State) -> str:
    undo = "   u take back what was approved" if state.undoable else ""
    return (_OPEN_KEYS if state.opened else _LIST_KEYS) + undo
