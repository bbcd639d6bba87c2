"""The live view as rows of the terminal, all of them its own: whatever is foreign has come through L{visible}."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from aileron.values import from_timestamp, visible

from .model import Command, LiveModel, Opened, Question, columns, rows_of

_AGE_COLUMNS, _MOST_AGENT_COLUMNS = 5, 20
_CUT = "…"
_LIST_KEYS = "↑↓ select   Enter open   q quit"
_OPEN_KEYS = "Space more   y approve   l later   d deny   x deny all and end   e edit   q back"
_UNDO_KEYS = "   u take back what was approved"
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "m"))


@frozen
class Row:
    """One row, and how it stands out where the terminal can."""

    text: str
    bold: bool = False
    selected: bool = False


def render(model: LiveModel, now: float) -> list[Row]:
    """As many rows as the terminal has.

    :param now: seconds since the epoch.
    """
    size, opened = model.size, model.opened
    if opened is not None:
        body = [Row(row) for row in opened.rows[opened.top : opened.top + size.body]]
    else:
        body = list(_list(model, now)) or [Row("Nothing waits for you.")]
    body += [Row("")] * (size.body - len(body))
    keys = (_OPEN_KEYS if opened else _LIST_KEYS) + (_UNDO_KEYS if model.undoable else "")
    rows = [Row(_title(model), bold=True), *body, Row(_bottom(model), bold=True), Row(keys)]
    return [Row(_cut(row.text, size.width), row.bold, row.selected) for row in rows]


def _title(model: LiveModel) -> str:
    opened = model.opened
    if opened is None:
        return f"Aileron: {len(model.items)}{'+' if model.more else ''} waiting for you"
    shown, total = opened.top + min(model.size.body, len(opened.rows)), len(opened.rows)
    read = "all of it read" if opened.all_read else "Space shows more"
    return f"{model.position + 1} of {len(model.items)}, rows {opened.top + 1} to {shown} of {total}: {read}"


def _list(model: LiveModel, now: float) -> Iterator[Row]:
    first = max(0, min(model.position - model.size.body // 2, len(model.items) - model.size.body))
    for item in model.items[first : first + model.size.body]:
        selected = item["id"] == model.chosen
        yield Row(f"{'>' if selected else ' '} {_item(item, model, now)}", selected=selected)


def _item(item: Mapping[str, Any], model: LiveModel, now: float) -> str:
    waiting = age(now - from_timestamp(item["requested_at"]).timestamp())
    session = item["run"].get("session_id")
    agent = _cut(visible(model.agents.get(session, "you")), min(_MOST_AGENT_COLUMNS, model.size.width // 4))
    agent += " " * (min(_MOST_AGENT_COLUMNS, model.size.width // 4) - columns(agent))
    changed = "   CHANGED" if item.get("stale") else ""
    return f"{waiting:{_AGE_COLUMNS}} {agent} {visible(item['run']['action'])}{changed}"


def _bottom(model: LiveModel) -> str:
    opened = model.opened
    if opened and model.question:
        asked = _question(opened, model.question)
        while columns(asked) > model.size.width:
            asked = asked[1:]  # what is typed is seen where it grows
        return asked
    if opened and opened.changed and not model.news:
        return f"{opened.changed} Nothing can be decided. Look anew: r"
    return visible(model.news)


def _question(opened: Opened, question: Question) -> str:
    typed = visible(question.text)
    if question.command is Command.END_SESSION:
        return f"Deny all that session {visible(str(opened.session))} asks, and end it? [y/N] "
    if question.command is Command.DENY:
        return f"Deny; why (Enter: no reason, Esc: do not)? {typed}"
    if question.confirms:
        return f"Let exactly this run{f', from {typed} on' if typed else ''}? [y/N] "
    return f"Approve, and begin when (such as +2h)? {typed}"


def _cut(text: str, width: int) -> str:
    """The text, or its beginning and a mark that there is more."""
    if columns(text) <= width:
        return text
    return rows_of([text], width - columns(_CUT))[0] + _CUT


def age(seconds: float) -> str:
    """How long something waits, in words of at most four columns."""
    for span, unit in _SPANS:
        if seconds >= span:
            return f"{min(int(seconds // span), 999)}{unit}"
    return f"{max(0, int(seconds))}s"
