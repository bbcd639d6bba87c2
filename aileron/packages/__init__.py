"""Packages of connector and action files: fetched, verified, compared with what is installed, and remembered.

Nothing here writes into the home or asks anybody, and no package is in force before the operator trusts its files.
"""

from ._compare import PackageChange, compare
from ._lock import Installed, Lock, LockFile, read_lock
from ._minisign import read_key
from ._source import Fetched, Source, fetch, read_source

__all__ = [
    "Fetched",
    "Installed",
    "Lock",
    "LockFile",
    "PackageChange",
    "Source",
    "compare",
    "fetch",
    "read_key",
    "read_lock",
    "read_source",
]
