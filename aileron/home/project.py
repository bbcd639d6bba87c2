"""Reads C{.aileron.toml}, by which a project restricts what agents may use in it.

Whoever writes the project's files writes this file, so it can only take actions away.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from aileron.base.files import Unreadable, read_file
from aileron.base.json import JSON
from aileron.base.toml import NotToml, read_toml
from aileron.model.errors import InvalidRequest
from aileron.model.sessions import SELECTOR

FILE_NAME = ".aileron.toml"
_MAX_BYTES, _MOST_SELECTORS, _MOST_CHARACTERS = 64 * 1024, 64, 256
_SELECTOR = re.compile(SELECTOR)


def find_selection(directory: str, home: str) -> tuple[str, Mapping[str, JSON]] | None:
    """Return the path of the nearest C{.aileron.toml} and its selection C{{allow, deny}}, or None if there is none.

    The file is looked for in C{directory} and above, up to the repository's root, but not in C{home} or above it.

    :raises InvalidRequest: if the file cannot be read or is invalid, because an ignored restriction restricts nothing.
    """
    for place in (Path(directory), *Path(directory).parents):
        if place == Path(home):
            return None
        path = place / FILE_NAME
        if path.is_symlink() or path.exists():
            return str(path), _read_selection(path)
        if (place / ".git").exists():
            return None
    return None


def _read_selection(path: Path) -> Mapping[str, JSON]:
    try:
        data = read_file(str(path), _MAX_BYTES).data
        values = read_toml(data.decode("utf-8") if len(data) <= _MAX_BYTES else "\0").values
    except (Unreadable, NotToml, UnicodeDecodeError):
        raise _refuse(path, "is not a readable TOML file of at most 64 KB") from None
    tools = values.get("tools")
    if values.keys() != {"tools"} or not isinstance(tools, Mapping) or not tools.keys() <= {"allow", "deny"}:
        raise _refuse(path, "may have only a table tools, with the keys allow and deny")
    for words in tools.values():
        if not isinstance(words, list) or len(words) > _MOST_SELECTORS or not all(map(_is_selector, words)):
            raise _refuse(path, "must list at most 64 names, tag:WORD, connector:NAME, effect:read or effect:write")
    return {name: list(words) for name, words in tools.items()}


def _is_selector(word: object) -> bool:
    return isinstance(word, str) and len(word) <= _MOST_CHARACTERS and _SELECTOR.fullmatch(word) is not None


def _refuse(path: Path, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{path} {problem}. No session was opened.")
