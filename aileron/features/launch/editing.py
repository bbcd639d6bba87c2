"""Removes an entry from the text of a user's settings and keeps everything else byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, islice
from typing import Any, TypeAlias

from attrs import frozen

from .formats import blank_comments, parse_jsonc, parse_toml, parse_yaml
from .layers import part_of

Keys: TypeAlias = tuple[str, ...]
"""The path of names from the top of the settings to an entry."""

_MOST_LINES = 400
_MOST_TRIES, _MOST_PARSED = 1000, 128 * 1024 * 1024  # attempts to parse, and characters parsed in total


@frozen
class Syntax:
    """A format of settings.

    :ivar name: the name for messages.
    :ivar read: parses a text; raises ValueError.
    :ivar has_commas: whether members are separated by commas.
    """

    name: str
    read: Callable[[str], Any]
    has_commas: bool = False

    def parse(self, text: str) -> Any:
        """Parse settings, with or without byte order mark.

        :raises ValueError: if the text is invalid.
        """
        return self.read(text.removeprefix("\ufeff"))

    def remove(self, text: str, keys: Keys) -> str:
        """Return the text without the lines of the entry at C{keys}, if the entry has lines of its own.

        Candidate lines are removed until the rest parses to exactly the expected settings, so nothing else can be lost.

        :raises ValueError: if the text is invalid, or no lines contain exactly the entry.
        """
        wanted = list(_outcomes(self.parse(text), keys))[: 1 if self.has_commas else None]
        bare = blank_comments(text) if self.has_commas else text
        tries = min(_MOST_TRIES, _MOST_PARSED // (len(text) + 1))
        for begin, end in islice(_spans(text, keys[-1]), tries):
            head, before = text[:begin], bare[:begin].rstrip()
            if self.has_commas and before.endswith(",") and not bare[begin:end].rstrip().endswith(","):
                head = text[: len(before) - 1] + text[len(before) : begin]  # the last member: drop the comma before
            try:
                if self.parse(head + text[end:]) in wanted:
                    return head + text[end:]
            except ValueError:
                continue
        raise ValueError("it does not have lines of its own")


def _outcomes(value: Mapping[str, Any], keys: Keys) -> Iterator[Mapping[str, Any]]:
    """Yield the settings without the entry, then without each enclosing table that removing the entry leaves empty.

    Each of them is an acceptable result of the removal.
    """
    yield _without(value, keys)
    while len(keys) > 1 and len(part_of(value, *keys[:-1])) == 1:
        keys = keys[:-1]
        yield _without(value, keys)


def _without(value: Mapping[str, Any], keys: Keys) -> Mapping[str, Any]:
    first, *rest = keys
    if not rest:
        return {name: each for name, each in value.items() if name != first}
    return {**value, first: _without(value[first], tuple(rest))}


def _spans(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end offsets of lines that may be an entry of this name, the shortest first."""
    lines = text.splitlines(keepends=True)
    names = (f'"{name}"', json.dumps(name), f"'{name}'", name)
    starts = [0, *accumulate(map(len, lines))]
    for first, line in enumerate(lines):
        if _begins(line.strip(), names):
            depth = _indentation(line)
            for last, each in enumerate(lines[first : first + _MOST_LINES], first):
                if each.strip() and _indentation(each) < depth:
                    break
                yield starts[first], starts[last + 1]


def _begins(line: str, names: Iterable[str]) -> bool:
    """Return whether a line may begin an entry of one of the names: a table's header, or a key with a value."""
    if line.startswith("["):
        return any(name in line.partition(",")[0] for name in names)
    return any(line.startswith(name) and line[len(name) :].lstrip()[:1] in (":", "=") for name in names)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


JSONC, TOML, YAML = Syntax("JSON", parse_jsonc, has_commas=True), Syntax("TOML", parse_toml), Syntax("YAML", parse_yaml)
