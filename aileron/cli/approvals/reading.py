"""An approval read on a screen: its rows, which of them were shown, and the question about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, frozen

from aileron.base.text import visible
from aileron.model.features import WatchOffer

from .rows import LEAST_COLUMNS, rows_of

PROMPTS: Mapping[str, str] = {
    "y": "Approve exactly this{when}{times}? [y/N] ",
    "l": "Approve{times}, and start when (for example +2h)? ",
    "d": "Deny{times}; reason (Enter: none, Esc: cancel)? ",
    "x": "Deny all requests of session {session}, and end it? [y/N] ",
}
"""The question for each key."""


@frozen
class Question:
    """A question at the bottom of the screen, with the text typed so far, or the start time of the run to approve.

    :ivar offer: the offer that the question is about, or None if it is about the open approval.
    """

    key: str
    prompt: str
    text: str = ""
    offer: WatchOffer | None = None

    @property
    def confirms(self) -> bool:
        """True if a single key answers the question."""
        return self.key in ("y", "x") or self.offer is not None


def question_of(offer: WatchOffer) -> str:
    """Return the question about an offer, without control characters."""
    return f"{visible(offer.question)} [y/N] "


@define
class OpenedApproval:
    """One approval as it was shown. Only this version can be decided.

    :ivar rows: its text, broken for this terminal's width.
    :ivar top: the first row on the screen, which shows C{height} rows.
    :ivar read: how many rows from the first were shown. C{top} is never greater, so no row is skipped.
    :ivar changed: why the approval is no longer current; empty if it is.
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
        """The requesting session, or None if the operator is the requester."""
        found: str | None = self.shown["run"].get("session_id")
        return found

    @property
    def all_read(self) -> bool:
        """Return True once every row was on the screen."""
        return 0 < len(self.rows) <= self.read

    @property
    def end(self) -> int:
        """The number of the row below the last one that is on the screen."""
        return min(self.top + self.height, len(self.rows))

    def fit(self, width: int, height: int) -> None:
        """Fit the text to the screen. If the width changed before all was read, start again at the top."""
        self.height = max(0, height) if width >= LEAST_COLUMNS else 0
        if width != self.width:
            was_read = self.all_read
            self.width, self.rows = width, rows_of(self.lines, max(width, LEAST_COLUMNS))
            self.top, self.read = 0, len(self.rows) if was_read else 0
        self.scroll(0)

    def scroll(self, rows: int) -> None:
        """Scroll the text forward by that many rows, or back if the number is negative."""
        self.top = max(0, min(self.top + rows, len(self.rows) - self.height, self.read))

    def compare(self, now: Mapping[str, Any]) -> None:
        """Set C{changed} if the approval is no longer pending, or differs from what is shown.

        :param now: the daemon's current version of the approval.
        """
        if now["run"]["state"] != "pending_approval":
            self.changed = f"It is now {now['run']['state']}."
        elif now["digest"] != self.shown["digest"] or now.get("stale") != self.shown.get("stale"):
            self.changed = "It changed while you were reading."
