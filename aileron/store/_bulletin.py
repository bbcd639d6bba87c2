"""Notices between daemons that share a database: what a batch changed, in one notice for each batch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from attrs import define, field, frozen

from aileron.model.audit import Event

from ._dialect import Cursor

CHANNEL = "aileron"
"""The channel on which daemons tell each other what has changed."""

_MOST_RUNS = 100
_NOTIFY = "SELECT pg_notify(?, ?)"


@frozen
class News:
    """A description of what another daemon changed.

    :ivar types: the types of the recorded events, or None for any.
    :ivar runs: the ids of the runs that the events are about, or None for any.
    :ivar vault: whether the vault may have changed.
    :ivar left: whether a daemon has left runs that others may take.
    """

    types: frozenset[str] | None = None
    runs: frozenset[str] | None = None
    vault: bool = True
    left: bool = False

    def plus(self, other: News) -> News:
        """Return news that cover both."""
        return News(
            _either(self.types, other.types),
            _either(self.runs, other.runs),
            self.vault or other.vault,
            self.left or other.left,
        )


def _either(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return None if one is None or other is None else one | other


@define(eq=False)
class Bulletin:
    """Collects what the jobs of a batch record. Used in the writer's thread.

    :param daemon: the name of this daemon, by which it ignores its own notices.
    :param channel: the channel of the notices.
    """

    _daemon: str
    _channel: str
    _types: set[str] = field(factory=set, init=False)
    _runs: set[str] = field(factory=set, init=False)

    def note(self, events: Iterable[Event]) -> None:
        """Add events that are being stored. If they are rolled back, the notice names them all the same."""
        for event in events:
            self._types.add(event.type)
            if event.run_id is not None:
                self._runs.add(event.run_id)

    def tell_left(self, cursor: Cursor) -> None:
        """Tell the other daemons, with the commit, that this one has left runs to them."""
        notice = json.dumps({"daemon": self._daemon, "types": [], "runs": [], "left": True})
        cursor.execute(_NOTIFY, (self._channel, notice))

    def send(self, cursor: Cursor) -> None:
        """Send the collected events to the other daemons. The server delivers the notice after the commit."""
        if not self._types:
            return
        runs = sorted(self._runs) if len(self._runs) <= _MOST_RUNS else None
        notice = json.dumps({"daemon": self._daemon, "types": sorted(self._types), "runs": runs})
        self._types.clear()
        self._runs.clear()
        cursor.settle("", "", None)
        cursor.execute(_NOTIFY, (self._channel, notice))


def read_notice(text: str, own: str) -> News | None:
    """Parse a notice. Return None for one of this daemon, and L{News} about everything if it cannot be parsed.

    :param own: the name of this daemon.
    """
    try:
        found: Any = json.loads(text)
        if found["daemon"] == own:
            return None
        runs = found.get("runs")
        types = frozenset(map(str, found.get("types", ())))
        return News(
            types,
            None if runs is None and types else frozenset(map(str, runs or ())),
            bool(found.get("vault")),
            bool(found.get("left")),
        )
    except (ValueError, TypeError, LookupError, AttributeError):
        return News()
