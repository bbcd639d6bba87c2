"""Parts of pages about spending: limits with a button that raises them, and what was used today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.sessions import Session
from aileron.model.usage import Spent
from aileron.web.blocks import (
    Attention,
    Cell,
    Column,
    Part,
    act,
    answer,
    bars,
    chip,
    columns,
    command,
    legend,
    link,
    quiet,
    table,
)
from aileron.web.parts import Visit
from aileron.web.texts import dollars

from .routes import DAYS, name_agents, read_use
from .running import RunningSpending
from .shapes import DailyUse, sum_by
from .values import LimitState, Per, write_amount

_TOKENS = {"input": "Input tokens", "output": "Output tokens"}
_MOST_BARS = 12
_NO_SESSION = "No session"
_LIMIT_HEADS = ("Limit", "Where", "Used", "Share", "State", "")
_USE_HEADS = ("Agent", "Session", "Provider", "Model", "Requests", "Input tokens", "Output tokens", "Cost (estimate)")
_DAY_HEADS = ("Day", "Requests", "Input tokens", "Output tokens", "Cost (estimate)")
_EXPLAINED = (
    "Tokens are counted as providers report them. Where a response reports none, they are estimated. A cost is what "
    "the provider reported, else an estimate from gateway.prices in config.yaml."
)
_UNREADABLE = "spending.toml is not as you trusted it. Requests to models are refused until you review it: "


async def draw_for_gateway(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the limits, and what was used today and on the days before, for the page of the gateway.

    Draw nothing if the feature does not run.
    """
    spending = deps.features.find(RunningSpending)
    if spending is None:
        return ()
    used = read_use(spending, spending.today())
    return [*_draw_limits(spending, spending.states()), *_draw_use(used, await name_agents(deps, used))]


async def draw_for_session(deps: Dependencies, visit: Visit, subject: Session) -> Sequence[Part]:
    """Draw the limits of one session. Draw nothing if there are none."""
    spending = deps.features.find(RunningSpending)
    if spending is None:
        return ()
    found = [each for each in spending.states() if each.limit.per is Per.SESSION and each.window == subject.id]
    return [tags.h2("Spending limits"), tags.p(answer()), _table_of(found)] if found else ()


async def find_reached(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Attention]:
    """Find limits that are reached, for the home page. If there are some, return one remark that names the first.

    Return another remark if the file of limits is not trusted, so that requests are refused.
    """
    spending = deps.features.find(RunningSpending)
    if spending is None:
        return ()
    if not spending.is_readable():
        return [
            Attention("spending.toml is not as you trusted it; requests to models are refused.", "Show", "/gateway")
        ]
    reached = [each for each in spending.states() if each.is_reached]
    told = f"A spending limit is reached: {reached[0].limit.describe()}." if reached else ""
    return [Attention(told, "Show limits", "/gateway")] if reached else []


def _draw_limits(spending: RunningSpending, states: Sequence[LimitState]) -> Iterator[Part]:
    yield tags.h2("Spending limits")
    if not spending.is_readable():
        yield tags.p(_UNREADABLE, role="alert")
        yield command("aileron", "config", "trust")
    if not states:
        yield quiet("No limits. To set one, run:")
        yield command("aileron", "gateway", "limit", "set", "--per", "day", "--tokens", "5000000")
        return
    yield tags.p(answer())
    yield _table_of(states)


def _table_of(states: Sequence[LimitState]) -> Tag:
    return table("Spending limits", _LIMIT_HEADS, map(_limit_row, states), "")


def _limit_row(state: LimitState) -> tuple[Cell, ...]:
    limit = state.limit
    if limit.per is Per.REQUEST:
        return write_amount(limit.unit, state.most), limit.describe(), None, None, chip("Active", "good"), ""
    used = f"{write_amount(limit.unit, state.used)} of {write_amount(limit.unit, state.most)}"
    share = min(state.used, state.most)
    meter = tags.progress(value=f"{share}", max=f"{state.most}", **{"aria-label": visible(f"Used: {used}")})
    held = f" ({write_amount(limit.unit, state.held)} in progress)" if state.held else ""
    shown = chip("Reached", "bad") if state.is_reached else chip("Active", "good")
    return (
        tags.span(visible(limit.describe())),
        _where(state),
        used + held,
        meter,
        shown,
        _raise_button(state),
    )


def _where(state: LimitState) -> Cell:
    if state.limit.per is Per.DAY:
        return "Today"
    return link(f"/sessions/{state.window}", state.window) if state.window else _NO_SESSION


def _raise_button(state: LimitState) -> Cell:
    """Draw the button that allows as much again in this session, or today; empty for the requests of no session."""
    limit = state.limit
    if limit.per is Per.SESSION and not state.window:
        return ""
    words = f"Raise by {write_amount(limit.unit, limit.most).split()[0]}"
    body: dict[str, JSON] = {"window": state.window, "by": limit.most, "most": state.most}
    return act(words, f"POST /v1/gateway/limits/{limit.id}/raise", body, name=f"raise-{limit.id}-{state.window}")


def _draw_use(used: DailyUse, agents: Mapping[str, str]) -> Iterator[Part]:
    """Draw what was used today by session, agent and model, and on each of the last days, as charts and tables."""
    yield tags.h2("Used today")
    if used.items:
        by_agent = sum_by((agents.get(key.session_id) or _NO_SESSION, spent) for key, spent in used.items)
        by_model = sum_by((key.model or "unknown model", spent) for key, spent in used.items)
        by_session = sum_by((key.session_id or _NO_SESSION, spent) for key, spent in used.items)
        yield quiet(_EXPLAINED)
        for name, sums in (("agent", by_agent), ("model", by_model), ("session", by_session)):
            yield tags.h3(f"Tokens by {name}")
            yield bars(f"Tokens used today by {name}", _rows(sums))
        yield table("Used today", _USE_HEADS, _use_rows(used, agents), "")
    else:
        yield quiet("No requests today.")
    if used.days:
        yield tags.h3(f"Tokens of the last {DAYS} days")
        yield columns("Tokens by day", [_column(used, used.day - timedelta(days=DAYS - 1 - at)) for at in range(DAYS)])
        yield legend(_TOKENS)
        yield tags.details(
            tags.summary("Show the days as a table"),
            table("Used by day", _DAY_HEADS, ((f"{day:%d %b}", *_counts(spent)) for day, spent in used.days), ""),
            id="spending-days",
        )


def _rows(sums: Mapping[str, Spent]) -> list[tuple[str, float, str]]:
    most = sorted(sums.items(), key=lambda each: -each[1].tokens)[:_MOST_BARS]
    return [(name[-24:], float(spent.tokens), f"{spent.tokens:,}") for name, spent in most]


def _use_rows(used: DailyUse, agents: Mapping[str, str]) -> Iterator[tuple[Cell, ...]]:
    for key, spent in used.items:
        session = link(f"/sessions/{key.session_id}", key.session_id) if key.session_id else None
        yield agents.get(key.session_id), session, key.provider, key.model or None, *_counts(spent)


def _counts(spent: Spent) -> tuple[Cell, ...]:
    """Return the cells of what was used. Estimated tokens, and requests without a price, are marked."""
    estimated = f" ({spent.estimated:,} estimated)" if spent.estimated else ""
    unpriced = f" ({spent.unpriced:,} without a price)" if spent.unpriced else ""
    cost = dollars(spent.microdollars) if spent.microdollars or not spent.unpriced else "unknown"
    return f"{spent.requests:,}{estimated}", spent.input, spent.output, f"{cost}{unpriced}"


def _column(used: DailyUse, day: date) -> Column:
    spent = dict(used.days).get(day)
    if spent is None:
        return Column(day)
    parts = {"input": spent.input, "output": spent.output}
    return Column(day, parts, "", f"{spent.input:,} input tokens, {spent.output:,} output tokens")
