"""Tests that really test."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ._source import FunctionNode, Source

_RUNNERS = frozenset(("in_a_loop", "in_both_eras"))
"""The decorators of C{tests.mcp.case} that make a test of a coroutine, which runs in a loop of its own."""


def async_tests_never_run(source: Source) -> Iterator[str]:
    """Find ``async def`` tests that neither their class nor a decorator runs.

    Only trial's ``TestCase`` awaits a test; in a ``SynchronousTestCase``, or in a mixin, it passes without running. The
    name ``…TestCase`` is kept for classes that await, so that a base from another module can be told by its name.
    """
    classes = {node.name: node for node, _ in source.statements if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        if _awaits(node, classes):
            continue
        if node.name.endswith("TestCase"):
            yield f"{source.name}:{node.lineno} {node.name} sounds like a class that awaits its tests"
        for test in _tests(node):
            if isinstance(test, ast.AsyncFunctionDef) and _RUNNERS.isdisjoint(map(ast.unparse, test.decorator_list)):
                yield f"{source.name}:{test.lineno} {node.name}.{test.name} passes without running"


def _awaits(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    bases = [ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases]
    here = {base for base in bases if base in classes and base != node.name}
    return any(_awaits(classes[base], classes) if base in here else _is_awaiting_name(base) for base in bases)


def _is_awaiting_name(name: str) -> bool:
    return name.endswith("TestCase") and name != "SynchronousTestCase"


def undescribed_tests(source: Source) -> Iterator[str]:
    """Find tests that do not say in one sentence which behaviour they hold."""
    for function in source.functions:
        if function.name.startswith("test_") and not ast.get_docstring(function):
            yield f"{source.name}:{function.lineno} {function.name} has no docstring"


def mocks(source: Source) -> Iterator[str]:
    """Find mocks, which agree with everything; a verified fake does not."""
    for imported in source.imports:
        if imported.path.split(".")[0] == "mock" or f"{imported.path}.".startswith("unittest.mock."):
            yield f"{source.name}:{imported.line} imports {imported.path}"


def _tests(node: ast.ClassDef) -> Iterator[FunctionNode]:
    return (each for each in node.body if isinstance(each, FunctionNode) and each.name.startswith("test_"))
