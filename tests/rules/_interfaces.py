"""Interfaces: each has more than one side, or it only repeats the class that it is for."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from ._source import Source

_MARKS = frozenset(("implementer", "proxyForInterface"))


def one_sided_interfaces(sources: Iterable[Source]) -> Iterator[str]:
    """Find interfaces of the package that one class implements and that no test stands in for.

    Other sides are fakes, in C{aileron.testing} or in a test, and the proxies that let single calls fail (ADR 38).
    Where there is none, users depend on the class, or, across rooms, on a protocol beside them.
    """
    sources = list(sources)
    sides = Counter(name for source in sources for name in _implemented(source))
    for source in sources:
        for node in _classes(source):
            if any(ast.unparse(base) == "Interface" for base in node.bases) and sides[node.name] == 1:
                yield f"{source.name}:{node.lineno} {node.name} has one implementation and no fake"


def _implemented(source: Source) -> Iterator[str]:
    for node in _classes(source):
        for call in (*node.decorator_list, *node.bases):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in _MARKS:
                yield from map(ast.unparse, call.args)


def _classes(source: Source) -> Iterator[ast.ClassDef]:
    return (node for node, _ in source.statements if isinstance(node, ast.ClassDef))
