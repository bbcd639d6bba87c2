"""Comparisons that detect a failure in a successful response: C{ok == false}, C{error != null}, C{data.id missing}."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from aileron.base.json import JSON

Steps = tuple[str, ...]

PATH = r"[A-Za-z0-9_$-]+(?:\.[A-Za-z0-9_$-]+)*"
_DOTTED = re.compile(PATH)
_COMPARISON = re.compile(rf"({PATH})\s*(==|!=)\s*(.+)")
_MISSING = re.compile(rf"({PATH})\s+missing")


class MissingPath:
    """The value of a path that does not exist."""


ABSENT = MissingPath()


@frozen
class Condition:
    """One comparison.

    :ivar relation: C{==}, C{!=} or C{missing}. A missing path equals nothing, so C{!=} holds for it.
    """

    path: Steps
    relation: str
    literal: JSON = None

    def holds(self, answer: JSON) -> bool:
        """Return whether the comparison holds for C{answer}."""
        found = at(answer, self.path)
        if self.relation == "missing" or isinstance(found, MissingPath):
            return isinstance(found, MissingPath) and self.relation != "=="
        return _same(found, self.literal) is (self.relation == "==")


def condition(text: str) -> Condition:
    """Parse one comparison.

    :raises ValueError: if the comparison is invalid. The message shows the valid forms.
    """
    if missing := _MISSING.fullmatch(text.strip()):
        return Condition(dotted(missing[1]), "missing")
    found = _COMPARISON.fullmatch(text.strip())
    if not found:
        raise ValueError("must be: path == literal, path != literal, or path missing")
    return Condition(dotted(found[1]), found[2], _literal(found[3]))


def dotted(text: str) -> Steps:
    """Parse a path such as C{data.items.0.id}.

    :raises ValueError: if the path is invalid.
    """
    if not _DOTTED.fullmatch(text):
        raise ValueError("must be a dotted path of names and indices")
    return tuple(text.split("."))


def at(answer: JSON, path: Steps) -> JSON | MissingPath:
    """Return the value at C{path}, by names of objects and indices of arrays, or L{ABSENT} if there is none."""
    for step in path:
        if isinstance(answer, Mapping) and step in answer:
            answer = answer[step]
        elif _indexes(answer, step):
            answer = answer[int(step)]  # type: ignore[index]
        else:
            return ABSENT
    return answer


def put(content: JSON, path: Sequence[str], value: JSON) -> JSON:
    """Return C{content} with C{value} at C{path}.

    Missing tables are created. If the path has an index that an array does not have, the array is unchanged.
    """
    if not path:
        return value
    if isinstance(content, list):
        return [put(each, path[1:], value) if str(at_) == path[0] else each for at_, each in enumerate(content)]
    inside = content if isinstance(content, Mapping) else {}
    return {**inside, path[0]: put(inside.get(path[0]), path[1:], value)}


def _indexes(answer: JSON, step: str) -> bool:
    return (
        isinstance(answer, Sequence)
        and not isinstance(answer, str)
        and step.isascii()
        and step.isdigit()
        and len(step) < 7
        and int(step) < len(answer)
    )


def _literal(text: str) -> JSON:
    try:
        value: JSON = json.loads(text)
    except ValueError as error:
        raise ValueError("compares with a JSON literal: true, false, null, a number or a quoted text") from error
    if isinstance(value, dict | list):
        raise ValueError("compares with a JSON literal: true, false, null, a number or a quoted text")
    return value


def _same(found: JSON, literal: JSON) -> bool:
    return isinstance(found, bool) is isinstance(literal, bool) and found == literal
