"""One page of a list."""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import frozen

T = TypeVar("T")


@frozen
class Page(Generic[T]):
    """Some items and where the next page begins.

    :ivar cursor: hand it back for more; L{None} at the end.  Opaque.
    """

    items: tuple[T, ...]
    cursor: str | None = None
