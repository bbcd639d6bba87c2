"""Finds the rule that answers a call: a denial before a question, and both before permission."""

from __future__ import annotations

from collections.abc import Iterable

from .patterns import matches
from .values import CallText, PromptRule, ReplyKind

_ORDER = (ReplyKind.DENY, ReplyKind.ASK, ReplyKind.ALLOW)


def find_rule(
    rules: Iterable[PromptRule], tool: str, call: CallText, directories: tuple[str, str]
) -> PromptRule | None:
    """Return the rule that answers a call, or None if no rule applies.

    :param directories: where the session and the call say that they work. A rule of a project that allows something
        needs both to be in the project. One is enough for other rules.
    """
    found = [each for each in rules if _is_about(each, directories) and matches(each, tool, call)]
    return min(found, key=lambda each: _ORDER.index(each.answer), default=None)


def _is_about(rule: PromptRule, directories: tuple[str, str]) -> bool:
    if not rule.project:
        return True
    inside = [_is_inside(each, rule.project) for each in directories if each]
    return bool(inside) and (all(inside) if rule.answer is ReplyKind.ALLOW else any(inside))


def _is_inside(directory: str, project: str) -> bool:
    return ".." not in directory.split("/") and f"{directory}/".startswith(f"{project.rstrip('/')}/")
