"""Reads the marks of guards where they stand, and disables what a mark stands above.

A mark is a comment above a statement, or above a part of one: an operand of C{and} or C{or}, an argument, an element,
an entry of a dictionary, a condition of a comprehension::

    # guard of promise 4: a decision begins the run -> KeptTests.test_late_decision
    self._scheduler.start(run)

It says which promise the guard keeps (or C{of the relay}, C{of the phone}, C{of signing}, C{of spending}, C{of
prompts}, C{of waking}, C{of own tools}, C{of the store}, C{of roles}, C{of sign-in}, C{of several daemons}, C{of
monitoring} or C{against attack}), in a few words what it does, and the test that must fail when it is disabled. A
condition is disabled as C{if False}, a loop runs over nothing, an C{except} catches nothing, every other statement
becomes C{pass}, and a part is removed; C{, instead …} at the end of a mark says what stands there instead. A line that
begins with three more spaces continues a mark. A guard that stands in several places has a mark above each, of which
one names the test.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from attrs import frozen

_MARK = re.compile(
    r"# guard (?P<keeper>of promise \d|of the relay|of the phone|of signing|of spending|of prompts|of waking|"
    r"of own tools|of the store|of roles|of sign-in|of several daemons|of monitoring|against attack): "
    r"(?P<what>.+?)"
    r"(?: -> (?P<test>[\w.]+))?(?:, instead (?P<instead>.+))?"
)
_BEGINS = "# guard "
_CONTINUES = "#    "
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_JOINTS = {"and": len("and "), "or": len("or "), "if": len("if "), "**": len("**")}

Position = tuple[int, int]


class BadMark(Exception):
    """A mark that cannot be read, or stands above nothing that can be disabled."""


@frozen
class Mark:
    """One mark.

    :ivar keeper: what the guard keeps, as the mark says it.
    :ivar what: the guard in a few words.
    :ivar test: the test that must fail, or None if another mark of the same guard names the test.
    :ivar instead: the source that stands there instead, or None for the usual way.
    :ivar begins: the position of the first token below the mark.
    :ivar part: the position of the expression that begins there, behind C{and}, C{or}, C{if} or C{**}.
    """

    keeper: str
    what: str
    test: str | None
    instead: str | None
    begins: Position
    part: Position


def read_marks(source: str) -> list[Mark]:
    """Return the marks of a module in their order.

    :raises BadMark: if a comment begins as a mark and is none.
    """
    if _BEGINS not in source:
        return []
    tokens = [*tokenize.generate_tokens(io.StringIO(source).readline)]
    found, texts = list[Mark](), list[str]()
    for token in tokens:
        if token.type == tokenize.COMMENT and token.string.startswith(_BEGINS):
            texts.append(token.string)
        elif token.type == tokenize.COMMENT and token.string.startswith(_CONTINUES) and texts:
            texts[-1] += token.string[len(_CONTINUES) - 1 :]
        elif token.type not in _LAYOUT:
            found += [_parse_mark(text, token) for text in texts]
            texts = []
    return found


def _parse_mark(text: str, below: tokenize.TokenInfo) -> Mark:
    match = _MARK.fullmatch(text)
    if match is None:
        raise BadMark(f"is no mark: {text}")
    line, column = below.start
    part = (line, column + _JOINTS.get(below.string, 0))
    return Mark(match["keeper"], match["what"], match["test"], match["instead"], below.start, part)


def disable(source: str, marks: list[Mark]) -> ast.Module:
    """Return the tree of a module in which what these marks stand above is disabled.

    :raises BadMark: if a mark stands above nothing that can be disabled.
    """
    tree = ast.parse(source)
    for mark in marks:
        if not _disable_statement(tree, mark) and not _disable_part(tree, mark):
            raise BadMark(f"nothing below this mark can be disabled: {mark.what}")
    return ast.fix_missing_locations(tree)


def _begins(node: ast.AST) -> Position:
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def _lists_of(node: ast.AST) -> Iterator[list[ast.AST]]:
    yield from (field for _, field in ast.iter_fields(node) if isinstance(field, list))


def _disable_statement(tree: ast.Module, mark: Mark) -> bool:
    for node in ast.walk(tree):
        for field in _lists_of(node):
            for index, child in enumerate(field):
                if isinstance(child, (ast.stmt, ast.ExceptHandler)) and _begins(child) == mark.begins:
                    field[index : index + 1] = _replace_statement(child, mark.instead)
                    return True
    return False


def _replace_statement(node: ast.stmt | ast.ExceptHandler, instead: str | None) -> list[ast.AST]:
    if isinstance(node, (ast.If, ast.While)) and (instead is None or instead.startswith("if ")):
        node.test = _parse_expression("False" if instead is None else instead.removeprefix("if "))
    elif isinstance(node, ast.ExceptHandler) and instead is None:
        node.type = ast.Tuple([], ast.Load())
    elif isinstance(node, (ast.For, ast.AsyncFor)) and instead is None:
        node.iter = ast.Tuple([], ast.Load())
    else:
        return _parse_statements(instead or "pass")
    return [node]


def _parse_statements(text: str) -> list[ast.AST]:
    """Return the statements of text, which may contain C{return} or C{await}."""
    function = ast.parse(f"async def f():\n    {text}\n").body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    return [*function.body]


def _parse_expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _disable_part(tree: ast.Module, mark: Mark) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for index, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
                if _begins(value if key is None else key) == mark.part:
                    _replace_entry(node, index, mark.instead)
                    return True
            continue
        for field in _lists_of(node):
            for index, child in enumerate(field):
                if isinstance(child, (ast.expr, ast.keyword)) and _begins(child) == mark.part:
                    field[index : index + 1] = _replace_part(node, child, mark.instead)
                    return True
    return False


def _replace_entry(node: ast.Dict, index: int, instead: str | None) -> None:
    if instead is None:
        del node.keys[index], node.values[index]
    else:
        node.values[index] = _parse_expression(instead)


def _replace_part(within: ast.AST, node: ast.expr | ast.keyword, instead: str | None) -> list[ast.AST]:
    if instead is None:
        return [ast.Constant(isinstance(within.op, ast.And))] if isinstance(within, ast.BoolOp) else []
    expression = _parse_expression(instead)
    return [ast.keyword(node.arg, expression)] if isinstance(node, ast.keyword) else [expression]
