"""What a session asked for over time, drawn: when each call came, how long it waited, how long it was done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from attrs import frozen
from twisted.web.template import Tag

from aileron.values import Run, RunState, visible
from aileron.web._texts import STATES

MOST_DRAWN = 100
_WIDTH, _LANE, _LEFT, _TOP = 900, 18, 190, 24
_NARROW = 3
_NAME = 24
_ENDED_WITHOUT = frozenset((RunState.DENIED, RunState.CANCELLED, RunState.EXPIRED))


@frozen
class Lane:
    """One call.

    :ivar decided: until when it waited for the operator; L{None}: it waits, or never did.
    :ivar began: when it was sent first; L{None}: it was not.
    """

    run: Run
    decided: datetime | None = None
    began: datetime | None = None


def draw(lanes: Sequence[Lane], now: datetime) -> Tag:
    """The picture of some calls, the oldest above."""
    start = min(each.run.received_at for each in lanes)
    scale = _Scale(start, max(_end(each, now) for each in lanes))
    height = _TOP + _LANE * len(lanes)
    words = f"{len(lanes)} calls from the first at the left to the last at the right; the table below says the same."
    drawn = [part for place, lane in enumerate(lanes) for part in _lane(lane, place, scale, now)]
    box = {"viewBox": f"0 0 {_WIDTH} {height}", "role": "img", "aria-label": words, "class": "timeline"}
    return Tag("svg")(*_axis(scale, height), *drawn, **box)


@frozen
class _Scale:
    start: datetime
    end: datetime

    def at(self, moment: datetime) -> float:
        """Where a moment is."""
        whole = max((self.end - self.start).total_seconds(), 0.001)
        part = min(max((moment - self.start).total_seconds() / whole, 0.0), 1.0)
        return _LEFT + part * (_WIDTH - _LEFT - _NARROW)


def _axis(scale: _Scale, height: int) -> Iterator[Tag]:
    yield _text(_LEFT, 12, f"{scale.start:%H:%M:%S}", "start")
    yield _text(_WIDTH, 12, f"{scale.end:%H:%M:%S} UTC", "end")
    for x in (_LEFT, _WIDTH - 1):
        yield Tag("line")(**_numbers(x1=x, x2=x, y1=16, y2=height))


def _lane(lane: Lane, place: int, scale: _Scale, now: datetime) -> Iterator[Tag]:
    y, end, run = _TOP + place * _LANE, _end(lane, now), lane.run
    name = run.action if len(run.action) <= _NAME else f"{run.action[: _NAME - 1]}…"
    yield _text(0, y + 12, visible(name), "start")
    waited_until = end if lane.began is None else lane.decided or lane.began
    if run.gated:
        yield _bar(scale, run.received_at, waited_until, y, "waited", f"{run.action}: waited")
    if lane.began is not None:
        yield _bar(scale, lane.began, end, y, f"did {run.state.value}", f"{run.action}: {STATES[run.state]}")
    elif not run.gated or run.state in _ENDED_WITHOUT:
        yield _bar(scale, end, end, y, f"did {run.state.value}", f"{run.action}: {STATES[run.state]}")


def _bar(scale: _Scale, start: datetime, end: datetime, y: int, kind: str, words: str) -> Tag:
    x = scale.at(start)
    place = _numbers(x=x, y=y + 2, width=max(scale.at(end) - x, _NARROW), height=_LANE - 4, rx=2)
    return Tag("rect")(Tag("title")(visible(words)), **place, **{"class": kind})


def _text(x: int, y: int, words: str, anchor: str) -> Tag:
    return Tag("text")(words, **_numbers(x=x, y=y), **{"text-anchor": anchor})


def _numbers(**given: float) -> dict[str, str]:
    return {name: f"{value:.1f}".removesuffix(".0") for name, value in given.items()}


def _end(lane: Lane, now: datetime) -> datetime:
    return lane.run.changed_at if lane.run.state.settled else max(now, lane.run.changed_at)
