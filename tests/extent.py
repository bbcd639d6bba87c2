"""How much is tried: what must be green before each change, or everything, as ``python3 -m tests --all`` says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from random import randrange
from typing import Any, TypeVar
from zlib import crc32

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

VARIABLE = "AILERON_TESTS"
"""``all``: what is left out on other days is run as well."""
_EXAMPLES = 50

SEEDS = 10_000
SEED_VARIABLE = "AILERON_TESTS_SEED"
SEED = int(os.environ.get(SEED_VARIABLE) or randrange(SEEDS))
"""By which a part is chosen of what one run does not try whole; another in each run, unless the variable says it.

The test command says one for each state of the sources.
"""


def place_among(name: str, number: int) -> int:
    """Choose one of so many places for what is named so: with the same seed the same."""
    return crc32(f"{SEED} {name}".encode()) % number


def how_to_repeat() -> str:
    """What each failure says, so that the same parts can be tried once more."""
    return f"to try the same parts: {SEED_VARIABLE}={SEED}"


def is_all() -> bool:
    """Whether everything is wanted."""
    return os.environ.get(VARIABLE) == "all"


def seldom(test: F) -> F:
    """Leave a test to ``--all``: it takes long, and a quicker one has the everyday part of its promise."""
    vars(test)["seldom"] = True
    return test


def examples(number: int) -> int:
    """How many of so many examples one run tries, others than the last one did; with C{--all} it tries as many."""
    return number if is_all() else max(min(number, _EXAMPLES), number // 4)


def longest_first(tests: Iterable[T], longest: Sequence[str], name: Callable[[T], str]) -> list[T]:
    """Put those whose names begin so before all others, that no processor waits for one of them at the end."""

    def place(test: T) -> int:
        return next((at for at, first in enumerate(longest) if name(test).startswith(first)), len(longest))

    return sorted(tests, key=place)


class Turns:
    """Takes one of several choices at a time, each in its turn; all of them where everything is wanted.

    For what is tried with many subjects, such as every operation with every status: each choice still comes often.
    Which is first is another in each run, as a process may take no more than one.

    :param name: of the test; with the same seed it has the same turns, whatever is tried beside it.
    """

    def __init__(self, name: str) -> None:
        self._numbers = count(place_among(name, 10_000))

    def of(self, *choices: T) -> Sequence[T]:
        """The next one, or all."""
        return choices if is_all() else (choices[next(self._numbers) % len(choices)],)
