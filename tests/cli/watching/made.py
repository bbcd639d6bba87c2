"""States of the view, made for tests."""

from __future__ import annotations

from typing import Any

from aileron.cli.watching.model import Size, State, Waiting, listed, opened
from aileron.cli.watching.pressing import Outcome, press
from tests.cli.daemon import approval

SIZE = Size(60, 8)


def waiting(*ids: str) -> list[Waiting]:
    """Such as these wait, each ten seconds younger than the one before."""
    return [Waiting(each, "ship-update", "opencode", 10.0 * number, "S", False) for number, each in enumerate(ids)]


def listing(*ids: str, size: Size = SIZE) -> State:
    """A list of these."""
    return listed(State(size), waiting(*ids))


def reading(lines: int = 3, size: Size = SIZE, **changed: Any) -> State:
    """One is open, with so many lines."""
    shown = approval(**changed)
    return opened(listing(shown["id"], size=size), shown, [f"line {number}" for number in range(lines)])


def pressed(state: State, *keys: str) -> Outcome:
    """What these keys lead to, one by one."""
    effect = None
    for key in keys:
        state, effect = press(state, key)
    return state, effect
