"""What must be known of bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zope.interface import Interface

from aileron.values import BindingFlag, Event


class IBindingFlags(Interface):
    """Flags of bindings; L{IRuns} raises those of runs, with the events that say why."""

    async def all() -> Mapping[str, BindingFlag]:
        """By the binding's name.  One of an earlier revision says nothing of the present one."""

    async def put(flag: BindingFlag, events: Sequence[Event]) -> None:
        """Raise a flag that no run did, and keep the events that say why, in one transaction.

        The first flag of a revision stays.  Cancelling ends the wait, and never takes it back.

        :raises StoreUnavailable: nothing of it was kept.
        """
