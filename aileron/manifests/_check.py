"""What the daemon would say of a file, without a daemon."""

from __future__ import annotations

from aileron.values import LoadError

from ._faults import ManifestFault
from ._files import printable, read_file
from ._parse import parse


def check(path: str) -> list[LoadError]:
    """Every fault of the action file at C{path}; empty if it would load (alone: other files are not looked at)."""
    try:
        parse(read_file(path).data, printable(path))
    except ManifestFault as fault:
        return list(fault.errors)
    return []
