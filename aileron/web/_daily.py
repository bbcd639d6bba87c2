"""The charts of the last two weeks by day: outcomes, decisions, the operator's time to decide, and LLM usage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from operator import attrgetter

from attrs import field, frozen
from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.model.queries import DailyWait
from aileron.model.usage import Usage

from .blocks import Cell, Column, Part, columns, legend, table
from .event_names import OUTCOMES
from .texts import COST, STATES, dollars

_DAYS = 14
_DAY = "Day (UTC)"
_OUTCOMES = {state.value: STATES[state] for state in OUTCOMES.values()}
_DECISIONS = {"by-you": "Approved by you", "by-grant": "Approved by a grant", "denied": "Denied", "expired": "Expired"}
_COUNTED = {
    **{kind: state.value for kind, state in OUTCOMES.items()},
    "approval.approved": "by-you",
    "grant.used": "by-grant",
    "approval.expired": "expired",
}
"""The event types that are counted, each with the name of its count."""
_TOKENS = {"input": "Input tokens", "output": "Output tokens"}
_TIMES = ((86_400, " d"), (3600, " h"), (60, " min"), (1, " s"))
_SIZES = ((10**9, "B"), (10**6, "M"), (1000, "k"), (1, ""))
_ROUND = 10
_get_half, _get_most = attrgetter("median_seconds"), attrgetter("slow_seconds")


@frozen
class Day:
    """The counts of one day in UTC.

    :ivar wait: how long approvals waited for the operator, or None if none was decided.
    :ivar cost: the cost of LLM calls in microdollars, or None if no provider reported any.
    """

    day: date
    counts: dict[str, int] = field(factory=lambda: dict.fromkeys((*_COUNTED.values(), *_TOKENS), 0))
    wait: DailyWait | None = None
    cost: int | None = None


async def read_days(deps: Dependencies) -> Sequence[Day]:
    """Return the counts of each of the last days, including days without events."""
    today = deps.now().astimezone(UTC).date()
    first = today - timedelta(days=_DAYS - 1)
    since = datetime.combine(first, time(), UTC)
    waits = await deps.audit.time_daily(since, "approval.requested", ("approval.approved", "approval.denied"))
    wait_of = {each.day: each for each in waits}
    used = {day: total.usage for day, total in (await deps.usage.daily(first)).items()}
    dates = [first + timedelta(days=at) for at in range(_DAYS)]
    days = {each: Day(each, wait=wait_of.get(each), cost=used.get(each, Usage()).cost_microdollars) for each in dates}
    for day, kind, count in await deps.audit.count_daily(since, tuple(_COUNTED)):
        if day in days:  # events dated in the future by a wrong clock
            days[day].counts[_COUNTED[kind]] = count
    for day in days.keys() & used.keys():
        days[day].counts.update(input=used[day].input, output=used[day].output)
    for each in days.values():  # a run allowed by a grant is recorded as approved too
        each.counts["by-you"] = max(each.counts["by-you"] - each.counts["by-grant"], 0)
    return list(days.values())


def draw_days(days: Sequence[Day]) -> Iterator[Part]:
    """Draw the charts with their numbers as tables. Draw nothing if there are no counts."""
    if not any(any(each.counts.values()) for each in days):
        return
    yield tags.h2(f"The last {_DAYS} days (UTC)")
    charts = [
        _draw_chart("Outcomes", [_count(each, _OUTCOMES) for each in days], legend(_OUTCOMES)),
        _draw_chart("Decisions", [_count(each, _DECISIONS) for each in days], legend(_DECISIONS)),
        _draw_chart("Time to decide: half within", [_time(each, _get_half) for each in days]),
        _draw_chart("Time to decide: 9 in 10 within", [_time(each, _get_most) for each in days]),
        _draw_chart("LLM tokens", [_count(each, _TOKENS) for each in days], legend(_TOKENS)),
        _draw_chart(COST, [_cost(each) for each in days]),
    ]
    yield tags.div(*charts, **{"class": "charts"})
    counted = {**_OUTCOMES, **_DECISIONS}
    heads = (_DAY, *_TOKENS.values(), "Half decided within", "9 in 10 decided within", COST)
    yield tags.details(
        tags.summary("Show the numbers as tables"),
        table("Outcomes and decisions", (_DAY, *counted.values()), (_count_row(each, counted) for each in days), ""),
        table("LLM tokens and time to decide", heads, (_usage_row(each) for each in days), ""),
        id="numbers",
    )


def _draw_chart(title: str, days: Sequence[Column], *key: Tag) -> Part:
    if not any(each.parts for each in days):
        return ""
    return tags.div(tags.h3(title), columns(f"{title}, by day (UTC)", days), *key)


def _count(day: Day, names: Mapping[str, str]) -> Column:
    parts = {kind: day.counts[kind] for kind in names if day.counts[kind]}
    words = ", ".join(f"{count:,} {names[kind].lower()}" for kind, count in parts.items())
    return Column(day.day, parts, _write(sum(parts.values()), _SIZES) if parts else "", words)


def _cost(day: Day) -> Column:
    if not day.cost:
        return Column(day.day)
    cents = day.cost // 10_000
    above = f"${_write(cents / 100, _SIZES)}" if cents >= 100 else f"{cents}¢" if cents else "<1¢"
    return Column(day.day, {"cost": day.cost}, above, dollars(day.cost) or "")


def _time(day: Day, get: Callable[[DailyWait], float]) -> Column:
    if day.wait is None:
        return Column(day.day)
    seconds, number = get(day.wait), day.wait.number
    words = f"{_write(seconds)} ({number:,} {'decision' if number == 1 else 'decisions'})"
    return Column(day.day, {"time": seconds}, _write(seconds).replace(" ", "").replace("min", "m"), words)


def _write(number: float, units: Sequence[tuple[int, str]] = _TIMES) -> str:
    size, unit = next((each for each in units if number >= each[0]), units[-1])
    scaled = number / size
    return (f"{scaled:.0f}" if scaled >= _ROUND else f"{scaled:.1f}".removesuffix(".0")) + unit


def _count_row(day: Day, names: Mapping[str, str]) -> tuple[Cell, ...]:
    return f"{day.day:%d %b}", *(day.counts[kind] for kind in names)


def _usage_row(day: Day) -> tuple[Cell, ...]:
    times = (None, None) if day.wait is None else (_write(get(day.wait)) for get in (_get_half, _get_most))
    return *_count_row(day, _TOKENS), *times, dollars(day.cost)
