"""One bound credential, not open."""

from __future__ import annotations

from zope.interface import Interface


class ICredential(Interface):
    """A bound credential that is not open.  Rooms above the connectors pass it on and never call L{reveal}."""

    async def reveal() -> bytes:
        """Open it: the secret that is sent now, which is asked for anew at each use.

        A kind of credential that runs out is renewed here, once for all who wait, and what came of it is kept before it
        is told.  Cancelling ends the wait.

        :raises VaultLocked: the vault was locked meanwhile.
        :raises BindingFailed: the entry is gone, changed, or does not open.
        """
