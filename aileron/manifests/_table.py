"""One table of the front matter, read key by key; what is wrong is kept and reading goes on."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, cast

from attrs import frozen

from aileron.toml import Path
from aileron.values import JSON, json_problems

from ._faults import PARSE, Faults, shown


@frozen
class TextRule:
    """A rule for a text.

    :ivar holds: says whether it is (anything true).
    :ivar phrase: ends the sentence that begins with the key's name.
    """

    holds: Callable[[str], object]
    phrase: str

    @classmethod
    def shape(cls, pattern: str, phrase: str) -> TextRule:
        """Require that the whole text has the shape of C{pattern}."""
        return cls(re.compile(pattern).fullmatch, phrase)

    @classmethod
    def choice(cls, options: Collection[str]) -> TextRule:
        """Require that the text is one of C{options}."""
        return cls(frozenset(options).__contains__, "must be one of " + ", ".join(options))


NOT_BLANK = TextRule(str.strip, "must not be blank")


@frozen
class TomlTable:
    """A table at C{path}.  Readers answer something of the right type even where they found a fault."""

    values: Mapping[str, Any]
    path: Path
    faults: Faults

    def fault(self, key: str | None, message: str) -> None:
        """Keep a fault of C{key}, or of the table as a whole."""
        self.faults.add(self.path if key is None else (*self.path, key), message)

    def text(self, key: str, rule: TextRule = NOT_BLANK, *, required: bool = True) -> str:
        """Take a string that C{rule} allows; empty where there is none."""
        if key not in self.values:
            if required:
                self.fault(None, f"`{key}` is missing")
            return ""
        value = self.values[key]
        if not isinstance(value, str):
            self.fault(key, f"`{key}` must be a string")
            return ""
        if not rule.holds(value):
            self.fault(key, f"`{key}` {rule.phrase}")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """Take true or false."""
        value = self.values.get(key, default)
        if isinstance(value, bool):
            return value
        self.fault(key, f"`{key}` must be true or false")
        return default

    def number(self, key: str, low: float | None = None, high: float | None = None) -> float | int | None:
        """Take a number from C{low} to C{high}; L{None} where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or any(json_problems(value)):
            self.fault(key, f"`{key}` must be a number")
            return None
        if (low is not None and value < low) or (high is not None and value > high):
            self.fault(key, f"`{key}` must be from {low} to {high}")
        return value

    def integer(self, key: str, low: int, high: int) -> int | None:
        """Take an integer from C{low} to C{high}; L{None} where there is none."""
        value = self.number(key, low, high)
        if isinstance(value, float):
            self.fault(key, f"`{key}` must be an integer")
            return None
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Take an array of at least one string, none blank."""
        value = self.values.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one.strip() for one in value):
            self.fault(key, f"`{key}` must be an array of one or more strings that are not blank")
            return ()
        return tuple(value)

    def json(self, key: str) -> JSON:
        """Any value that JSON can say."""
        value = self.values.get(key)
        problem = next((message for _, message in json_problems(value)), None)
        if problem is None and _has_moments(value):
            problem = "a date or time must be written as a string"
        if problem is None:
            return cast(JSON, value)
        self.fault(key, f"`{key}`: {problem}")
        return None

    def table(self, key: str, *, required: bool = False) -> TomlTable:
        """Take a table inside this one; empty where there is none."""
        value = self.values.get(key, {})
        if required and key not in self.values:
            self.fault(None, f"`[{key}]` is missing")
        if not isinstance(value, dict):
            self.fault(key, f"`{key}` must be a table")
            value = {}
        return TomlTable(value, (*self.path, key), self.faults)

    def tables(self, key: str, most: int, *, required: bool = True) -> tuple[TomlTable, ...]:
        """Take an array of at most C{most} tables."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            self.fault(key, f"`{key}` must be an array of tables")
            return ()
        if required and not value:
            self.fault(None, f"`[[{'.'.join([*map(str, self.path), key])}]]` is missing")
        if len(value) > most:
            self.fault(key, f"`{key}` has {len(value)} entries; {most} are allowed")
        path = (*self.path, key)
        return tuple(TomlTable(one, (*path, index), self.faults) for index, one in enumerate(value[:most]))

    def close(self, known: Collection[str], later: Collection[str] = ()) -> None:
        """Every key that is not C{known} is a fault; those of C{later} versions say so."""
        for key in self.values:
            if key in later:
                self.fault(key, f"`{key}` is not supported yet")
            elif key not in known:
                self.faults.add((*self.path, key), f"unknown key {shown(key)}", PARSE)


def _has_moments(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_moments, value.values()))
    if isinstance(value, list):
        return any(map(_has_moments, value))
    return value is not None and not isinstance(value, (str, int, float))


def repeated(names: Iterator[str] | Collection[str]) -> Iterator[int]:
    """Find the indexes of the names that stood there before."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name and name in seen:
            yield index
        seen.add(name)
