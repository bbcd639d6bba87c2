"""Inputs whose parts are joined into one text, as in the styles of OpenAPI and RFC 6570."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from attrs import frozen

from aileron.base.json import JSON
from aileron.base.tables import FileTable, TextRule
from aileron.connectors._template import scalar

_LITERAL = TextRule.shape(
    r"(?:[A-Za-z0-9_.~!$'()*+,;=:@\[\]-]|%[0-9A-Fa-f]{2}){0,100}",
    "must be encoded text as it stands in a path or a query",
)


@frozen
class JoinedInput:
    """An array or a table that becomes one text.

    :ivar before: the prefix.
    :ivar between: the separator of parts.
    :ivar pair: the separator between the name and the value of a member.
    """

    before: str
    between: str
    pair: str

    def write(self, value: JSON, name: str, encode: Callable[[str], str]) -> str | None:
        """Return the joined text of a value, or None if the value is null or has no parts.

        :param encode: encodes a part.
        :raises InvalidRequest: if the value, or a part of it, is no text, number or boolean.
        """
        if value is None:
            return None
        parts = [*self._parts(value, name, encode)]
        return self.before + self.between.join(parts) if parts else None

    def _parts(self, value: JSON, name: str, encode: Callable[[str], str]) -> Iterator[str]:
        if isinstance(value, Mapping):
            given = ((key, each) for key, each in value.items() if each is not None)
            yield from (f"{encode(key)}{self.pair}{encode(scalar(each, name))}" for key, each in given)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from (encode(scalar(each, name)) for each in value)
        else:
            yield encode(scalar(value, name))


def read_joined(table: FileTable, inputs: Collection[str]) -> Mapping[str, JoinedInput]:
    """Read the table C{joined}: for each input, the separators of its parts. Faults are added to the table."""
    whole, found = table.table("joined"), dict[str, JoinedInput]()
    for name in whole.values:
        inside = whole.table(name)
        if name not in inputs:
            whole.fault(name, "is not an input of the path, the query, the headers or a form")
        before, pair = (inside.text(key, _LITERAL, required=False) for key in ("before", "pair"))
        found[name] = JoinedInput(before, inside.text("between", _LITERAL), pair)
        inside.close()
    return found
