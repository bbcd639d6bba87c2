"""How long things may be, and what may not stand at module level or in a handler."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ._source import FunctionNode, Source

_LONGEST_FUNCTION = 50
_MOST_FIELDS = 8
_INSTALLS_A_REACTOR = ("twisted.internet.reactor", "klein")
_IMPORTED_BELOW_MAKE_SERVICE = ("aileron.api", "aileron.features.", "aileron.web")
_POSSESSIVE = (")*+", ")++", ")?+", "(?>")
_CHARACTERS = re.compile(r"\[(?:\\.|[^\]])*\]", re.DOTALL)


def class_names(source: Source) -> Iterator[str]:
    """Find the names of the classes at module level, without underscores before them."""
    return (node.name.lstrip("_") for node in source.tree.body if isinstance(node, ast.ClassDef))


def long_functions(source: Source) -> Iterator[str]:
    """Find functions whose body, its docstring apart, should be split."""
    for function in source.functions:
        lines = _body_lines(function)
        if lines > _LONGEST_FUNCTION:
            yield f"{source.name}:{function.lineno} {function.name} has {lines} lines"


def _body_lines(function: FunctionNode) -> int:
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def wide_constructors(source: Source) -> Iterator[str]:
    """Find classes that act and are made of more than eight things; a frozen one is a value, or a list of parts."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            count = _constructor_fields(node)
            if count > _MOST_FIELDS:
                yield f"{source.name}:{node.lineno} {node.name} is made of {count} things"


def _constructor_fields(node: ast.ClassDef) -> int:
    own = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if own is not None:
        return len([*own.args.posonlyargs, *own.args.args, *own.args.kwonlyargs]) - 1
    if not any(ast.unparse(each).partition("(")[0] == "define" for each in node.decorator_list):
        return 0
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    return sum("init=False" not in ast.unparse(each) and "ClassVar" not in ast.unparse(each) for each in fields)


def module_level_reactor(source: Source) -> Iterator[str]:
    """Find imports that choose a reactor as soon as their module is imported.

    Klein is one of them, so only rooms with routes may import it at module level: ``daemon`` imports those inside
    makeService, when twistd has installed its reactor already.
    """
    below = source.name.startswith(_IMPORTED_BELOW_MAKE_SERVICE)
    for imported in source.imports:
        found = next((name for name in _INSTALLS_A_REACTOR if f"{imported.path}.".startswith(f"{name}.")), None)
        if imported.at_module_level and found and not (below and found == "klein"):
            yield f"{source.name}:{imported.line} imports {found} at module level"


def possessive_groups(source: Source) -> Iterator[str]:
    """Find regular expressions whose groups give nothing back: before Python 3.11.5 these find nothing (gh-106052)."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if any(mark in _CHARACTERS.sub("x", text) for mark in _POSSESSIVE):
                yield f"{source.name}:{node.lineno} a possessive group"


def swallowed_exceptions(source: Source) -> Iterator[str]:
    """Find handlers that catch everything, or drop what they catch."""
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and (fault := _swallows(node)):
            yield f"{source.name}:{node.lineno} {fault}"


def _swallows(handler: ast.ExceptHandler) -> str | None:
    if handler.type is None:
        return "bare except"
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    silent = all(isinstance(statement, ast.Pass | ast.Continue) for statement in handler.body)
    if silent and names & {"Exception", "BaseException"}:
        return "an exception is dropped"
    return None
