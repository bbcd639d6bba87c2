"""The list of the package's files in doc/files.md, each with the first sentence of its docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ._source import Source

_HEAD = """\
# Files

Each file of the package, and what it says of itself. `AILERON_FILES=yes trial tests.test_architecture` writes this
page. [Architecture](architecture.md) tells how the rooms stand to each other.
"""
_MARKUP = re.compile(r"[CL]\{([^{}]*)\}")


def list_files(sources: Iterable[Source]) -> str:
    """Write the page: a heading for each room, a line for each file that says something."""
    rooms: dict[str, list[str]] = {}
    for source in sorted(sources, key=lambda each: each.name):
        parts = source.name.split(".")
        path = "/".join(parts[1:]) + ("/" if source.is_package else ".py")
        told = _first_sentence(source)
        if len(parts) > 1 and told:
            room = parts[1] if len(parts) > 2 or source.is_package else "Modules beside the rooms"
            rooms.setdefault(room, []).append(f"* `{path}`: {told}")
    alone = rooms.pop("Modules beside the rooms", [])
    parts_of_page = [(f"`{room}`", lines) for room, lines in rooms.items()] + [("Modules beside the rooms", alone)]
    return "\n".join([_HEAD, *(f"## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in parts_of_page)])


def _first_sentence(source: Source) -> str:
    paragraph = (ast.get_docstring(source.tree) or "").partition("\n\n")[0].replace("\n", " ")
    return _MARKUP.sub(r"`\1`", re.split(r"\.\s", paragraph)[0].removesuffix("."))
