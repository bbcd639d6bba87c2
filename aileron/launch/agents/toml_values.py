"""Writes settings as agents take them on their command line: a dotted path, and a value of TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

TomlValue: TypeAlias = str | bool | int | Sequence[str] | Mapping[str, "TomlValue"]


def overriding(path: str, value: TomlValue) -> tuple[str, str]:
    """The arguments that set C{path}."""
    return "-c", f"{path}={_text(value)}"


def _text(value: TomlValue) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_quoted(name)}={_text(part)}" for name, part in value.items()) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return _quoted(value) if isinstance(value, str) else "[" + ",".join(map(_quoted, value)) + "]"


def _quoted(text: str) -> str:
    """A basic string: JSON's, which TOML reads alike but for two things."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
