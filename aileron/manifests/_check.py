"""What the daemon would say of a file, without a daemon."""

from __future__ import annotations

from aileron.files import Unreadable, printable, read_file
from aileron.values import LoadError

from ._faults import ManifestFault, unreadable
from ._parse import parse
from ._source import MAX_FILE_BYTES


def check(path: str) -> list[LoadError]:
    """Every fault of the action file at C{path}; empty if it would load (alone: other files are not looked at)."""
    try:
        parse(read_file(path, MAX_FILE_BYTES).data, printable(path))
    except Unreadable as fault:
        return [unreadable(fault)]
    except ManifestFault as fault:
        return list(fault.errors)
    return []
