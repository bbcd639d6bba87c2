"""Typed access to the tables of files that people write.

Errors are collected with their lines and reading continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar, cast

from attrs import define, field, frozen

from .json import JSON, json_problems
from .load_error import LoadError
from .schemas import schema_problem
from .text import visible
from .toml import Path, Toml

_T = TypeVar("_T")

MOST_FAULTS = 50
"""The maximum number of errors reported per file, because people read the list and a hostile file must not fill it."""

_MOST_CHARACTERS = 400


@define
class FileFaults:
    """The errors found so far in one file, and the text of the file.

    :ivar toml: the part of the file that is TOML.
    :ivar offset: the number of lines of the file before that part.
    :ivar boundary: the kind of file, which is stored with each error.
    """

    file: str
    toml: Toml
    boundary: str
    offset: int = 0
    found: list[LoadError] = field(factory=list)

    def add(self, path: Path, message: str) -> None:
        """Add an error.  Its line is that of the nearest key whose line is known."""
        line = self.offset + (self.toml.line(path) or 0)
        self.found.append(LoadError("validation_error", brief(message), self.file, line or None, self.boundary))

    def find_table(self, name: str) -> Mapping[str, Any]:
        """Return the table of that name at the top of the file, unchecked, or an empty one if there is none."""
        return self.toml.find_table(name)

    def in_order(self) -> tuple[LoadError, ...]:
        """Return the first errors found in the file, sorted by line number."""
        return tuple(sorted(self.found, key=lambda error: error.line or 0)[:MOST_FAULTS])


@frozen
class TextRule:
    """A rule for a text.

    :ivar holds: returns a true value if the text is valid.
    :ivar phrase: the end of an error message that begins with the key's name.
    """

    holds: Callable[[str], object]
    phrase: str

    @classmethod
    def shape(cls, pattern: str, phrase: str) -> TextRule:
        """Return a rule that accepts a text only if all of it matches the regular expression C{pattern}."""
        return cls(re.compile(pattern).fullmatch, phrase)

    @classmethod
    def choice(cls, options: Collection[str]) -> TextRule:
        """Return a rule that accepts only the texts in C{options}."""
        return cls(frozenset(options).__contains__, "must be one of: " + ", ".join(options))


ANY_TEXT = TextRule(lambda _: True, "")
NOT_BLANK = TextRule(str.strip, "must not be blank")


@define
class FileTable:
    """The table at C{path} of a file. Its methods read keys and add errors to C{faults}.

    They return a value of the right type in any case.
    """

    values: Mapping[str, Any]
    path: Path
    faults: FileFaults
    _known: set[str] = field(factory=set)

    def fault(self, key: str, phrase: str) -> None:
        """Add an error about C{key}.  C{phrase} is the end of a sentence that begins with the key."""
        self.faults.add((*self.path, key), f"`{key}` {phrase}")

    def text(self, key: str, rule: TextRule = NOT_BLANK, *, required: bool = True) -> str:
        """Return the text at C{key}, or an empty string if there is none or the value is not a string.

        A text that C{rule} does not allow is returned, too. It is added as an error, and so are any other value and the
        lack of a required one.
        """
        value: str = self._take(key, str, "", "a string", required=required)
        if type(self.values.get(key)) is str and not rule.holds(value):
            self.fault(key, rule.phrase)
        return value

    def choice(self, key: str, options: Collection[str], default: str | None = None) -> str:
        """Return the text at C{key} if it is one of C{options}, else the default.

        Another text is added as an error. The key is required if there is no default.
        """
        value = self.text(key, TextRule.choice(options), required=default is None)
        return value if value in options else default or ""

    def read(self, key: str, reading: Callable[[str], _T], default: _T, *, required: bool = False) -> _T:
        """Return the result of C{reading} for the text at C{key}, or the default.

        A L{ValueError} is added as an error.
        """
        value = self.text(key, required=required)
        try:
            return reading(value) if value.strip() else default
        except ValueError as error:
            self.fault(key, str(error))
            return default

    def flag(self, key: str, *, default: bool) -> bool:
        """Return the boolean at C{key}, or the default. Any other value is added as an error."""
        return bool(self._take(key, bool, default, "true or false"))

    def number(self, key: str, low: float | None = None, high: float | None = None) -> float | int | None:
        """Return the number at C{key} if it is from C{low} to C{high}, else None.

        A wrong value is added as an error.
        """
        value = self._take(key, (int, float), None, "a number")
        problem = None
        if any(json_problems(value)):
            problem = "must be a number"
        elif value is not None and ((low is not None and value < low) or (high is not None and value > high)):
            problem = f"must be from {low} to {high}"
        return self._sound(key, cast("float | int | None", value), problem)

    def integer(self, key: str, low: int, high: int) -> int | None:
        """Return the integer at C{key} if it is from C{low} to C{high}, else None.

        A wrong value is added as an error.
        """
        value = self.number(key, low, high)
        if not isinstance(value, float):
            return value
        self.fault(key, "must be an integer")
        return None

    def integers(self, key: str, low: int, high: int) -> frozenset[int]:
        """Return the array of integers from C{low} to C{high} at C{key}, else an empty set.

        A wrong value is added as an error.
        """
        found = self._take(key, list, [], "an array")
        if all(type(each) is int and low <= each <= high for each in found):
            return frozenset(found)
        self.fault(key, f"must be an array of integers from {low} to {high}")
        return frozenset()

    def texts(self, key: str, *, required: bool = True) -> tuple[str, ...]:
        """Return the array of non-blank strings at C{key}, else an empty tuple.

        A wrong value is added as an error, and so is a required array that is empty or missing.
        """
        found = self._take(key, list, None, "an array of strings", required=required)
        if found is None:
            return ()
        if not all(isinstance(one, str) and one.strip() for one in found) or (required and not found):
            self.fault(key, "must be an array of one or more strings that are not blank")
            return ()
        return tuple(found)

    def json(self, key: str) -> JSON:
        """Return the value at C{key} if JSON can represent it, else None. A wrong value is added as an error."""
        value = self._take(key, object, None, "")
        problem = next((message for _, message in json_problems(value)), None)
        if problem is None and _has_moments(value):
            problem = "a date or time must be written as a string"
        return self._sound(key, cast(JSON, value), None if problem is None else f"cannot be JSON: {problem}")

    def object(self, key: str) -> Mapping[str, JSON] | None:
        """Return the table at C{key} if JSON can represent it, else None. A wrong value is added as an error."""
        value = self.json(key)
        if value is None or isinstance(value, Mapping):
            return value
        self.fault(key, "must be a table")
        return None

    def output_schema(self) -> Mapping[str, JSON] | None:
        """Return the JSON Schema at C{output}, which describes the result, or None if there is no valid one.

        An invalid schema is added as an error.
        """
        schema = self.object("output")
        return self._sound("output", schema, None if schema is None else schema_problem(schema))

    def table(self, key: str, *, required: bool = False) -> FileTable:
        """Return the table at C{key}, or an empty one if there is none.

        Any other value is added as an error, and so is the lack of a required table.
        """
        return self.optional_table(key, required=required) or FileTable({}, (*self.path, key), self.faults)

    def optional_table(self, key: str, *, required: bool = False) -> FileTable | None:
        """Return the table at C{key}, or None if there is none.

        Any other value is added as an error, and so is the lack of a required table.
        """
        found = self._take(key, dict, None, "a table", required=required)
        return None if found is None else FileTable(found, (*self.path, key), self.faults)

    def tables(self, key: str, most: int, *, required: bool = True) -> tuple[FileTable, ...]:
        """Return the first C{most} tables of the array at C{key}, else an empty tuple.

        Further tables and any other value are added as errors, and so is a required array that is empty or missing.
        """
        found = self._take(key, list, None, "an array of tables", required=required)
        if found is None:
            return ()
        if not all(isinstance(one, dict) for one in found) or (required and not found):
            self.fault(key, "must be an array of tables" if found else "is missing")
            return ()
        if len(found) > most:
            self.fault(key, f"has {len(found)} entries; {most} are allowed")
        return tuple(FileTable(one, (*self.path, key, at), self.faults) for at, one in enumerate(found[:most]))

    def some(self, key: str, options: Collection[str], problem: str) -> tuple[str, ...]:
        """Return the array of strings at C{key}.  Strings that are not in C{options} are added as errors.

        :param problem: the end of a message about an unknown string, with C{{}} in its place.
        """
        found = self.texts(key, required=False)
        for each in found:
            if each not in options:
                self.fault(key, problem.format(quote(each)))
        return found

    def skip(self, *keys: str) -> None:
        """Mark keys as known, because they are read elsewhere or already reported."""
        self._known.update(keys)

    def close(self) -> None:
        """Add an error for every key of the table that was not read."""
        for key in self.values:
            if key not in self._known:
                self.fault(key, "is not a known key")

    def _take(
        self, key: str, kind: type | tuple[type, ...], default: Any, called: str, *, required: bool = False
    ) -> Any:
        self._known.add(key)
        if key not in self.values:
            if required:
                self.fault(key, "is missing")
            return default
        value = self.values[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)):
            self.fault(key, f"must be {called}")
            return default
        return value

    def _sound(self, key: str, value: _T, problem: str | None) -> _T | None:
        if problem is None:
            return value
        self.fault(key, problem)
        return None


def _has_moments(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_moments, value.values()))
    if isinstance(value, list):
        return any(map(_has_moments, value))
    return value is not None and not isinstance(value, (str, int, float))


def repeated(names: Collection[str]) -> Iterator[int]:
    """Yield the indexes of names that occurred before."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name and name in seen:
            yield index
        seen.add(name)


def quote(text: str) -> str:
    """Return C{text} quoted, escaped and shortened for use in a message."""
    return repr(text if len(text) <= 60 else text[:60] + "…")


def brief(text: str) -> str:
    """Return C{text}, which may hold foreign words, as a message: visible and shortened."""
    whole = visible(text[: _MOST_CHARACTERS + 1])
    return whole if len(whole) <= _MOST_CHARACTERS else whole[:_MOST_CHARACTERS] + "…"
