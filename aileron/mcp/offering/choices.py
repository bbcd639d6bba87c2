"""What the arguments of prompts and addresses can be: names of actions, and runs of the session."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from .documents import ACTION_TEMPLATE, ATTACHMENT_TEMPLATE, RUN_TEMPLATE
from .offers import IOffers
from .prompts import ACTION_ARGUMENT, GUIDE, RUN_ARGUMENT, SHOW, USE, WISH_ARGUMENT


class Kind(Enum):
    """What an argument names."""

    ACTION = "action"
    RUN = "run"
    ANYTHING = "anything"


OF_PROMPTS: Mapping[str, Mapping[str, Kind]] = {
    GUIDE: {},
    USE: {ACTION_ARGUMENT: Kind.ACTION, WISH_ARGUMENT: Kind.ANYTHING},
    SHOW: {RUN_ARGUMENT: Kind.RUN},
}
"""By prompt, then by argument."""

OF_ADDRESSES: Mapping[str, Mapping[str, Kind]] = {
    ACTION_TEMPLATE: {"name": Kind.ACTION},
    RUN_TEMPLATE: {"run": Kind.RUN},
    ATTACHMENT_TEMPLATE: {"run": Kind.RUN, "number": Kind.ANYTHING},
}
"""By template, then by argument."""


async def choices(kind: Kind, offers: IOffers) -> Mapping[str, str]:
    """What there is of a kind, and what each is called for people: actions by name, runs newest first.

    :raises DaemonError: it cannot be told.
    """
    if kind is Kind.ACTION:
        return dict(sorted((str(card.action), card.title) for card in await offers.actions()))
    if kind is Kind.RUN:
        return {str(run["approval_id"]): f"{run['action']}: {run['status']}" for run in await offers.recent_runs()}
    return {}
