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
        """Count bytes, and write them."""
        self._count(len(data))
        self._transport.write(data)

    def writeSequence(self, data: Iterable[bytes]) -> None:
        """Count pieces, and write them."""
        self.write(b"".join(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
