"""Rooms whose every word is somebody else's: a test's own strings stand in place of all that they return."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from inspect import isawaitable
from typing import Any

import attrs

Exchange = Callable[[str], str]


@attrs.define
class Words:
    """The strings that are said, one after the other.

    :ivar said: how many were.
    :ivar _meant: what each stands for where it was said last, so that an id can be asked for again.
    """

    _strings: Iterator[str]
    said: int = 0
    _meant: dict[str, str] = attrs.field(factory=dict)

    def say(self, text: str) -> str:
        """The next, in place of C{text}; nothing stays nothing."""
        if not text:
            return text
        self.said += 1
        spoken = next(self._strings)
        self._meant[spoken] = text
        return spoken

    def hear(self, text: str) -> str:
        """What was meant by it."""
        return self._meant.get(text, text)


@attrs.frozen
class Misled:
    """A room that says L{Words}, and understands them where they come back."""

    _room: Any
    _words: Words

    def __getattr__(self, name: str) -> Any:
        """Whatever the room has of that name."""
        found = getattr(self._room, name)
        if not callable(found):
            return exchanged(found, self._words.say)

        def call(*given: Any, **named: Any) -> Any:
            heard = exchanged(given, self._words.hear), exchanged(named, self._words.hear)
            answer = found(*heard[0], **heard[1])
            return self._later(answer) if isawaitable(answer) else exchanged(answer, self._words.say)

        return call

    async def _later(self, answer: Any) -> Any:
        return exchanged(await answer, self._words.say)


def exchanged(value: Any, exchange: Exchange) -> Any:
    """A copy of C{value} with each string in it exchanged, whatever its class would say to that; names of keys stay."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return exchange(value)
    if isinstance(value, Mapping):
        return {name: exchanged(each, exchange) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(exchanged(each, exchange) for each in value)
    return _copied(value, exchange) if attrs.has(type(value)) else value


def _copied(value: Any, exchange: Exchange) -> Any:
    other = copy.copy(value)
    for field in attrs.fields(type(value)):
        object.__setattr__(other, field.name, exchanged(getattr(value, field.name), exchange))
    return other
