"""C{[limits]}: how often an action may begin."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from aileron.values import Cap

from ._faults import shown
from ._table import Table

MOST = 1_000_000
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86_400.0
_WINDOWS = {"per_hour": HOUR_SECONDS, "per_day": DAY_SECONDS}
_SESSION = "per_session_"
_KEYS = (*_WINDOWS, *(_SESSION + key for key in _WINDOWS), "per_argument")


def read_limits(table: Table, inputs: Collection[str]) -> tuple[Cap, ...]:
    """The caps, in the order of the keys' list; what is wrong with them is kept with their tables.

    :param inputs: names of the action's inputs.
    """
    caps = (*_caps(table), *_caps(table, prefix=_SESSION))
    arguments = table.table("per_argument")
    for name in arguments.values:
        if name not in inputs:
            arguments.fault(name, f"{shown(name)} is not a declared input")
        inner = arguments.table(name)
        caps = (*caps, *_caps(inner, argument=name))
        inner.close(tuple(_WINDOWS))
    table.close(_KEYS)
    return caps


def _caps(table: Table, *, prefix: str = "", argument: str | None = None) -> Iterator[Cap]:
    for key, seconds in _WINDOWS.items():
        most = table.integer(prefix + key, 1, MOST)
        if most is not None:
            yield Cap(most, seconds, argument, per_session=bool(prefix))
