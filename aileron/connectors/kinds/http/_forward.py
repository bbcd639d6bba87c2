"""The operations by which a connector forwards the requests of an agent's own tools."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.connectors._forwarding import (
    FORWARD_SECONDS,
    FORWARDED_INPUTS,
    MOST_FORWARDED_BYTES,
    MOST_READ_BYTES,
    STORED_SECONDS,
)
from aileron.model.connectors import FORWARD, FORWARD_READ, READ, WRITE, Operation, Presentation

from ._packages import SHOW_PACKAGE
from ._spec import HttpOperation

WHOLE = "whole"
"""The form of an answer that is returned with its status and headers. No file can declare it."""

_TITLES = (
    "Publish ${in.package} ${in.version} to ${in.host}",
    "GraphQL mutation ${in.mutation} at ${in.host}",
    "AWS: ${in.call}",
    "${in.method} ${in.host}${in.target}",
)
_WHY = "it sends a request that a tool of the agent wrote"


def make_forwarding(packages: str) -> Mapping[str, HttpOperation]:
    """Return the operations by which a connector forwards requests of tools: one that writes and one that reads.

    :param packages: the form in which tools publish packages. If it is not empty, a further read shows a package.
    """
    write = Operation(
        FORWARD,
        WRITE,
        idempotent=False,
        description="Sends a request that a tool of the agent wrote.",
        timeout_seconds=STORED_SECONDS,
        presentation=Presentation("request", {}, _TITLES),
        needs_approval=_WHY,
        tools_only=True,
    )
    read = Operation(
        FORWARD_READ,
        READ,
        idempotent=True,
        description="Sends a read that a tool of the agent wrote.",
        timeout_seconds=FORWARD_SECONDS,
        needs_approval=_WHY,
        tools_only=True,
    )
    found = {
        FORWARD: _forwarding(write, MOST_FORWARDED_BYTES),
        FORWARD_READ: _forwarding(read, MOST_READ_BYTES),
    }
    if packages:
        show = Operation(
            SHOW_PACKAGE,
            READ,
            idempotent=True,
            description="Shows the package that a tool of the agent would publish.",
            timeout_seconds=FORWARD_SECONDS,
            tools_only=True,
        )
        found[SHOW_PACKAGE] = _forwarding(show, MOST_READ_BYTES)
    return found


def _forwarding(operation: Operation, most_bytes: int) -> HttpOperation:
    return HttpOperation(
        operation=operation,
        method="",
        segments=(),
        answer=WHOLE,
        max_response_bytes=most_bytes,
        inputs=FORWARDED_INPUTS,
    )
