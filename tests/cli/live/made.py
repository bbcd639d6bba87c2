"""Models of the view, made for tests."""

from __future__ import annotations

from typing import Any

from aileron.cli.approvals.live_model import Asked, LiveModel, Size
from tests.cli.daemon import approval

SIZE = Size(60, 8)


def waiting(*ids: str) -> list[dict[str, Any]]:
    """Such as these wait, each ten seconds younger than the one before."""
    at = "1970-01-01T00:00:{:02}.000000Z"
    return [approval(id=each, requested_at=at.format(10 * number % 60)) for number, each in enumerate(ids)]


def listing(*ids: str, size: Size = SIZE) -> LiveModel:
    """A list of these."""
    model = LiveModel(size, agents={"S": "opencode"})
    model.replace_items(waiting(*ids))
    return model


def reading(lines: int = 3, size: Size = SIZE, **changed: Any) -> LiveModel:
    """One is open, with so many lines."""
    shown = approval(**changed)
    model = listing(shown["id"], size=size)
    model.open(shown, [f"line {number}" for number in range(lines)])
    return model


def pressed(model: LiveModel, *keys: str) -> Asked:
    """What these keys ask for, one by one."""
    asked = None
    for key in keys:
        asked = model.press((key,))
    return asked
