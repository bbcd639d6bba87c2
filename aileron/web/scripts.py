"""Joins the scripts of the pages into few files, so that a browser needs few requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import define, field

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function (\w+)|const (\w+))", re.MULTILINE)
_LATER = re.compile(r'\bimport\("\./([\w-]+\.js)"\)')
_COMMENT = re.compile(r"^[ ]*//.*\n", re.MULTILINE)
_INDENT = re.compile(r"^[ ]+|\n(?=\n)", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def join_scripts(sources: Mapping[str, str], name: str, *entries: str) -> dict[str, str]:
    """Join modules and all modules that they import, each in a function of its own, in the order in which they run.

    Indentation and lines that are only a comment are left out. A module imports names in braces from modules beside
    it, and exports functions and constants where they are defined. A module that others import with
    C{import("./x.js")} is a file of its own, which the browser fetches when it is imported. It uses the modules of the
    first file and does not run them again.

    :param sources: the texts of the modules, by name.
    :param name: the name of the file with the entries.
    :param entries: the names of the modules that nothing imports, in their order.
    :return: the texts of the files, by name.
    :raises ValueError: if a module is missing, imports itself by way of others, belongs to two of the files that are
        fetched later, has another import or export, or has a text that goes on in the next line.
    """
    first = _Joined(sources)
    for entry in entries:
        first.add(entry)
    later: dict[str, _Joined] = {}
    wanted = first.later
    while wanted:
        for each in [*dict.fromkeys(wanted)]:
            taken = {module for joined in later.values() for module in joined.order}
            later[each] = _Joined(sources, dict(first.order))
            later[each].add(each)
            if both := taken & set(later[each].order):
                raise ValueError(f"{', '.join(sorted(both))}: belongs to two files that are fetched later")
        wanted = [each for joined in later.values() for each in joined.later if each not in later]
    shared = f"export {{ {', '.join(f'm{at}' for at in first.order.values())} }};\n" if later else ""
    files = {each: _write_later(each, joined, name) for each, joined in later.items()}
    return {name: '"use strict";\n' + "".join(first.parts) + shared, **files}


@define
class _Joined:
    """The modules (scripts) that are joined into one file.

    :ivar known: the numbers of the modules that another file holds, by name.
    :ivar order: the numbers of the modules of this file, by name.
    :ivar later: the modules that are fetched later.
    """

    sources: Mapping[str, str]
    known: Mapping[str, int] = field(factory=dict)
    order: dict[str, int] = field(factory=dict)
    parts: list[str] = field(factory=list)
    later: list[str] = field(factory=list)

    def add(self, name: str, above: Sequence[str] = ()) -> None:
        """Add a module, after all that it imports, unless it is there.

        :raises ValueError: if there is no such module, or modules import each other in a circle.
        """
        if name in above or name not in self.sources:
            raise ValueError(f"{' imports '.join((*above, name))}: no such module, or a circle")
        if name in self.order or name in self.known:
            return
        for _, other in _IMPORT.findall(self.sources[name]):
            self.add(other, (*above, name))
        self.later += _LATER.findall(self.sources[name])
        self.order[name] = len(self.known) + len(self.order)
        self.parts.append(_wrap(name, self.sources[name], {**self.known, **self.order}))


def _write_later(name: str, joined: _Joined, first: str) -> str:
    """Return the file of a module that is fetched later, which exports what the module does."""
    text = "".join(joined.parts)
    used = [f"m{at}" for at in joined.known.values() if f"}} = m{at};\n" in text]
    given = f'import {{ {", ".join(used)} }} from "./{first}";\n' if used else ""
    exports = ", ".join(_list_exports(joined.sources[name]))
    return f'"use strict";\n{given}{text}export const {{ {exports} }} = m{joined.order[name]};\n'


def _list_exports(source: str) -> list[str]:
    return [function or constant for function, constant in _EXPORT.findall(source)]


def _wrap(name: str, source: str, order: Mapping[str, int]) -> str:
    """Return a module as a function that returns its exports.

    :param order: the number of each module, by name.
    :raises ValueError: if the module has an import, an export or a text of another form.
    """
    exports = ", ".join(_list_exports(source))
    text = _IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = m{order[found[2]]};", source)
    text = _COMMENT.sub("", _EXPORT.sub("", text))
    left = [found[0] for found in _LEFT.finditer(text)] + [line for line in text.split("\n") if line.count("`") % 2]
    if left:
        raise ValueError(f"{name}: cannot be joined: {left[0]}")
    text = _INDENT.sub("", text).strip("\n")
    return f"const m{order[name]} = (() => {{ // {name}\n{text}\nreturn {{ {exports} }};\n}})();\n"
