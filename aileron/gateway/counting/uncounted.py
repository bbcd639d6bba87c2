"""The meter of what was refused before anybody counted."""

from __future__ import annotations

from zope.interface import implementer

from aileron.interfaces import IMeter
from aileron.values import Ending


@implementer(IMeter)
class Uncounted:
    """Counts nothing."""

    def sent(self) -> None:
        """See L{IMeter}."""

    def arrived(self) -> None:
        """See L{IMeter}."""

    def answered(self, code: int, head: bytes) -> None:
        """See L{IMeter}."""

    def passed(self, data: bytes) -> None:
        """See L{IMeter}."""

    def ended(self, ending: Ending, uploaded: int) -> None:
        """See L{IMeter}."""


UNCOUNTED = Uncounted()
