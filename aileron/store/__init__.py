"""The database: the only SQL, with one writer, separate readers, numbered schema files and one description per table.

A new file is created under a temporary name and then renamed. An older one is backed up and then migrated through the
numbered files. A newer one is refused.
"""

from ._address import ServerAddress, read_address
from ._audit import Seals
from ._bulletin import News
from ._daemons import Decided
from ._engine import ForeignDatabase, NewerDatabase, Threads, Tuning
from ._migration import Schema
from ._store import SharedStore, Store, make_store

__all__ = [
    "Decided",
    "ForeignDatabase",
    "NewerDatabase",
    "News",
    "Schema",
    "Seals",
    "ServerAddress",
    "SharedStore",
    "Store",
    "Threads",
    "Tuning",
    "make_store",
    "read_address",
]
