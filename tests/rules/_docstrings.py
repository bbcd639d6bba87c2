"""Docstrings: each public method is described, and no docstring begins as a fragment of a sentence."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType

from zope.interface import implementedBy

import aileron

from ._source import ELSEWHERE, Source

_FRAGMENT = re.compile(r"(?:How|That|What|Where|Whether|Which|Who)\b")


def package_modules() -> list[ModuleType]:
    """Import every module of the package that this system can import."""
    found = pkgutil.walk_packages(aileron.__path__, "aileron.")
    names = [info.name for info in found if "__main__" not in info.name and info.name not in ELSEWHERE]
    return [aileron, *map(importlib.import_module, names)]


def fragments(source: Source) -> Iterator[str]:
    """Find docstrings that begin with a question word, tests' apart: they neither name a thing nor say what is done."""
    for node in source.nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            name = getattr(node, "name", "")
            if not name.startswith("test_") and _FRAGMENT.match(ast.get_docstring(node) or ""):
                yield f"{source.name}.{name}"


def undescribed_methods(modules: Iterable[ModuleType]) -> Iterator[str]:
    """Find public methods without a docstring that no base, interface or protocol of theirs describes."""
    classes = [
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and found.__module__ == module.__name__
    ]
    protocols = {name for each in classes if getattr(each, "_is_protocol", False) for name in _described(each)}
    for each in classes:
        if each.__name__.startswith("_"):
            continue
        interfaces = implementedBy(each)  # type: ignore[no-untyped-call]
        promised = {name for base in each.__mro__[1:] for name in _described(base)}.union(
            protocols, *(interface.names(all=True) for interface in interfaces)
        )
        for name, function in _methods(each):
            if not (name.startswith("_") or function.__doc__ or name in promised):
                yield f"{each.__module__}.{each.__name__}.{name}"


def _described(each: type) -> set[str]:
    return {name for name, member in list(vars(each).items()) if getattr(member, "__doc__", None)}


def _methods(each: type) -> Iterator[tuple[str, FunctionType]]:
    for name, member in list(vars(each).items()):
        bare = member.fget if isinstance(member, property) else inspect.unwrap(getattr(member, "__func__", member))
        if isinstance(bare, FunctionType) and bare.__module__ == each.__module__:
            yield name, bare
