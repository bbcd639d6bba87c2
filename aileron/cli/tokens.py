"""Token counts in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def describe_tokens(told: Mapping[str, Any] | None) -> str | None:
    """Return how many tokens were read and written, or None if there was no call.

    :param told: the counts of all calls, or of a session.
    """
    if told is None:
        return None
    return f"{group_digits(told['input_tokens'])} in, {group_digits(told['output_tokens'])} out"


def group_digits(count: int) -> str:
    """Return a number with a space between groups of three digits."""
    return f"{count:,}".replace(",", " ")
