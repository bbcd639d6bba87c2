"""How much is tried: what must be green before each change, or everything, as ``python3 -m tests --all`` says."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

VARIABLE = "AILERON_TESTS"
"""``all``: what is left out on other days is run as well."""


def is_all() -> bool:
    """Whether everything is wanted."""
    return os.environ.get(VARIABLE) == "all"


def seldom(test: F) -> F:
    """Leave a test to ``--all``: it takes long, and a quicker one has the everyday part of its promise."""
    vars(test)["seldom"] = True
    return test


class Turns:
    """Takes one of several choices at a time, each in its turn; all of them where everything is wanted.

    For what is tried with many subjects, such as every operation with every status: each choice still comes often.
    """

    def __init__(self) -> None:
        self._numbers = count()

    def of(self, *choices: T) -> Sequence[T]:
        """The next one, or all."""
        return choices if is_all() else (choices[next(self._numbers) % len(choices)],)
