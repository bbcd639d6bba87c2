"""The table: medians, ratios taken within each round, and whether what must hold does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from attrs import frozen

from ._figures import IDLE_STREAMS

Round = Mapping[str, Mapping[str, float]]
"""Of each contender by name its figures by name."""

_LEAST_MICROSECONDS = 1.0  # what is added may be less than noise: no ratio of nothings
_PEERS = ("go", "nginx")


@frozen
class Target:
    """What a figure of ours is held to.

    :ivar against: the contender whose figure, times C{limit}, is the bound; L{None}: the limit itself is.
    :ivar at_least: whether more is better.
    """

    against: str | None
    limit: float
    at_least: bool = False

    def met(self, rounds: Sequence[Round], name: str) -> bool | None:
        """Whether ours does it, by the median of the rounds; L{None} where there is nothing to compare with."""
        ours = _median(rounds, "ours", name) if self.against is None else ratio(rounds, name, self.against)
        if ours is None:
            return None
        return ours >= self.limit if self.at_least else ours <= self.limit

    def __str__(self) -> str:
        bound = ">=" if self.at_least else "<="
        return f"{bound} {self.limit:g}" + (f" x {self.against}" if self.against else "")


@frozen
class Figure:
    """One row.

    :ivar name: under which it was measured.
    """

    name: str
    what: str
    places: int = 0
    must: Target | None = None
    aim: Target | None = None


FIGURES = (
    Figure(
        "per_second",
        "requests/s, 2 KB each way, 32 connections",
        must=Target("go", 2.4, at_least=True),
        aim=Target("go", 3, at_least=True),
    ),
    Figure("cpu", "cpu s for 1000 of them", 3, Target("go", 0.5), Target("go", 0.4)),
    Figure("one_p50", "one connection: us, p50"),
    Figure("added_p50", "50 streams: us added to the first byte, p50", 0, Target("go", 1), Target("nginx", 1.2)),
    Figure("added_p99", "the same, p99"),
    Figure("event_p50", "500 busy streams: us of an event, p50"),
    Figure("event_p99", "the same, p99", 0, Target("go", 1), Target("nginx", 1)),
    Figure("event_cpu", "the same: cpu us for one event", 1, Target("go", 1)),
    Figure("idle", "MB resident when idle", 1),
    Figure("stream", f"KB for each of {IDLE_STREAMS} idle streams", 1, Target(None, 10), Target(None, 6)),
    Figure("tls_cpu", "TLS upstream: cpu s for 1000 requests", 3, Target("go", 0.7), Target("nginx", 1.5)),
)
_WHAT_WIDTH, _NAME_WIDTH, _RATIO_WIDTH, _HELD_WIDTH = 44, 9, 8, 13
_BOUND_WIDTH = 18


def with_added(found: Round) -> dict[str, dict[str, float]]:
    """A round with what each contender adds to the first byte that comes without one."""
    direct = found["direct"]
    added = {}
    for name, figures in found.items():
        more = {
            f"added_{part}": max(figures[f"first_{part}"] - direct[f"first_{part}"], _LEAST_MICROSECONDS)
            for part in ("p50", "p99")
            if name != "direct"
        }
        added[name] = {**figures, **more}
    return added


def ratio(rounds: Sequence[Round], name: str, peer: str) -> float | None:
    """Ours to a peer's, the median over the rounds that have both."""
    pairs = [(each.get("ours", {}).get(name), each.get(peer, {}).get(name)) for each in rounds]
    ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
    return median(ratios) if ratios else None


def verdict(figure: Figure, rounds: Sequence[Round]) -> str:
    """Whether what must hold does; whether what we aim at does too."""
    if figure.must is None:
        return ""
    must = figure.must.met(rounds, figure.name)
    if must is None:
        return "not compared"
    if not must:
        return "NO"
    return "yes, aim too" if figure.aim and figure.aim.met(rounds, figure.name) else "yes"


def lines(rounds: Sequence[Round], names: Sequence[str]) -> Iterator[str]:
    """The whole table.

    :param names: of the contenders, one column each.
    """
    titles = [*names, *(f"to {peer}" for peer in _PEERS), "held"]
    widths = [*[_NAME_WIDTH] * len(names), *[_RATIO_WIDTH] * len(_PEERS), _HELD_WIDTH]
    yield _line("", titles, widths) + "must"
    yield "-" * (_WHAT_WIDTH + sum(widths) + _BOUND_WIDTH)
    for figure in FIGURES:
        values = [_shown(_median(rounds, name, figure.name), figure.places) for name in names]
        ratios = [_shown(ratio(rounds, figure.name, peer), 2) for peer in _PEERS]
        cells = [*values, *ratios, verdict(figure, rounds)]
        yield (_line(figure.what, cells, widths) + str(figure.must or "")).rstrip()


def _line(what: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    return (
        f"{what:{_WHAT_WIDTH}}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) + "  "
    )


def _shown(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def _median(rounds: Sequence[Round], contender: str, name: str) -> float | None:
    values = [each[contender][name] for each in rounds if name in each.get(contender, {})]
    return median(values) if values else None
