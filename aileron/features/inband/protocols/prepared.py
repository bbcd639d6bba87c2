"""A request ready to send, as bytes without parsed values. Only whole members can be changed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

Piece: TypeAlias = bytes | memoryview

_is_empty = re.compile(rb"\[[ \t\n\r]*+\]|\{[ \t\n\r]*+\}").fullmatch


class PreparedRequest:
    """The members of a request's JSON object as texts, with the text between them.

    :ivar size: the bytes held.
    """

    def __init__(
        self, members: Mapping[str, bytes], between: Sequence[bytes], appended: Mapping[str, list[str]]
    ) -> None:
        """Store a request's text.

        :param members: the text of each member's value, in their order.
        :param between: the text before each value, then the text after the last value and the end of the object.
        :param appended: the elements to append to members that are arrays.
        """
        self._members, self._between = members, between
        self._written: dict[str, bytes] = {}
        self._appended = {key: [*texts] for key, texts in appended.items()}
        self.size = sum(map(len, chain(members.values(), between, *appended.values())))

    def get(self, key: str) -> Any:
        """Parse and return the original value of a member, or None. Use it for short members only."""
        return json.loads(self._members[key]) if key in self._members else None

    def raw(self, key: str) -> bytes:
        """Return the text of a member's value, or an empty text if there is no such member."""
        text = self._written.get(key)
        return self._members.get(key, b"") if text is None else text

    def has_items(self, key: str) -> bool:
        """Return whether a member is originally a non-empty array or object."""
        text = self._members.get(key, b"")
        return text[:1] in (b"[", b"{") and not _is_empty(text)

    def write(self, key: str, text: str) -> None:
        """Replace the value of a member, or add it at the end."""
        self.size -= len(self._written.get(key, b""))
        self._written[key] = text.encode("utf-8")
        self.size += len(self._written[key])

    def append(self, key: str, *texts: str) -> None:
        """Append elements to the array of a member. If it is not an array, it becomes one."""
        self.size += sum(map(len, texts))
        self._appended.setdefault(key, []).extend(texts)

    def withdraw(self, key: str) -> None:
        """Remove the elements that were appended to a member."""
        self._appended.pop(key, None)

    def pieces(self) -> list[Piece]:
        """Return the request's text with all changes. Unchanged parts are not copied."""
        written: list[Piece] = []
        for before, key in zip(self._between, self._members, strict=False):
            written += [before, *self._value(key)]
        *_, after, end = self._between
        written.append(after)
        mark = b"," if self._members else b""
        for key in dict.fromkeys([*self._written, *self._appended]):
            if key not in self._members:
                written += [mark, json.dumps(key).encode("ascii"), b":", *self._value(key)]
                mark = b","
        return [*written, end]

    def _value(self, key: str) -> list[Piece]:
        value, texts = self.raw(key), self._appended.get(key)
        if texts is None:
            return [value]
        if value[:1] != b"[":
            value = b"[]"
        mark = b"" if _is_empty(value) else b","
        return [memoryview(value)[:-1], mark if texts else b"", ",".join(texts).encode("ascii"), b"]"]
