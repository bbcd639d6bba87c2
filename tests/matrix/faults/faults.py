"""The faults: how each begins, what a clear answer is while it lasts, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import frozen

from .ground import Ground

_UNAVAILABLE = frozenset({503})
_TOO_LATE = frozenset({401, 409, 410})
_NO_VAULT = frozenset({401, 403, 404, 409, 412, 423, 503})

Strike: TypeAlias = Callable[[Ground], None]
OWN, FOREIGN, NONE = "own", "foreign", "none"


@frozen
class Fault:
    """One fault.

    :ivar refusals: the statuses that are clear answers while it lasts.
    :ivar voids: whether no word that was said before may count while it lasts.
    :ivar asks_anew: whether what was approved may be asked anew.
    :ivar stays: whether everything must end while it lasts; it ends only then, or, between two lives, never.
    :ivar next_key: between two lives: which key the next one is given; L{None}: it strikes a running life.
    :ivar starts: whether the next life starts.
    :ivar on_record: events of which one at least must be on record then.
    """

    name: str
    strike: Strike
    end: Strike | None
    seconds: float
    refusals: frozenset[int]
    voids: bool = False
    asks_anew: bool = False
    stays: bool = False
    next_key: str | None = None
    starts: bool = True
    on_record: tuple[str, ...] = ()


def _vault(name: str, strike: Strike, seconds: float = 4.0, **more: Any) -> Fault:
    """Whatever was decided under the vault that is not there does not count, until it is there again."""
    return Fault(name, strike, None if more.get("stays") else Ground.restore, seconds, _NO_VAULT, voids=True, **more)


_LASTS: dict[str, Any] = {"asks_anew": True, "stays": True}
_REFUSES: dict[str, Any] = {"next_key": OWN, "starts": False}
FAULTS = (
    Fault("clock a day back", Ground.a_day_back, Ground.right, 4.0, _TOO_LATE),
    Fault("clock two days forward", Ground.two_days_forward, Ground.right, 4.0, _TOO_LATE, voids=True, **_LASTS),
    Fault("disk full", Ground.nothing_grows, Ground.freed, 4.0, _UNAVAILABLE),
    Fault("file system full", Ground.fill, Ground.empty, 4.0, _UNAVAILABLE),
    Fault("database cannot grow", Ground.only_small_files_grow, Ground.freed, 4.0, _UNAVAILABLE),
    Fault("database locked", Ground.hold, Ground.let_go, 10.0, _UNAVAILABLE),
    _vault("vault replaced", Ground.replace),
    _vault("vault removed", Ground.remove),
    _vault("vault truncated", Ground.truncate),
    _vault("vault put back", Ground.put_back),
    _vault("another vault, next life", Ground.replace, next_key=FOREIGN, on_record=("vault.replaced",), **_LASTS),
    _vault("another vault, own key", Ground.replace, **_REFUSES),
    _vault("no vault, next life", Ground.remove, next_key=NONE),
    _vault("no vault, own key", Ground.remove, **_REFUSES),
    _vault("vault truncated, next life", Ground.truncate, **_REFUSES),
    _vault("vault put back, next life", Ground.put_back, next_key=OWN, on_record=("tamper.detected",), **_LASTS),
)
