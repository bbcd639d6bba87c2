"""A module's source, parsed, and the imports in it."""

from __future__ import annotations

import ast
import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

ELSEWHERE = frozenset(() if platform.system() == "Linux" else ("aileron.daemon._reactor",))
"""Modules that cannot be imported on this system."""


@dataclass(frozen=True)
class Imported:
    """One imported name: ``from aileron.vault import keys`` is the module ``aileron.vault`` and the name ``keys``."""

    line: int
    module: str
    name: str | None
    at_module_level: bool

    @property
    def path(self) -> str:
        """The dotted path of what is imported."""
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass(frozen=True)
class Source:
    """The text of one module and its dotted name.

    :ivar is_package: whether the text is a package's ``__init__.py``, which relative imports depend on.
    """

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        """The module's syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def statements(self) -> list[tuple[ast.stmt, bool]]:
        """Every statement, and whether it runs when the module is imported; one for type checkers only does not."""
        return list(_statements(self.tree, True))

    @property
    def functions(self) -> Iterator[FunctionNode]:
        """Every function and method, nested ones as well."""
        return (node for node, _ in self.statements if isinstance(node, FunctionNode))

    @cached_property
    def imports(self) -> list[Imported]:
        """Every import, relative ones made absolute."""
        return [found for node, top in self.statements for found in self._imported(node, top)]

    def _imported(self, node: ast.stmt, top: bool) -> Iterator[Imported]:
        if isinstance(node, ast.Import):
            yield from (Imported(node.lineno, alias.name, None, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = self._absolute(node)
            yield from (Imported(node.lineno, module, alias.name, top) for alias in node.names)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        base = parts[: len(parts) - node.level + int(self.is_package)]
        return ".".join([*base, *filter(None, [node.module])])


def _statements(outer: ast.AST, top: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """Those in a block, and in the blocks in it; expressions, which are nine tenths of a tree, are not looked into."""
    for name in ("body", "orelse", "handlers", "cases", "finalbody"):
        for node in getattr(outer, name, ()):
            if isinstance(node, ast.stmt):
                yield node, top
            hidden = isinstance(node, FunctionNode) or (isinstance(node, ast.If) and _is_for_type_checkers(node))
            yield from _statements(node, top and not hidden)


def _is_for_type_checkers(node: ast.If) -> bool:
    return not node.orelse and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


Rule = Callable[[Source], Iterable[str]]
"""Takes a module and yields one line for each place that breaks the rule."""


@cache
def read_tree(root: Path, package: str) -> list[Source]:
    """Read every module of a package below a directory, once in a process."""
    return [_read(path, root) for path in sorted((root / package).rglob("*.py"))]


def _read(path: Path, root: Path) -> Source:
    parts = path.relative_to(root).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return Source(".".join(parts[:-1] if is_package else parts), path.read_text(encoding="utf-8"), is_package)
