"""A transport that counts the bytes written to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from zope.interface import directlyProvides, providedBy


class CountedTransport:
    """A transport with all methods of another one, which counts the bytes that are written.

    :param count: called with the number of bytes before they are written.
    """

    def __init__(self, transport: Any, count: Callable[[int], object]) -> None:
        directlyProvides(self, providedBy(transport))
        self._transport, self._count = transport, count

    def write(self, data: bytes) -> None:
        """Count the bytes, and write them to the wrapped transport."""
        self._count(len(data))
        self._transport.write(data)

    def writeSequence(self, data: Iterable[bytes]) -> None:
        """Count the bytes of the pieces, and write them to the wrapped transport."""
        self.write(b"".join(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
