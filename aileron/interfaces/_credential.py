"""One bound credential, not open."""

from __future__ import annotations

from zope.interface import Interface


class ICredential(Interface):
    """A bound credential that is not open.  Rooms above the connectors pass it on and never call L{reveal}."""

    def reveal() -> bytes:
        """The secret.

        :raises VaultLocked: the vault was locked meanwhile.
        :raises BindingFailed: the entry is gone, changed, or does not open.
        """
