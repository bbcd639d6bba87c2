"""What the connectors of this machine can do, read from their files, without a daemon."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Any

from attrs import frozen

from aileron.cli._errors import CommandError
from aileron.errors import AileronError
from aileron.home import Home, read_private
from aileron.values import JSON

_MAX_BYTES = 64 * 1024
_TAKES = re.compile(r"\$\{in\.([a-z][a-z0-9_]{0,63})\}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}").fullmatch


@frozen
class Operation:
    """One thing that a connector can do.

    :ivar takes: the names of its inputs, in the order in which they are used.
    """

    name: str
    effect: str
    takes: tuple[str, ...]


@frozen
class Known:
    """A connector by its file.

    :ivar operations: by name.
    """

    name: str
    version: str
    operations: Mapping[str, Operation]

    def operation(self, name: str) -> Operation:
        """The operation of that name.

        :raises CommandError: there is none.
        """
        found = self.operations.get(name)
        if found is None:
            raise CommandError(f"{self.name} has no operation {name}; nothing was written.", self.choices())
        return found

    def choices(self) -> str:
        """What it can do, in a line."""
        return "It has: " + ", ".join(f"{each.name} ({each.effect})" for each in self.operations.values())


def known_connectors(home: Home) -> dict[str, Known]:
    """Those that come with the program and those of the home, by name; files that cannot be read are left out."""
    return {each.name: each for each in map(_known, _texts(home)) if each is not None}


def _texts(home: Home) -> Iterator[bytes]:
    shipped = files("aileron").joinpath("connectors", "builtin")
    yield from (each.read_bytes() for each in sorted(shipped.iterdir(), key=lambda each: each.name))
    for path in sorted(home.connectors.glob("*.toml")):
        with suppress(AileronError):  # it is no file of ours
            yield read_private(path, _MAX_BYTES) or b""


def _known(text: bytes) -> Known | None:
    try:
        found = tomllib.loads(text.decode("utf-8"))
        head, operations = found["connector"], found["operations"]
        names = [name for name in operations if _NAME(name)]
        return Known(
            str(head["name"]), str(head["version"]), {name: _operation(name, operations[name]) for name in names}
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _operation(name: str, table: Mapping[str, Any]) -> Operation:
    sent = {key: value for key, value in table.items() if key != "reconcile"}
    return Operation(name, str(table.get("effect", "write")), tuple(dict.fromkeys(_taken(sent))))


def _taken(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield from _TAKES.findall(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _taken(each)
    elif isinstance(value, list):
        for each in value:
            yield from _taken(each)
