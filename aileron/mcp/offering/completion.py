"""Completes what a person types: the name of an action, or a run, in a prompt and in a document's address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import mcp.types as t
from mcp.shared.exceptions import MCPError

from aileron.mcp._contents import ACTION_TEMPLATE, ATTACHMENT_TEMPLATE, RUN_TEMPLATE
from aileron.mcp._tools import ITools

from .prompts import ACTION_ARGUMENT, PROMPTS, RUN_ARGUMENT

_ACTION_VARIABLE = "name"  # of the template; a run is called the same there and in a prompt
_VARIABLES = re.compile(r"\{(\w+)\}")
_OF_PROMPTS = {prompt.name: [each.name for each in prompt.arguments or ()] for prompt in PROMPTS}
_OF_ADDRESSES = {each: _VARIABLES.findall(each) for each in (ACTION_TEMPLATE, RUN_TEMPLATE, ATTACHMENT_TEMPLATE)}


async def list_choices(argument: str, offers: ITools) -> Mapping[str, str]:
    """List what an argument can be, by its name: actions by name, or runs newest first; nothing: it can be anything.

    :return: each with a description for people.
    :raises DaemonError: it cannot be told.
    """
    if argument in (ACTION_ARGUMENT, _ACTION_VARIABLE):
        return dict(sorted((str(definition.action), definition.title) for definition in await offers.actions()))
    if argument == RUN_ARGUMENT:
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
    _check_known(ref, argument.name)
    found = _like(argument.value, await list_choices(argument.name, offers))
    return t.Completion(values=found[:MOST_TOLD], total=len(found), has_more=len(found) > MOST_TOLD)


def _check_known(ref: t.PromptReference | t.ResourceTemplateReference, argument: str) -> None:
    if isinstance(ref, t.PromptReference):
        whose, arguments = f"prompt {ref.name!r}", _OF_PROMPTS.get(ref.name)
    else:
        whose, arguments = f"resource template {ref.uri!r}", _OF_ADDRESSES.get(ref.uri)
    if arguments is None:
        raise MCPError(t.INVALID_PARAMS, f"There is no {whose}.")
    if argument not in arguments:
        raise MCPError(t.INVALID_PARAMS, f"The {whose} has no argument {argument!r}.")


def _like(typed: str, names: Iterable[str]) -> list[str]:
    """List those that begin with what was typed, then those that have it elsewhere."""
    wanted = typed.casefold()
    having = [name for name in names if wanted in name.casefold()]
    return sorted(having, key=lambda name: not name.casefold().startswith(wanted))
