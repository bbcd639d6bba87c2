"""SQL stands in the store, and where actions are searched in memory; nowhere else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ._source import Source

_STATEMENT = re.compile(
    r"""\s*(?: SELECT\s.+\sFROM\s | INSERT\s+(OR\s+\w+\s+)?INTO\s | REPLACE\s+INTO\s | UPDATE\s+\w+\s+SET\s
        | DELETE\s+FROM\s | (CREATE|DROP|ALTER)\s+(TABLE|INDEX|TRIGGER|VIEW)\s | PRAGMA\s+\w
        | BEGIN\s+(IMMEDIATE|EXCLUSIVE|DEFERRED) | SAVEPOINT\s+\w | WITH\s+\w+\s+AS\s+\()""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_PLACES = ("aileron.store", "aileron.mcp.offering.search")
_DRIVERS = ("sqlite3", "twisted.enterprise", "psycopg", "psycopg2")


def database_access(source: Source) -> Iterator[str]:
    """Find SQL statements and database drivers elsewhere."""
    if source.name.startswith(_PLACES):
        return
    for imported in source.imports:
        if f"{imported.path}.".startswith(tuple(f"{driver}." for driver in _DRIVERS)):
            yield f"{source.name}:{imported.line} imports {imported.path}"
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_statement(node.value):
            yield f"{source.name}:{node.lineno} holds SQL"


def _is_statement(text: str) -> bool:
    """Tell SQL from prose: "Delete from the vault…" has a capital only at its start."""
    found = _STATEMENT.match(text)
    return found is not None and not text.split(maxsplit=1)[0].istitle()
