"""What the view holds: what waits, what is open, what is asked, how much of it was read."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from .rows import rows_of

_FRAME_ROWS = 3
"""Above and below what is read: a title, the news or a question, the keys."""


@frozen
class Size:
    """Of the terminal, in columns and rows."""

    width: int
    height: int

    @property
    def body(self) -> int:
        """The rows that are left between title and keys."""
        return max(1, self.height - _FRAME_ROWS)


@frozen
class Waiting:
    """One line of the list.

    :ivar asked_at: seconds since the epoch.
    :ivar session: who asks, or L{None}: the operator.
    """

    id: str
    action: str
    agent: str
    asked_at: float
    session: str | None
    changed: bool


class Purpose(enum.Enum):
    """What a question at the bottom is about."""

    APPROVE = "approve"
    WHEN = "when"
    DENY = "deny"
    FLOOD = "flood"


@frozen
class Asking:
    """A question at the bottom.

    :ivar text: what was typed so far.
    :ivar when: for an approval: begin no sooner, as typed; empty: at once.
    """

    purpose: Purpose
    text: str = ""
    when: str = ""

    @property
    def confirms(self) -> bool:
        """Whether one key answers it."""
        return self.purpose in (Purpose.APPROVE, Purpose.FLOOD)


@frozen
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
    lines: tuple[str, ...]
    rows: tuple[str, ...]
    top: int = 0
    read: int = 0
    changed: str = ""

    @property
    def id(self) -> str:
        """The approval's."""
        return str(self.shown["id"])

    @property
    def session(self) -> str | None:
        """Who asks."""
        found: str | None = self.shown["run"].get("session_id")
        return found

    @property
    def all_read(self) -> bool:
        """Whether every row was on the screen."""
        return self.read >= len(self.rows)

    def at(self, top: int, size: Size) -> Opened:
        """With this row first; what was jumped over does not count as read."""
        top = max(0, min(top, len(self.rows) - size.body))
        read = max(self.read, top + size.body) if top <= self.read else self.read
        return evolve(self, top=top, read=min(read, len(self.rows)))


@frozen
class Undoable:
    """What was approved and has not begun."""

    id: str
    begins_at: str


@frozen
class State:
    """All of it.

    :ivar chosen: the id of the line that is selected; by id, so that no newcomer takes its place.
    :ivar news: one sentence about what was done last.
    :ivar more: whether more waits than is listed.
    """

    size: Size
    waiting: tuple[Waiting, ...] = ()
    chosen: str | None = None
    opened: Opened | None = None
    asking: Asking | None = None
    undoable: Undoable | None = None
    news: str = ""
    more: bool = False

    @property
    def position(self) -> int:
        """Of the selected line."""
        ids = [each.id for each in self.waiting]
        return ids.index(self.chosen) if self.chosen in ids else 0


def listed(state: State, waiting: Sequence[Waiting], *, more: bool = False) -> State:
    """With what waits now.  Where the selected one is gone its neighbour is selected."""
    after = evolve(state, waiting=tuple(waiting), more=more)
    if any(each.id == state.chosen for each in waiting):
        return after
    neighbour = waiting[min(state.position, len(waiting) - 1)].id if waiting else None
    return evolve(after, chosen=neighbour)


def newcomers(state: State, waiting: Sequence[Waiting]) -> bool:
    """Whether something waits that did not."""
    return not {each.id for each in waiting} <= {each.id for each in state.waiting}


def opened(state: State, shown: Mapping[str, Any], lines: Sequence[str]) -> State:
    """With one approval open at its beginning."""
    rows = rows_of(lines, state.size.width)
    found = Opened(shown, tuple(lines), rows).at(0, state.size)
    return evolve(state, opened=found, asking=None, chosen=found.id)


def compared(state: State, now: Mapping[str, Any]) -> State:
    """With what the daemon says now of what is open: where that differs nothing can be decided or is asked."""
    if state.opened is None or now["id"] != state.opened.id:
        return state
    why = difference(state.opened.shown, now)
    if not why:
        return state
    return evolve(state, opened=evolve(state.opened, changed=why), asking=None)


def difference(shown: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Why what was shown cannot be decided now; empty: it can."""
    if now["run"]["state"] != "pending_approval":
        return f"It is {now['run']['state']} by now."
    if now["digest"] != shown["digest"] or now.get("stale") != shown.get("stale"):
        return "It changed while you looked."
    return ""


def resized(state: State, size: Size) -> State:
    """For another terminal; what was not read to its end is begun again."""
    if size == state.size:
        return state
    after = evolve(state, size=size)
    if state.opened is None:
        return after
    rows = rows_of(state.opened.lines, size.width)
    read = len(rows) if state.opened.all_read else 0
    return evolve(after, opened=evolve(state.opened, rows=rows, top=0, read=read).at(0, size))
