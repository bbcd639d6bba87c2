"""The model of the live view: what it shows, as rows, and how each key changes it, without terminal or daemon."""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field, frozen

from aileron.values import from_timestamp, visible

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME = "up", "down", "page up", "page down", "home"
ENTER, ESCAPE, BACKSPACE = "enter", "escape", "backspace"
MAX_TEXT = 2000
_FRAME_ROWS = 3  # the title, the news or a question, the keys
_GOES_ON = "↪ "
_NARROW = frozenset(("Na", "N", "H"))
_STEPS = {UP: -1, "k": -1, DOWN: 1, "j": 1}
_UNDECIDED = "Nothing was decided; it still waits."


class Command(enum.Enum):
    """A command that a key stands for and the model leaves to its caller."""

    QUIT = enum.auto()
    OPEN = enum.auto()
    APPROVE = enum.auto()
    DENY = enum.auto()
    END_SESSION = enum.auto()
    EDIT = enum.auto()
    TAKE_BACK = enum.auto()


Asked: TypeAlias = tuple[Command, str] | None
"""A command with its text: an approval's id to open or take back, the moment to begin at, or the reason of a denial."""

# Each key that asks: the command, and whether one more key answers.
_QUESTIONS = {
    "y": (Command.APPROVE, True),
    "l": (Command.APPROVE, False),
    "d": (Command.DENY, False),
    "x": (Command.END_SESSION, True),
}


@frozen
class Size:
    """The terminal's, in columns and rows."""

    width: int
    height: int

    @property
    def body(self) -> int:
        """The rows that are left between title and keys."""
        return max(1, self.height - _FRAME_ROWS)


@frozen
class Question:
    """A question at the bottom.

    :ivar confirms: whether one key answers it.
    :ivar text: what was typed so far, or for an approval that is to be confirmed: when it begins; empty: at once.
    """

    command: Command
    confirms: bool
    text: str = ""


@define
class Opened:
    """One approval, as it was shown.

    :ivar shown: as the daemon sent it; this, and nothing later, is what can be decided.
    :ivar lines: all that is to be read.
    :ivar rows: the same for this terminal's width.
    :ivar top: the first row on the screen.
    :ivar read: so many rows, from the first, were on the screen.
    :ivar changed: why it is no longer what would run; empty: it is.
    """

    shown: Mapping[str, Any]
    lines: Sequence[str]
    rows: Sequence[str] = ()
    top: int = 0
    read: int = 0
    changed: str = ""

    @property
    def session(self) -> str | None:
        """The session that asks; none: the operator."""
        found: str | None = self.shown["run"].get("session_id")
        return found

    @property
    def all_read(self) -> bool:
        """True once every row was on the screen."""
        return 0 < len(self.rows) <= self.read

    def fit(self, size: Size) -> None:
        """Break the lines for this width; what was not read to its end is begun again."""
        was_read = self.all_read
        self.rows = rows_of(self.lines, size.width)
        self.read = len(self.rows) if was_read else 0
        self.scroll(0, size)

    def scroll(self, top: int, size: Size) -> None:
        """Put this row first; what was jumped over does not count as read."""
        self.top = max(0, min(top, len(self.rows) - size.body))
        if self.top <= self.read:
            self.read = min(max(self.read, self.top + size.body), len(self.rows))


@define
class LiveModel:
    """All that the view holds.

    :ivar items: what waits, as the daemon lists it; C{more}: there is more than that.
    :ivar agents: what the sessions' agents call themselves.
    :ivar chosen: the id of the item that is selected; by id, so that no newcomer takes its place.
    :ivar undoable: the id of what was approved last and has not begun.
    :ivar news: one sentence about what was done last.
    """

    size: Size
    items: Sequence[Mapping[str, Any]] = ()
    more: bool = False
    agents: dict[str, str] = field(factory=dict)
    chosen: str | None = None
    opened: Opened | None = None
    question: Question | None = None
    undoable: str | None = None
    news: str = ""

    @property
    def position(self) -> int:
        """Where the selected item stands."""
        ids = [item["id"] for item in self.items]
        return ids.index(self.chosen) if self.chosen in ids else 0

    def replace_items(self, items: Sequence[Mapping[str, Any]], *, more: bool = False) -> bool:
        """Take over what waits now, and tell whether anything is new.

        Where the selected item is gone its neighbour is selected.
        """
        position, before = self.position, {item["id"] for item in self.items}
        ids = [item["id"] for item in items]
        self.items, self.more = items, more
        if self.chosen not in ids:
            self.chosen = ids[min(position, len(ids) - 1)] if ids else None
        return not before.issuperset(ids)

    def open(self, shown: Mapping[str, Any], lines: Sequence[str]) -> None:
        """Show one approval from its beginning."""
        self.opened, self.question, self.chosen = Opened(shown, lines), None, shown["id"]
        self.opened.fit(self.size)

    def compare(self, now: Mapping[str, Any]) -> None:
        """Hold against what is open what the daemon says now: where that differs nothing is asked or decided."""
        if self.opened is None or now["id"] != self.opened.shown["id"]:
            return
        shown = self.opened.shown
        if now["run"]["state"] != "pending_approval":
            self.opened.changed, self.question = f"It is {now['run']['state']} by now.", None
        elif now["digest"] != shown["digest"] or now.get("stale") != shown.get("stale"):
            self.opened.changed, self.question = "It changed while you looked.", None

    def resize(self, size: Size) -> None:
        """Go over to a terminal of another size."""
        before, self.size = self.size, size
        if self.opened is not None and size != before:
            self.opened.fit(size)

    def press(self, keys: Sequence[str]) -> Asked:
        """Do what keys that came at once say, up to the first that asks for a command; others are thrown away.

        What came together, as from a paste, confirms nothing.
        """
        for key in keys:
            if self.question and self.question.confirms and len(keys) > 1:
                self.question, self.news = None, "That came all at once, so nothing was decided."
                return None
            if asked := self._press(key):
                return asked
        return None

    def _press(self, key: str) -> Asked:
        self.news = ""
        if self.question:
            return self._answer(self.question, key)
        if key == "u" and self.undoable:
            return Command.TAKE_BACK, self.undoable
        return self._press_in_list(key) if self.opened is None else self._press_in_opened(self.opened, key)

    def _press_in_list(self, key: str) -> Asked:
        steps = {PAGE_UP: -self.size.body, PAGE_DOWN: self.size.body, HOME: -len(self.items), **_STEPS}
        if key == "q":
            return Command.QUIT, ""
        if key == ENTER and self.chosen:
            return Command.OPEN, self.chosen
        if key in steps and self.items:
            position = max(0, min(self.position + steps[key], len(self.items) - 1))
            self.chosen = self.items[position]["id"]
        return None

    def _press_in_opened(self, opened: Opened, key: str) -> Asked:
        page = max(1, self.size.body - 1)
        steps = {PAGE_UP: -page, "b": -page, PAGE_DOWN: page, " ": page, HOME: -opened.top, **_STEPS}
        if key in steps:
            opened.scroll(opened.top + steps[key], self.size)
        elif key in ("q", ESCAPE):
            self.opened = None
        elif key == "r":
            return Command.OPEN, opened.shown["id"]
        elif key == "e" or key in _QUESTIONS:
            return self._decide(opened, key)
        return None

    def _decide(self, opened: Opened, key: str) -> Asked:
        if opened.changed:
            self.news = f"{opened.changed} Look anew: r"
        elif key == "e":
            return Command.EDIT, ""
        elif key in ("y", "l") and not opened.all_read:
            self.news = "Read it to its end first: Space shows more."
        elif key == "x" and opened.session is None:
            self.news = "No agent's session asks for this, so there is none to end."
        else:
            self.question = Question(*_QUESTIONS[key])
        return None

    def _answer(self, question: Question, key: str) -> Asked:
        if key == ESCAPE or (question.confirms and key not in ("y", "Y")):
            self.question, self.news = None, _UNDECIDED
        elif question.confirms:
            self.question = None
            return question.command, question.text
        elif key == ENTER:
            return self._enter(question.command, question.text.strip())
        else:
            text = question.text[:-1] if key == BACKSPACE else question.text + key * (len(key) == 1)
            self.question = Question(question.command, question.confirms, text[:MAX_TEXT])
        return None

    def _enter(self, command: Command, text: str) -> Asked:
        self.question = None
        if command is Command.DENY:
            return command, text
        if text:
            self.question = Question(command, True, text)
        else:
            self.news = _UNDECIDED
        return None


def columns(text: str) -> int:
    """How many columns the text takes at most.

    Terminals disagree about characters that are not plainly narrow, and about marks: the most that one takes counts.
    """
    return sum(1 if unicodedata.east_asian_width(character) in _NARROW else 2 for character in text)


def rows_of(lines: Sequence[str], width: int) -> Sequence[str]:
    """The lines, each broken where it is too long; what goes on has a mark, so that it passes for no line of ours."""
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
