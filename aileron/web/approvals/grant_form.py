"""What can be granted with an approval: for each argument the few choices that a page can offer safely."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from aileron.values import Predicate, PredicateKind, Run, compact, visible


@frozen
class Choice:
    """One thing that an argument may be.

    :ivar predicate: as the decision sends it, in JSON; empty: exactly what it is.
    """

    predicate: str
    words: str


@frozen
class Allowed:
    """One argument and its choices, the strictest first."""

    argument: str
    choices: tuple[Choice, ...]


def allowed(run: Run, suggested: Sequence[Predicate]) -> Iterator[Allowed]:
    """Every argument of C{run} with what can be granted of it."""
    for name in run.arguments:
        choices = [each for each in suggested if each.argument == name]
        choices.append(Predicate(name, PredicateKind.ANY))
        offered = tuple(Choice(compact(each.as_json()), visible(each.in_words())) for each in choices)
        yield Allowed(name, (Choice("", "exactly as it is above"), *offered))
