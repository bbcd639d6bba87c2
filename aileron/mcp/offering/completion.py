"""Completes the name of an action, for a person who types it: in the prompt that uses one, in a document's address."""

from __future__ import annotations

from collections.abc import Sequence

import mcp.types as t

from aileron.mcp._cards import Card

from .documents import ACTION_TEMPLATE
from .prompts import ACTION_ARGUMENT, PROMPTS, USE

MOST_TOLD = 100  # as the protocol allows

_TEMPLATE_ARGUMENT = "name"


class NoCompletion(ValueError):
    """There is no such thing to complete; the message says what."""


def completion(
    ref: t.PromptReference | t.ResourceTemplateReference, argument: t.CompletionArgument, cards: Sequence[Card]
) -> t.Completion:
    """What an argument may be, going by what was typed of it.

    :param cards: every action.
    :return: names of actions; none where the argument can be anything.
    :raises NoCompletion: there is no such prompt, template or argument.
    """
    found = _names(cards, argument.value) if _is_an_action(ref, argument.name) else []
    return t.Completion(values=found[:MOST_TOLD], total=len(found), has_more=len(found) > MOST_TOLD)


def _is_an_action(ref: t.PromptReference | t.ResourceTemplateReference, argument: str) -> bool:
    """Whether the argument is the name of an action."""
    if isinstance(ref, t.PromptReference):
        _check(argument, _arguments(ref.name), f"prompt {ref.name!r}")
        return (ref.name, argument) == (USE, ACTION_ARGUMENT)
    if ref.uri != ACTION_TEMPLATE:
        raise NoCompletion(f"There is no resource template {ref.uri!r}.")
    _check(argument, [_TEMPLATE_ARGUMENT], f"resource template {ref.uri!r}")
    return True


def _arguments(prompt: str) -> list[str]:
    for each in PROMPTS:
        if each.name == prompt:
            return [argument.name for argument in each.arguments or []]
    raise NoCompletion(f"There is no prompt {prompt!r}.")


def _check(argument: str, known: Sequence[str], whose: str) -> None:
    if argument not in known:
        raise NoCompletion(f"The {whose} has no argument {argument!r}.")


def _names(cards: Sequence[Card], typed: str) -> list[str]:
    """The names that begin with what was typed, then those that have it elsewhere; each by name."""
    wanted = typed.casefold()
    names = sorted(str(card.action) for card in cards)
    having = [name for name in names if wanted in name.casefold()]
    return sorted(having, key=lambda name: not name.casefold().startswith(wanted))
