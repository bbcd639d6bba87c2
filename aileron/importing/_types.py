"""The types that a document knows by their names, and what else readers of such documents have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from attrs import frozen

from aileron.values import JSON

from ._derive import name_of
from ._description import ApiOperation, OperationSummary
from ._files import one_line
from ._references import ApiDocument, Inexpressible, Node, table_of

_SECRETS = re.compile(
    r"secret|password|passphrase|credential|token|login_?profile|(?:access|api|private|signing)_?key", re.IGNORECASE
)


@frozen
class NamedTypes(ApiDocument):
    """Types as JSON Schemas that refer to each other by name.

    One that holds itself is described down to where it repeats; further down any object is allowed.

    :ivar most_within: so many of them within each other are described.
    """

    most_within: int = 100

    @classmethod
    def of(cls, types: Mapping[str, JSON], most_within: int = 100) -> NamedTypes:
        """Take the types by their names."""
        return cls({"types": types}, most_within)

    def follow(self, value: JSON, trail: frozenset[str] = frozenset()) -> Node:
        """Return the object that C{value} is, or refers to."""
        target = table_of(value).get("$ref")
        if target in trail or (target is not None and len(trail) >= self.most_within):
            return Node({"type": "object"}, trail)
        return super().follow(value, trail)


def reference(name: str) -> dict[str, JSON]:
    """Refer to a type by its name."""
    return {"$ref": f"#/types/{name.replace('~', '~0').replace('/', '~1').replace('%', '%25')}"}


def list_summaries(found: Iterable[tuple[str, str, str, str, str, str]]) -> tuple[OperationSummary, ...]:
    """List operations, each under a name of its own.

    :param found: name, key, method, path, words and effect of each, as the document has them.
    """
    summaries: dict[str, OperationSummary] = {}
    for text, key, method, path, words, effect in found:
        name = name_of(text, summaries)
        summaries[name] = OperationSummary(name, key, method, path, one_line(words, 100), effect)
    return tuple(summaries.values())


def guarded(summary: OperationSummary, describe: Callable[[OperationSummary], ApiOperation]) -> ApiOperation:
    """Describe an operation, or say why it cannot be imported."""
    try:
        return describe(summary)
    except Inexpressible as problem:
        return ApiOperation(summary.name, summary.words, refused=str(problem))


def discloses(name: str) -> bool:
    """Tell by its name whether a read hands out what nobody should get unasked."""
    return _SECRETS.search(name) is not None
