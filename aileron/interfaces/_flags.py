"""What must be known of bindings."""

from __future__ import annotations

from collections.abc import Mapping

from zope.interface import Interface

from aileron.values import BindingFlag


class IBindingFlags(Interface):
    """Flags of bindings; L{IRuns} raises them, with the events that say why."""

    async def all() -> Mapping[str, BindingFlag]:
        """By the binding's name.  One of an earlier revision says nothing of the present one."""
