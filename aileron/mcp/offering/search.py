"""Searches actions by words, with SQLite's full-text index FTS5 in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from aileron.mcp._definitions import ToolDefinition

if TYPE_CHECKING:
    import sqlite3

MOST_FOUND = 10
_MOST_WORDS, _LONGEST_WORD = 32, 64  # limits of a query: further words and letters are ignored
_SHORTEST_BEGINNING = 3  # the shortest ASCII word that also matches as a prefix: a prefix "a" would match too much

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Matches a letter of a script without spaces between words. Each such letter counts as a word."""
_SYNONYMS = (
    "list show all",
    "get read look see view",
    "create add new open make file",
    "update change edit modify set move",
    "delete remove trash cancel",
    "send post publish write tell",
    "search find look",
    "comment note reply",
    "mail email mails emails",
)
"""Groups of synonyms. A synonym of a query's word counts less than the word itself."""

_CREATE = """CREATE VIRTUAL TABLE actions USING {module}(
    name, title, about, arguments, tokenize = 'unicode61 remove_diacritics 2')"""
_INSERT = "INSERT INTO actions (rowid, name, title, about, arguments) VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT rowid FROM actions WHERE actions MATCH ? ORDER BY bm25(actions, 2, 2, 1, 1), rowid LIMIT ?"
"""The query. A word counts twice as much in a name or a title."""


class SearchUnavailable(Exception):
    """The error for a search if SQLite was built without a full-text index."""


class ActionIndex:
    """A full-text index of actions.

    :param module: the SQLite module to use.
    """

    def __init__(self, module: str = "fts5") -> None:
        self._module = module
        self._definitions: Sequence[ToolDefinition] = ()
        self._connection: sqlite3.Connection | None = None

    def search(self, definitions: Sequence[ToolDefinition], query: str, most: int) -> list[ToolDefinition]:
        """Return the definitions that contain any word of C{query}, best first, then in their order, at most C{most}.

        :raises SearchUnavailable: if this SQLite has no full-text index.
        """
        if self._connection is None or definitions is not self._definitions:
            self._connection, self._definitions = self._build(definitions), definitions
        expression = " OR ".join(_phrases(query))
        found = self._connection.execute(_SELECT, (expression, most)) if expression else ()
        return [definitions[number] for (number,) in found]

    def _build(self, definitions: Sequence[ToolDefinition]) -> sqlite3.Connection:
        import sqlite3  # lazily: most sessions never search

        connection = sqlite3.connect(":memory:")
        try:
            connection.execute(_CREATE.format(module=self._module))
        except sqlite3.OperationalError as error:
            raise SearchUnavailable(str(error)) from None
        connection.executemany(_INSERT, _rows(definitions))
        return connection


def _rows(definitions: Iterable[ToolDefinition]) -> Iterator[tuple[object, ...]]:
    for number, each in enumerate(definitions):
        texts = (str(each.action), each.title, each.about, _arguments(each))
        yield number, *map(_fold, texts)


def _fold(text: str) -> str:
    # SQLite's folding does not handle ß or other letters that become longer.
    return _UNSPACED.sub(r" \g<0> ", text.casefold())


def _arguments(definition: ToolDefinition) -> str:
    """Return the names and descriptions of an action's arguments."""
    properties = definition.input_schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    said = (each.get("description", "") for each in known.values() if isinstance(each, Mapping))
    return " ".join(map(str, (*known, *said)))


def _phrases(query: str) -> Iterator[str]:
    """Yield the FTS5 phrases for the words of a query, quoted so that no character acts as query syntax."""
    words = dict.fromkeys(word[:_LONGEST_WORD] for word in _WORD.findall(_fold(query)))
    for word in tuple(words)[:_MOST_WORDS]:
        yield f'"{word}"'
        if len(word) >= _SHORTEST_BEGINNING or not word.isascii():
            yield f'"{word}"*'
        groups = (group.split() for group in _SYNONYMS)
        yield from (f'"{other}"' for group in groups if word in group for other in group if other != word)
