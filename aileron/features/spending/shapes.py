"""The JSON of limits on spending and of the use of models in the operator's API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TypeVar

from attrs import frozen

from aileron.api.endpoint import Schema
from aileron.api.shapes.schemas import BOOLEAN, COUNT, TEXT, TEXT_OR_NULL, list_of, made_of
from aileron.base.json import JSON
from aileron.model.usage import SpendKey, Spent

from .settings import MODEL, PROVIDER
from .values import MOST, LimitSource, LimitState, Per, Unit

_Name = TypeVar("_Name")

_AMOUNT: Schema = {**COUNT, "description": "tokens, requests, or millionths of a US dollar"}
_UNIT: Schema = {"enum": [each.value for each in Unit]}
_PER: Schema = {"enum": [each.value for each in Per]}
LIMIT = made_of(
    {
        "id": TEXT,
        "unit": _UNIT,
        "per": _PER,
        "provider": TEXT_OR_NULL,
        "model": TEXT_OR_NULL,
        "source": {"enum": [each.value for each in LimitSource]},
        "window": {**TEXT, "description": "the session, or the day; empty: each request, or requests of no session"},
        "limit": _AMOUNT,
        "most": {**COUNT, "description": "the limit with what was added to it for this session or day"},
        "used": _AMOUNT,
        "held": {**COUNT, "description": "what requests in progress may use"},
        "reached": BOOLEAN,
    }
)
LIMITS = made_of({"items": list_of(LIMIT), "readable": BOOLEAN})
AMOUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST}
WINDOW: Schema = {"type": "string", "maxLength": 64, "pattern": "^[A-Za-z0-9-]*$"}
NEW_LIMIT = made_of(
    {"unit": _UNIT, "per": _PER, "most": AMOUNT},
    {
        "provider": {"type": ["string", "null"], "pattern": f"^({PROVIDER.pattern})$"},
        "model": {"type": ["string", "null"], "pattern": f"^({MODEL.pattern})$"},
    },
)
RAISE = made_of({"window": WINDOW, "by": AMOUNT, "most": {**AMOUNT, "description": "the limit that you were shown"}})
_SPENT: Mapping[str, Schema] = {
    "requests": COUNT,
    "input_tokens": COUNT,
    "output_tokens": COUNT,
    "cached_tokens": COUNT,
    "estimated_requests": {**COUNT, "description": "requests whose tokens are estimated"},
    "cost_microdollars": {**COUNT, "description": "as providers reported it, else estimated from gateway.prices"},
    "unpriced_requests": {**COUNT, "description": "requests whose cost is unknown, and not in cost_microdollars"},
}
USED = made_of({"session_id": TEXT, "agent": TEXT, "provider": TEXT, "model": TEXT, **_SPENT})
USAGE = made_of(
    {
        "day": {**TEXT, "description": "in the daemon's time zone"},
        "total": made_of(_SPENT),
        "items": list_of(USED),
        "days": list_of(made_of({"day": TEXT, **_SPENT})),
    }
)


def state_json(state: LimitState) -> dict[str, JSON]:
    """Return a limit and its use as JSON."""
    limit = state.limit
    return {
        "id": limit.id,
        "unit": limit.unit.value,
        "per": limit.per.value,
        "provider": limit.provider,
        "model": limit.model,
        "source": state.source.value,
        "window": state.window,
        "limit": limit.most,
        "most": state.most,
        "used": state.used,
        "held": state.held,
        "reached": state.is_reached,
    }


def spent_json(spent: Spent) -> dict[str, JSON]:
    """Return what requests used as JSON."""
    return {
        "requests": spent.requests,
        "input_tokens": spent.input,
        "output_tokens": spent.output,
        "cached_tokens": spent.cached,
        "estimated_requests": spent.estimated,
        "cost_microdollars": spent.microdollars,
        "unpriced_requests": spent.unpriced,
    }


@frozen
class DailyUse:
    """The use of models on one day, and on the days before it.

    :ivar items: the use on the day by session, provider and model, most tokens first.
    :ivar days: the use on each day with requests, oldest first.
    """

    day: date
    items: tuple[tuple[SpendKey, Spent], ...]
    days: tuple[tuple[date, Spent], ...]

    @classmethod
    def of(cls, totals: Mapping[SpendKey, Spent], day: date, first: date) -> DailyUse:
        """Return the use on C{day}, and on each day from C{first} to C{day}."""
        found = [(key, spent) for key, spent in totals.items() if key.day == day]
        sums = sum_by((key.day, spent) for key, spent in totals.items() if first <= key.day <= day)
        items = sorted(found, key=lambda each: (-each[1].tokens, each[0].session_id, each[0].model))
        return cls(day, tuple(items), tuple(sorted(sums.items())))

    @property
    def total(self) -> Spent:
        """The use of models on the whole day."""
        return sum((spent for _, spent in self.items), Spent())


def sum_by(parts: Iterable[tuple[_Name, Spent]]) -> dict[_Name, Spent]:
    """Return the sum of the parts of each name."""
    sums: dict[_Name, Spent] = {}
    for name, spent in parts:
        sums[name] = sums[name] + spent if name in sums else spent
    return sums
