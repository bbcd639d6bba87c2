"""The rows of a terminal: the width of a text, where it is broken or cut, and an approval's row."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from aileron.base.json import from_timestamp
from aileron.base.text import visible
from aileron.cli._folding import fold_line
from aileron.cli.output import in_line

LEAST_COLUMNS = 20
"""On fewer columns no approval can be decided."""

MARKS: Mapping[str, str] = {"high": "!!", "medium": "!"}
"""The marks of warnings in a terminal, where a colour may be missing, by severity, the highest first."""

LOOK_CLOSELY, ROUTINE = "look_closely", "routine"
_GOES_ON, _CUT = "↪ ", "…"
_AGENT_COLUMNS = 20
_CHANGED = "   CHANGED"
_LIST_KEYS = ("↑↓ select  Enter open  q quit", "↑↓ Enter q")
_OPEN_KEYS = (
    "Space more  y approve  d deny  q back  l later  e edit  x deny all, end session",
    "Space y approve d deny q back l later e edit x end session",
    "y approve d deny l later e edit x end q",
    "Space y d q l e x",
)
_UNDO_KEYS, _TOGETHER_KEYS = "u undo approval  ", "t all identical  "


def columns(text: str) -> int:
    """Return the most terminal columns that the text may occupy. Terminals disagree about some characters."""
    return sum(1 if unicodedata.east_asian_width(character) in ("Na", "N", "H") else 2 for character in text)


def rows_of(lines: Sequence[str], width: int) -> Sequence[str]:
    """Break long lines. A continuation has a mark, so that it cannot be mistaken for a line of ours."""
    rows: list[str] = []
    for line in lines:
        rows.append("")
        room = width
        for character in line:
            if (room := room - columns(character)) < 0:
                rows.append(_GOES_ON)
                room = width - columns(_GOES_ON + character)
            rows[-1] += character
    return rows


def shorten(text: str, width: int) -> str:
    """Return the text, cut and marked if it is too long."""
    return text if columns(text) <= width else rows_of([text], width - columns(_CUT))[0] + _CUT


def age(seconds: float) -> str:
    """Return a waiting time as a text of at most four columns, such as C{5m}."""
    for span, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= span:
            return f"{min(int(seconds // span), 999)}{unit}"
    return f"{max(0, int(seconds))}s"


def key_hints(opened: bool, undo: bool, identical: bool, width: int, offer: str = "") -> str:
    """Return the functions of the keys, as briefly as the width requires.

    :param opened: whether an approval is open, or the list is shown.
    :param undo: whether the last approval can be undone.
    :param identical: whether identical approvals can be decided together with the open one.
    :param offer: the key of an offer and its function, or an empty text.
    """
    more = f"{_UNDO_KEYS * undo}{_TOGETHER_KEYS * identical}{offer and f'{offer}  '}"
    texts = [f"{more}{keys}" for keys in (_OPEN_KEYS if opened else _LIST_KEYS)]
    return next((text for text in texts if columns(text) <= width), shorten(texts[-1], width))


def wrap(text: str, width: int, most: int, *, grows: bool) -> Sequence[str]:
    """Break a text into at most C{most} rows, between words unless it is still being typed.

    :param grows: whether to show the end of an overlong text, as while typing, or its beginning.
    """
    width = max(width, LEAST_COLUMNS)
    first, *others = [text] if grows else fold_line(text, width, len(_GOES_ON))
    rows = rows_of([first, *(_GOES_ON + other.removeprefix(" " * len(_GOES_ON)) for other in others)], width)
    if len(rows) <= most:
        return rows
    if grows:
        return rows[-most:]
    return [*rows[: most - 1], shorten(f"{rows[most - 1]} {rows[most].removeprefix(_GOES_ON)}", width)]


def find_mark(item: Mapping[str, Any]) -> str:
    """Return the mark of an approval's most severe warning: two exclamation marks for a high one, one for a medium."""
    found = {each["severity"] for each in item.get("warnings") or () if not each.get("standing")}
    return next((mark for severity, mark in MARKS.items() if severity in found), "")


def list_warnings(item: Mapping[str, Any]) -> str:
    """Return the labels of an approval's warnings as one text, or an empty text if there are none.

    Warnings that apply to every call of the action are left out.
    """
    labels = [str(each["label"]) for each in item.get("warnings") or () if not each.get("standing")]
    return ", ".join(dict.fromkeys(labels))


def describe(item: Mapping[str, Any]) -> str:
    """Return the title of an approval, or its action and arguments if no connector provides a title."""
    run = item["run"]
    title, action = str(item.get("title") or ""), visible(run["action"])
    if title not in ("", f"Run {action}"):
        return title
    return f"{action}  {visible(in_line(run.get('arguments') or {}))}".rstrip()


def describe_row(item: Mapping[str, Any]) -> str:
    """Return the title of an approval.

    In front of it are how many of several needed approvals there are, and the number of identical ones that the row
    represents, if several.
    """
    count, progress = 1 + len(item.get("others") or ()), visible(str(item.get("progress") or ""))
    title = f"{count} × {describe(item)}" if count > 1 else describe(item)
    return f"{progress}; {title}" if progress else title


def sort_closely(items: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the approvals in the order of the inbox: first the group C{look_closely}, then the routine ones."""
    return sorted(items, key=lambda item: item.get("group") == ROUTINE)


def approval_row(item: Mapping[str, Any], agent: str, now: float, width: int) -> str:
    """Return the row of an approval: age, agent, mark and title, and whether it changed, which is never cut.

    If the row represents several identical approvals, their number is in front of the title.

    :param agent: the agents of these approvals.
    """
    room = min(_AGENT_COLUMNS, width // 4)
    agent = shorten(visible(agent), room)
    waits = age(now - from_timestamp(item["requested_at"]).timestamp())
    changed = _CHANGED * bool(item.get("stale"))
    row = f"{waits:5} {agent}{' ' * (room - columns(agent))} {find_mark(item):2} {describe_row(item)}"
    return shorten(row, max(columns(_CUT), width - columns(changed))) + changed
