"""The only SQL: one writer, readers apart, numbered schema files, each table described once.

A new file is made under a temporary name and then renamed; an older one is copied aside, then stepped through the
numbered files; a newer one is refused.
"""

from ._audit import Seals
from ._connections import ForeignDatabase, NewerDatabase, Threads, Tuning
from ._migration import Schema
from ._store import Store, make_store

__all__ = [
    "ForeignDatabase",
    "NewerDatabase",
    "Schema",
    "Seals",
    "Store",
    "Threads",
    "Tuning",
    "make_store",
]
