"""Reads the name and version of a connector from its file."""

from __future__ import annotations

from aileron.base.tables import FileTable, TextRule
from aileron.model.actions import SEMVER

from ._operations import Identity

_SEGMENT = r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?"
CONNECTOR_NAME = rf"(builtin|local)://{_SEGMENT}(?:/{_SEGMENT})*"
_NAME = TextRule.shape(
    CONNECTOR_NAME,
    "must be local:// and one or more parts of a-z, 0-9, '-' and '_', such as local://me/tracker",
)
_VERSION = TextRule.shape(SEMVER, "must be a version such as 1.0.0")

USUAL_KIND = "http"
"""The kind of a connector whose file names none."""


def read_identity(head: FileTable, content_hash: str, scheme: str | None) -> Identity:
    """Return the name, the version and the content hash of a connector. Faults are added to the table.

    :param head: the table C{[connector]}.
    :param scheme: C{builtin} or C{local}, if the name must begin with it.
    """
    name = head.text("name", _NAME)
    if _NAME.holds(name) and scheme is not None and not name.startswith(f"{scheme}://"):
        head.fault("name", f"must begin with {scheme}:// here")
    return name, head.text("version", _VERSION), content_hash
