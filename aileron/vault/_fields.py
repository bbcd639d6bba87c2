"""An object of the vault file, each of its fields asked for by its type; nothing may be left over."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import cast

from aileron.values import JSON, from_timestamp


class Fields:
    """The fields of one object.  Every method but L{end} takes one of them.

    :raises ValueError: by the constructor, that it is no object; by every method, that the field is missing or of
        another type.  No message repeats a value.
    """

    def __init__(self, value: JSON) -> None:
        if not isinstance(value, Mapping):
            raise ValueError("an object is missing")
        self._left = dict(value)

    def text(self, name: str) -> str:
        """A string."""
        return cast("str", self._take(name, str))

    def optional_text(self, name: str) -> str | None:
        """A string or null."""
        return cast("str | None", self._take(name, str, type(None)))

    def number(self, name: str) -> int:
        """A whole number."""
        return cast("int", self._take(name, int))

    def flag(self, name: str) -> bool:
        """True or false."""
        return cast("bool", self._take(name, bool))

    def data(self, name: str) -> bytes:
        """Bytes, as base64."""
        return base64.b64decode(self.text(name), validate=True)

    def moment(self, name: str) -> datetime:
        """A moment, as L{aileron.values.timestamp} writes it."""
        return _moment(self.text(name))

    def optional_moment(self, name: str) -> datetime | None:
        """A moment or null."""
        text = self.optional_text(name)
        return None if text is None else _moment(text)

    def moments(self, name: str) -> dict[str, datetime]:
        """An object of moments."""
        values = cast("dict[str, JSON]", self._take(name, dict))
        inner = Fields(values)
        return {key: inner.moment(key) for key in values}

    def texts_by_name(self, name: str) -> dict[str, str]:
        """An object of strings."""
        values = cast("dict[str, JSON]", self._take(name, dict))
        inner = Fields(values)
        return {key: inner.text(key) for key in values}

    def texts(self, name: str) -> tuple[str, ...]:
        """An array of strings."""
        values = cast("list[JSON]", self._take(name, list))
        if not all(type(value) is str for value in values):
            raise ValueError(f"{name} is of the wrong type")
        return tuple(cast("list[str]", values))

    def inner(self, name: str) -> Fields:
        """An object."""
        return Fields(cast("JSON", self._take(name, dict)))

    def optional_inner(self, name: str) -> Fields | None:
        """An object or null."""
        value = self._take(name, dict, type(None))
        return None if value is None else Fields(cast("JSON", value))

    def list(self, name: str) -> list[Fields]:
        """An array of objects."""
        return [Fields(item) for item in cast("list[JSON]", self._take(name, list))]

    def end(self) -> None:
        """Refuse what nobody asked for."""
        if self._left:
            raise ValueError(f"unknown fields: {', '.join(sorted(self._left))[:100]}")

    def _take(self, name: str, *types: type) -> object:
        value = self._left.pop(name, ...)
        # By exact type: True is an int to isinstance.
        if type(value) not in types:
            raise ValueError(f"{name} is missing or of the wrong type")
        return value


def _moment(text: str) -> datetime:
    try:
        return from_timestamp(text)
    except OverflowError:
        raise ValueError("a moment is out of range") from None
