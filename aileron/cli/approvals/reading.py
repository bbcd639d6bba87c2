"""An approval as it is read on a screen: its rows, which of them were there to be read, and what is asked about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, frozen

from .rows import LEAST_COLUMNS, rows_of

PROMPTS: Mapping[str, str] = {
    "y": "Approve exactly this{when}? [y/N] ",
    "l": "Approve, and start when (for example +2h)? ",
    "d": "Deny; reason (Enter: none, Esc: cancel)? ",
    "x": "Deny all requests of session {session}, and end it? [y/N] ",
}
"""What is asked after each key."""


@frozen
class Question:
    """A question at the bottom, and what was typed there, or when the run begins that is to be approved."""

    key: str
    prompt: str
    text: str = ""

    @property
    def confirms(self) -> bool:
        """True where one key answers it."""
        return self.key in ("y", "x")


@define
class OpenedApproval:
    """One approval as it was shown; this, and nothing later, is what can be decided.

    :ivar rows: all that is to be read, for this terminal's width.
    :ivar top: the first row on the screen, which shows C{height} of them.
    :ivar read: so many rows, from the first, were drawn; C{top} never lies beyond, so that none is jumped over.
    :ivar changed: why it is no longer what would run; empty: it is.
    """

    shown: Mapping[str, Any]
    lines: Sequence[str]
    rows: Sequence[str] = ()
    width: int = 0
    height: int = 0
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

    @property
    def end(self) -> int:
        """The row below the last one on the screen."""
        return min(self.top + self.height, len(self.rows))

    def fit(self, width: int, height: int) -> None:
        """Show them in so many columns and rows; in another width what was not read to its end is begun again."""
        self.height = max(0, height) if width >= LEAST_COLUMNS else 0
        if width != self.width:
            was_read = self.all_read
            self.width, self.rows = width, rows_of(self.lines, max(width, LEAST_COLUMNS))
            self.top, self.read = 0, len(self.rows) if was_read else 0
        self.scroll(0)

    def scroll(self, rows: int) -> None:
        """Move on, or back, by so many rows."""
        self.top = max(0, min(self.top + rows, len(self.rows) - self.height, self.read))

    def compare(self, now: Mapping[str, Any]) -> None:
        """Note it if this is not what the daemon has now."""
        if now["run"]["state"] != "pending_approval":
            self.changed = f"It is now {now['run']['state']}."
        elif now["digest"] != self.shown["digest"] or now.get("stale") != self.shown.get("stale"):
            self.changed = "It changed while you were reading."
