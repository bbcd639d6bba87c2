"""The offers of C{aileron watch} about spending: to raise a limit that is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aileron.base.json import JSON
from aileron.model.features import WatchOffer

from .values import Per, SpendLimit, Unit, write_amount

if TYPE_CHECKING:
    from aileron.client import Operator

_LABEL = "raise limit"
_LIVE = ("running", "quiet")
_TEXT = "A spending limit is reached: {limit}, {used} of {most} used{where}."
_QUESTION = "Raise {limit} by {by} to {more}{where}? {used} of {most} used."


async def offer_raises(operator: Operator) -> Sequence[WatchOffer]:
    """Return an offer for each limit that is reached today or in a session that runs: as much again as it allows.

    The requests of no session are left out, because nothing is raised for them alone.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    answer = await _get(operator, "gateway", "limits")  # None: the gateway is off
    reached = [item for item in (answer or {"items": ()})["items"] if item["reached"] and item["window"]]
    found = [(item, await _find_where(operator, item)) for item in reached]
    return [_offer(item, where) for item, where in found if where is not None]


async def _find_where(operator: Operator, item: Mapping[str, Any]) -> str | None:
    """Return where a limit holds, as the end of a sentence, or None if its session has ended."""
    if item["per"] == Per.DAY:
        return " today"
    session = await _get(operator, "sessions", item["window"])
    if session is None or session["state"] not in _LIVE:
        return None
    return f" in session {session['id']} of {session['agent']}"


async def _get(operator: Operator, *path: str) -> Mapping[str, Any] | None:
    from aileron.client import DaemonFault

    try:
        return await operator.get(*path)
    except DaemonFault as fault:
        if fault.fault.kind != "not_found":
            raise
        return None


def _offer(item: Mapping[str, Any], where: str) -> WatchOffer:
    unit, by = Unit(item["unit"]), int(item["limit"])
    limit = SpendLimit(unit, Per(item["per"]), by, item["provider"], item["model"])
    more, used = int(item["most"]) + by, int(item["used"]) + int(item["held"])
    words: dict[str, str] = {
        "limit": limit.describe(),
        "used": write_amount(unit, used).partition(" ")[0],
        "most": write_amount(unit, item["most"]),
        "by": write_amount(unit, by).partition(" ")[0],
        "more": write_amount(unit, more),
        "where": where,
    }
    body: dict[str, JSON] = {"window": item["window"], "by": by, "most": item["most"]}
    goes_on = "The agent can go on." if more > used else f"More is used already: {write_amount(unit, used)}."
    return WatchOffer(
        f"{item['id']} {item['window']} {item['most']}",
        _TEXT.format(**words),
        _LABEL,
        _QUESTION.format(**words),
        ("gateway", "limits", item["id"], "raise"),
        body,
        f"Raised to {words['more']}. {goes_on}",
    )
