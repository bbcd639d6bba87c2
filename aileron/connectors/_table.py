"""Reading a closed schema: each key is taken with its kind, what is left over is a fault, and faults are collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import define, field

_T = TypeVar("_T")

Where = tuple[str, ...]


@define
class FileFaults:
    """The faults of a file so far: the path of each and its message."""

    found: list[tuple[Where, str]] = field(factory=list)

    def add(self, where: Where, message: str) -> None:
        """One more."""
        self.found.append((where, f"{'.'.join(where)}: {message}" if where else message))


@define
class FileTable:
    """One table, being read.  A faulty value is reported and its default returned, so that reading goes on.

    :ivar where: the path of the table in the file.
    """

    where: Where
    values: Mapping[str, Any]
    faults: FileFaults
    _taken: set[str] = field(factory=set)

    def text(self, key: str, default: str = "", *, required: bool = False) -> str:
        """Take a text that is not empty where it is required."""
        value: str = self.take(key, str, default, required=required)
        if required and self.values.get(key) == "":
            self.fault(key, "must not be empty")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """Take true or false."""
        return bool(self.take(key, bool, default))

    def number(self, key: str, default: float, most: float) -> float:
        """Take a number above zero and up to C{most}."""
        value = self.values.get(key, default)
        self._taken.add(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
            self.fault(key, f"must be a number above 0 and up to {most:g}")
            return default
        return value

    def choice(self, key: str, default: str, *choices: str) -> str:
        """One of C{choices}."""
        value: str = self.take(key, str, default)
        if value not in choices:
            self.fault(key, f"must be one of: {', '.join(choices)}")
            return default
        return value

    def read(self, key: str, reading: Callable[[str], _T], default: _T, *, required: bool = False) -> _T:
        """Take what C{reading} makes of a text; its L{ValueError} is the fault."""
        value = self.text(key, required=required)
        if not value:
            return default
        try:
            return reading(value)
        except ValueError as error:
            self.fault(key, str(error))
            return default

    def texts(self, key: str) -> tuple[str, ...]:
        """Take an array of texts."""
        value = self.take(key, list, [])
        if not all(isinstance(each, str) for each in value):
            self.fault(key, "must be an array of texts")
            return ()
        return tuple(value)

    def table(self, key: str, *, required: bool = False) -> FileTable | None:
        """Take a table inside; L{None} if it is not there."""
        value = self.take(key, dict, None, required=required)
        return None if value is None else FileTable((*self.where, key), value, self.faults)

    def take(self, key: str, kind: type[_T], default: Any, *, required: bool = False) -> Any:
        """Take a value of exactly C{kind}."""
        self._taken.add(key)
        if key not in self.values:
            if required:
                self.fault(key, "is missing")
            return default
        value = self.values[key]
        if type(value) is not kind:
            self.fault(key, f"must be {_NAMES[kind]}")
            return default
        return value

    def skip(self, key: str) -> None:
        """Pass over a key of which something else has been said."""
        self._taken.add(key)

    def fault(self, key: str, message: str) -> None:
        """Something is wrong with the value of C{key}."""
        self.faults.add((*self.where, key), message)

    def close(self) -> None:
        """Whatever was not asked for is unknown."""
        for key in self.values:
            if key not in self._taken:
                self.fault(key, "is not a known key")


_NAMES: Mapping[type, str] = {
    str: "a text",
    bool: "true or false",
    list: "an array",
    dict: "a table",
    int: "a whole number",
}
