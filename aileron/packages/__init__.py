"""Packages of connector and action files: fetched, verified, compared with what is installed, and remembered.

Nothing here writes into the home or asks anybody, and no package is in force before the operator trusts its files.
"""

from ._lock import Installed, Lock, LockFile, read_lock
from ._minisign import read_key
from ._plan import Plan, plan
from ._source import Fetched, Source, fetch, read_source

__all__ = [
    "Fetched",
    "Installed",
    "Lock",
    "LockFile",
    "Plan",
    "Source",
    "fetch",
    "plan",
    "read_key",
    "read_lock",
    "read_source",
]
