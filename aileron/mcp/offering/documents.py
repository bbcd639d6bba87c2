"""The documents' addresses: the session's runs, and what there is to know of each action."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote

import mcp.types as t
from mcp.shared.exceptions import MCPError

from aileron.mcp._cards import Card
from aileron.mcp._texts import Said

from .access import named

RUNS_URI = "aileron://runs"
RUNS_TYPE = "application/json"
ACTION_TYPE = "text/markdown"

_ACTIONS = "aileron://actions/"
ACTION_TEMPLATE = f"{_ACTIONS}{{name}}"


def address_of(card: Card) -> str:
    """Where an action's document is, as it is listed."""
    return f"{_ACTIONS}{quote(str(card.action), safe='')}"


def action_at(uri: str, cards: Sequence[Card]) -> Card:
    """The action whose document is at C{uri}, which may name its tool, or be written otherwise than it is listed.

    :raises MCPError: there is none.
    """
    card = named(cards, unquote(uri.removeprefix(_ACTIONS)) if uri.startswith(_ACTIONS) else "")
    if isinstance(card, Said):
        raise MCPError(t.INVALID_PARAMS, f"There is no resource {uri!r}.", {"uri": uri})
    return card
