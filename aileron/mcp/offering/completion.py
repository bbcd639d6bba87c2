"""Completes what a person types: the name of an action, or a run, in a prompt and in a document's address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

import mcp.types as t
from mcp.shared.exceptions import MCPError

from aileron.mcp._contents import ACTION_TEMPLATE, ATTACHMENT_TEMPLATE, RUN_TEMPLATE
from aileron.mcp._tools import ITools

from .prompts import ACTION_ARGUMENT, GUIDE, RUN_ARGUMENT, SHOW, USE, WISH_ARGUMENT


class Kind(Enum):
    """The kind of thing that an argument names."""

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


async def list_choices(kind: Kind, offers: ITools) -> Mapping[str, str]:
    """List what exists of a kind, with a description for people: actions by name, runs newest first.

    :raises DaemonError: it cannot be told.
    """
    if kind is Kind.ACTION:
        return dict(sorted((str(definition.action), definition.title) for definition in await offers.actions()))
    if kind is Kind.RUN:
        return {str(run["approval_id"]): f"{run['action']}: {run['status']}" for run in await offers.recent_runs()}
    return {}


MOST_TOLD = 100  # as the protocol allows


async def complete_argument(
    ref: t.PromptReference | t.ResourceTemplateReference, argument: t.CompletionArgument, offers: ITools
) -> t.Completion:
    """Complete an argument by what was typed of it; nothing where it can be anything.

    :raises MCPError: there is no such prompt, template or argument.
    :raises DaemonError: it cannot be told.
    """
    found = _like(argument.value, await list_choices(_kind(ref, argument.name), offers))
    return t.Completion(values=found[:MOST_TOLD], total=len(found), has_more=len(found) > MOST_TOLD)


def _kind(ref: t.PromptReference | t.ResourceTemplateReference, argument: str) -> Kind:
    if isinstance(ref, t.PromptReference):
        whose, arguments = f"prompt {ref.name!r}", OF_PROMPTS.get(ref.name)
    else:
        whose, arguments = f"resource template {ref.uri!r}", OF_ADDRESSES.get(ref.uri)
    if arguments is None:
        raise MCPError(t.INVALID_PARAMS, f"There is no {whose}.")
    if argument not in arguments:
        raise MCPError(t.INVALID_PARAMS, f"The {whose} has no argument {argument!r}.")
    return arguments[argument]


def _like(typed: str, names: Iterable[str]) -> list[str]:
    """List those that begin with what was typed, then those that have it elsewhere."""
    wanted = typed.casefold()
    having = [name for name in names if wanted in name.casefold()]
    return sorted(having, key=lambda name: not name.casefold().startswith(wanted))
