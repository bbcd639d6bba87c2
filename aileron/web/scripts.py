"""All scripts of the pages in one file, so that a browser asks once for them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function (\w+)|const (\w+))", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def join_scripts(sources: Mapping[str, str], first: str) -> str:
    """Join a module and all that it imports, each in a function of its own, in the order in which they run.

    A module imports names in braces from modules beside it, and exports functions and constants where they are
    defined.

    :param sources: the texts of the modules, by name.
    :param first: the name of the module that starts the others.
    :raises ValueError: a module is missing, imports itself by way of others, or has another import or export.
    """
    order: dict[str, int] = {}
    parts: list[str] = []

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above or name not in sources:
            raise ValueError(f"{' imports '.join((*above, name))}: no such module, or a circle")
        if name in order:
            return
        for _, other in _IMPORT.findall(sources[name]):
            add(other, (*above, name))
        order[name] = len(order)
        parts.append(_wrap(name, sources[name], order))

    add(first, ())
    return '"use strict";\n' + "".join(parts)


def _wrap(name: str, source: str, order: Mapping[str, int]) -> str:
    """Make a module a function that returns its exports."""
    exports = ", ".join(function or constant for function, constant in _EXPORT.findall(source))
    text = _IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = m{order[found[2]]};", source)
    text = _EXPORT.sub("", text)
    if left := _LEFT.search(text):
        raise ValueError(f"{name}: cannot be joined: {left[0]}")
    return f"const m{order[name]} = (() => {{ // {name}\n{text}\nreturn {{ {exports} }};\n}})();\n"
