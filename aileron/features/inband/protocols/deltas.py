"""Accumulates JSON from deltas: texts grow, and list entries with equal index are merged.

The cost of a delta does not depend on the length of the accumulated value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class _GrowingText:
    """A text to which pieces can be appended cheaply."""

    __slots__ = ("_pieces",)

    def __init__(self, *pieces: str) -> None:
        self._pieces = [*pieces]

    def add(self, piece: str) -> None:
        self._pieces.append(piece)

    def __str__(self) -> str:
        self._pieces[:] = ["".join(self._pieces)]
        return self._pieces[0]


class _GrowingList(list[Any]):
    """A list that grows. Entries with equal index are merged."""

    def __init__(self, entries: list[Any]) -> None:
        super().__init__(entries)
        self._places: dict[object, int] = {}
        for place, entry in enumerate(entries):
            self._places.setdefault(_index(entry), place)

    def add(self, entry: Any) -> None:
        index = _index(entry)
        place = None if index is None else self._places.get(index)
        if place is None:
            self._places.setdefault(index, len(self))
            self.append({**entry} if isinstance(entry, dict) else entry)
        else:
            accumulate(self[place], entry)


def _index(entry: Any) -> object:
    index = entry.get("index") if isinstance(entry, dict) else None
    return index if isinstance(index, (int, str)) else None


def accumulate(whole: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a delta to the accumulated value in place. L{join_deltas} returns the value as JSON."""
    for key, value in delta.items():
        before = whole.get(key)
        if before is None or key in ("type", "index", "role"):
            whole[key] = _copy(value)
        elif value is not None:
            whole[key] = _add(before, value)


def _add(before: Any, value: Any) -> Any:
    """Return C{before} extended by C{value}, or C{value} if the two cannot be joined."""
    if isinstance(value, str) and isinstance(before, (str, _GrowingText)):
        text = before if isinstance(before, _GrowingText) else _GrowingText(before)
        text.add(value)
        return text
    if isinstance(value, dict) and isinstance(before, dict):
        accumulate(before, value)
        return before
    if isinstance(value, list) and isinstance(before, list):
        entries = before if isinstance(before, _GrowingList) else _GrowingList(before)
        for entry in value:
            entries.add(entry)
        return entries
    return value


def _copy(value: Any) -> Any:
    return [*value] if isinstance(value, list) else {**value} if isinstance(value, dict) else value


def join_deltas(value: Any) -> Any:
    """Return the accumulated value as JSON."""
    if isinstance(value, dict):
        return {key: join_deltas(each) for key, each in value.items()}
    if isinstance(value, list):
        return [join_deltas(each) for each in value]
    return str(value) if isinstance(value, _GrowingText) else value
