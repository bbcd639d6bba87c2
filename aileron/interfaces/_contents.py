"""Texts that were trusted once."""

from __future__ import annotations

from zope.interface import Interface


class IContents(Interface):
    """Texts by their digest, to show what changed.  Nothing follows from what lies here."""

    async def put(text: str) -> str:
        """Keep C{text}; its digest.  Twice is safe.

        :raises StoreUnavailable: it was not kept.
        """

    async def get(digest: str) -> str | None:
        """The text of exactly this digest, or L{None}: unknown, or altered."""
