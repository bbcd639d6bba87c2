"""What actions are called as tools."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping

from attrs import evolve

from aileron.values import Action

MAX_TOOL_NAME = 48
"""Agents put their own prefix before it, and model providers refuse more than 64 characters."""

_MARK = 6
_OTHER = re.compile(r"[^a-z0-9_]")


def tool_name(name: str) -> str:
    """The action's name as an MCP tool: every character that is not of C{[a-z0-9_]} becomes an underscore.

    One that is longer than L{MAX_TOOL_NAME} is cut, and ends with a mark that is made of the whole name.

    :param name: a valid action name, so at most 64 characters.
    """
    plain = _OTHER.sub("_", name)
    return plain if len(plain) <= MAX_TOOL_NAME else _marked(plain, name)


def told_apart(actions: Mapping[str, Action]) -> Mapping[str, Action]:
    """The actions, of which those with one tool name get others: each its own, whatever order they came in.

    None of them keeps the plain name, since a caller that knows it would not know whose it is now.
    """
    uses = Counter(action.tool_name for action in actions.values())
    return {
        name: action if uses[action.tool_name] == 1 else evolve(action, tool_name=_marked(action.tool_name, name))
        for name, action in actions.items()
    }


def _marked(plain: str, name: str) -> str:
    mark = hashlib.sha256(name.encode()).hexdigest()[:_MARK]
    return f"{plain[: MAX_TOOL_NAME - _MARK - 1]}_{mark}"
