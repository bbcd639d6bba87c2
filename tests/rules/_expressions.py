"""Every regular expression of the package: where it is written, how it is used, and what it became."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

ROOT = Path(__file__).parents[2]
MODES = ("fullmatch", "match", "search", "finditer", "sub", "split")
_SEARCHES = frozenset(("findall", "finditer"))
_NAMES_IT = re.compile(r"import\b.*\bre\b")
_NAMES_ANY = re.compile(r"(?:import|from)\b.*\b(?:re|regex|fnmatch)\b")
_CALLS = frozenset(("compile", *MODES, "findall", "subn", "template"))

# Imports every module of the package and tells what each call of re.compile in it made, by file and line.
_COLLECT = """
import importlib, json, pkgutil, re, sys
found, real = [], re.compile
def compile(pattern, flags=0):
    made, frame = real(pattern, flags), sys._getframe(1)
    text = made.pattern if isinstance(made.pattern, str) else made.pattern.decode("latin-1")
    found.append([frame.f_code.co_filename, frame.f_lineno, text, isinstance(made.pattern, bytes), made.flags])
    return made
re.compile = compile
import aileron
for module in pkgutil.walk_packages(aileron.__path__, "aileron."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps(found))
"""


@frozen
class Expression:
    """One.

    :ivar place: file and line, from the root.
    :ivar modes: how it is used: methods of a compiled pattern.
    """

    place: str
    pattern: re.Pattern[Any]
    modes: tuple[str, ...]


@frozen
class _Site:
    """A call of L{re} in a file.

    :ivar inside: whether it is within a function, so that it happens later than the import.
    """

    path: Path
    line: int
    end: int
    called: str
    inside: bool
    modes: tuple[str, ...]

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.path.relative_to(ROOT)}:{self.line}"


@cache
def expressions() -> Sequence[Expression]:
    """All that are compiled while the package is imported, each as often as it is."""
    script = [sys.executable, "-c", _COLLECT]
    told = json.loads(subprocess.run(script, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    made: dict[tuple[str, int], list[re.Pattern[Any]]] = {}
    for path, line, text, binary, flags in told:
        source = text.encode("latin-1") if binary else text
        made.setdefault((path, line), []).append(re.compile(source, flags))
    return [
        Expression(site.place, pattern, site.modes)
        for site in _sites()
        if site.called == "compile"
        for line in range(site.line, site.end + 1)
        for pattern in made.get((str(site.path), line), [])
    ]


def missed(found: Sequence[Expression]) -> list[str]:
    """Calls of C{re.compile} of which none of C{found} came."""
    there = {each.place for each in found}
    return [site.place for site in _sites() if site.called == "compile" and site.place not in there]


def uncompiled() -> list[str]:
    """Calls of L{re} that compile when a text is there already."""
    return [site.place for site in _sites() if site.inside or site.called != "compile"]


def imported_otherwise(text: str) -> list[int]:
    """Lines of a module's text by which expressions come that nobody here would see."""
    hidden = ("re", "regex", "fnmatch")
    if not _NAMES_ANY.search(text):
        return []
    nodes = list(ast.walk(ast.parse(text)))
    parts = [node.lineno for node in nodes if isinstance(node, ast.ImportFrom) and node.module in hidden]
    renamed = [node.lineno for node in nodes if isinstance(node, ast.Import) for alias in node.names if _hides(alias)]
    return sorted([*parts, *renamed])


def _hides(alias: ast.alias) -> bool:
    return alias.name in ("regex", "fnmatch") or (alias.name == "re" and alias.asname not in (None, "re"))


@cache
def _sites() -> Sequence[_Site]:
    return [site for path in sorted((ROOT / "aileron").rglob("*.py")) for site in _in_module(path)]


def _in_module(path: Path) -> Iterator[_Site]:
    text = path.read_text("utf-8")
    if not _NAMES_IT.search(text):
        return
    tree = ast.parse(text)
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import))
    if "re" in {alias.asname or alias.name for node in imports for alias in node.names}:
        yield from _in_file(path, tree)


def _in_file(path: Path, tree: ast.Module) -> Iterator[_Site]:
    functions = [
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    ]
    later = {id(node) for function in functions for part in _body(function) for node in ast.walk(part)}
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_of_re(node.func):
            assert isinstance(node.func, ast.Attribute)
            end = node.end_lineno or node.lineno
            modes = _modes(node, parents, tree)
            yield _Site(path, node.lineno, end, node.func.attr, id(node) in later, modes)


def _body(function: ast.AST) -> list[ast.AST]:
    body = getattr(function, "body", [])
    return body if isinstance(body, list) else [body]


def _is_of_re(called: ast.expr) -> bool:
    of_re = isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re"
    return of_re and isinstance(called, ast.Attribute) and called.attr in _CALLS


def _modes(node: ast.AST, parents: dict[int, ast.AST], tree: ast.Module) -> tuple[str, ...]:
    """The method that is taken at once, or those of the name that it is given; all where it goes elsewhere."""
    parent = parents[id(node)]
    if isinstance(parent, ast.Attribute):
        return _known(parent.attr)
    while isinstance(parent, ast.Tuple):
        parent = parents[id(parent)]
    if not isinstance(parent, ast.Assign):
        return MODES
    names = {each.id for target in parent.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    uses = [each for each in ast.walk(tree) if isinstance(each, ast.Name) and each.id in names]
    used = {_used(each, parents) for each in uses if isinstance(each.ctx, ast.Load)}
    return MODES if "" in used or not used else tuple(sorted({mode for each in used for mode in _known(each)}))


def _used(name: ast.Name, parents: dict[int, ast.AST]) -> str:
    parent = parents[id(name)]
    return parent.attr if isinstance(parent, ast.Attribute) else ""


def _known(method: str) -> tuple[str, ...]:
    if method in _SEARCHES:
        return ("finditer",)
    return (method,) if method in MODES else MODES
