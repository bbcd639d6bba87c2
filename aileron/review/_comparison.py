"""Compares texts line by line, within a bound: foreign texts can be written so that a comparison takes hours."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from aileron.base.json import JSON
from aileron.model.trust import TrustItem, TrustState

_MOST_TRUST_STEPS = 4_000_000
"""The steps of comparing two files: half a second at worst."""

_MOST_STEPS = 2_000_000
"""The steps of comparing two values: a tenth of a second."""

_OFTEN_FROM = 200
"""The number of lines from which C{difflib} skips lines that make up more than one in a hundred."""

_FEW_LINES = 4


def comparing_steps(before: Sequence[str], now: Sequence[str]) -> int:
    """Return an upper bound of the steps that C{difflib} takes: every line, and every pair of equal lines."""
    often = len(now) // 100 + 1 if len(now) >= _OFTEN_FROM else len(now)
    there = {line: times for line, times in Counter(now).items() if times <= often}
    return (len(before) + sum(there.get(line, 0) for line in before)) * min(len(before), len(now))


@frozen
class ComparedLines:
    """Lines of two versions of a text that are next to each other.

    :ivar kind: C{same} if both versions have the lines, C{gone} if only the first has them, C{new} if only the second.
    """

    kind: str
    lines: Sequence[str]


def compare_versions(before: str, after: str) -> list[ComparedLines]:
    """Compare two texts line by line, and return all their lines in order.

    Return an empty list for short texts, and for texts that take too long to compare.
    """
    pages = before.split("\n"), after.split("\n")
    if max(map(len, pages)) < _FEW_LINES or comparing_steps(*pages) > _MOST_STEPS:
        return []
    found: list[ComparedLines] = []
    for kind, start, end, now_start, now_end in difflib.SequenceMatcher(None, *pages).get_opcodes():
        if kind == "equal":
            found.append(ComparedLines("same", pages[0][start:end]))
            continue
        parts = (ComparedLines("gone", pages[0][start:end]), ComparedLines("new", pages[1][now_start:now_end]))
        found += [each for each in parts if each.lines]
    return found


def compare_lines(before: JSON, after: JSON) -> list[str]:
    """Return the lines in which two texts of several lines differ, as a unified diff.

    Return an empty list for values that are not texts, for short texts, and for texts that take too long to compare.
    """
    if not (isinstance(before, str) and isinstance(after, str)):
        return []
    pages = before.split("\n"), after.split("\n")
    if max(map(len, pages)) < _FEW_LINES or comparing_steps(*pages) > _MOST_STEPS:
        return []
    return list(difflib.unified_diff(*pages, "before", "after", lineterm="", n=1))


def find_trust_difference(item: TrustItem) -> str:
    """Return the text that the operator must read before trusting C{item}, or an empty text if there is none.

    This is a unified diff against the trusted text. It is the whole text if the file is new, if the trusted text is no
    longer known, or if the comparison takes too long.
    """
    if item.candidate is None or item.state is TrustState.TRUSTED:
        return ""
    # Split at line feeds alone, so that no other separator vanishes from the text that is shown.
    now, before = item.candidate.text.split("\n"), None if item.before is None else item.before.split("\n")
    if before is None or comparing_steps(before, now) > _MOST_TRUST_STEPS:
        return item.candidate.text
    return "\n".join(difflib.unified_diff(before, now, "trusted", "now", lineterm=""))
