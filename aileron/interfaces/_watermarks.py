"""What is remembered of things that are kept elsewhere."""

from __future__ import annotations

from zope.interface import Interface


class IWatermarks(Interface):
    """Short texts by name: how far something had come that could be put back behind our back."""

    async def all() -> dict[str, str]:
        """Every one that was put."""

    async def put(name: str, value: str) -> None:
        """Keep C{value}, in the place of an earlier one; durable when it returns.

        :raises StoreUnavailable: it was not kept.
        """
