"""What the gateway counted, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aileron.values import JSON


def relayed(status: Mapping[str, Any]) -> Mapping[str, JSON]:
    """The line of the gateway's totals, by its label; none before the first call.

    :param status: the answer of C{GET /v1/status}; an older daemon tells nothing of a gateway.
    """
    totals = status.get("gateway", {}).get("totals", {})
    if not totals.get("requests"):
        return {}
    return {"LLM calls": f"{_grouped(totals['requests'])} (tokens: {tokens(totals)})"}


def tokens(told: Mapping[str, Any] | None) -> str | None:
    """How many tokens were read and written; L{None}: there was no call.

    :param told: of all calls, or of a session.
    """
    if told is None:
        return None
    return f"{_grouped(told['input_tokens'])} in, {_grouped(told['output_tokens'])} out"


def _grouped(count: int) -> str:
    return f"{count:,}".replace(",", " ")
