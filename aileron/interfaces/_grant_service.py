"""Shows standing grants, and takes them back."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import (
    Actor,
    StandingGrant,
)


class IGrantService(Interface):
    """Shows the operator the standing grants, and takes them back."""

    async def grants() -> tuple[StandingGrant, ...]:
        """The standing grants, oldest first, and whether each allows anything now.

        :raises VaultLocked: the vault was never unlocked in this life.
        """

    async def grant(grant_id: str) -> StandingGrant:
        """One standing grant.

        :raises NotFound: there is none of that id, or it ended some days ago.
        :raises VaultLocked: as of L{grants}.
        """

    async def revoke_grant(grant_id: str, actor: Actor) -> StandingGrant:
        """Let a grant be in force no more: when it returns, nothing more begins by it.  Twice is safe.

        :raises NotFound: as of L{grant}.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: the vault could not be written, and it stays; or the record could not, and it ended.
        """
