"""An error in a file that people write."""

from __future__ import annotations

from attrs import frozen


@frozen
class LoadError:
    """One error in one file, found while loading.  The file is skipped and the others are loaded.

    :ivar kind: C{parse_error}, C{validation_error}, C{unreadable}, C{duplicate}, C{connector} or C{untrusted}.
    """

    kind: str
    message: str
    file: str
    line: int | None = None
    boundary: str = "action"
