"""Takes the operator's word about what may run at all."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import Interface

from aileron.values import (
    Actor,
    Offer,
    TrustItem,
    TrustKind,
)


class ITrustService(Interface):
    """Lets the operator trust files, take trust back, and switch actions on and off."""

    async def set_enabled(name: str, enabled: bool, actor: Actor) -> Offer:
        """Switch an action on or off; durable when it returns.

        :raises NotFound: there is none of that name that loaded and is trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """

    async def trust_items() -> tuple[TrustItem, ...]:
        """Every file as it lies there now, and whatever else is trusted, by kind and name.

        :raises VaultLocked: the vault was never unlocked in this life, so that nobody's word is known.
        """

    async def trust(items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        """Trust exactly these files, all or none; durable when it returns.  Twice is safe.

        :param items: kind, name and digest of each, as the operator was shown it.
        :return: each as it is then.
        :raises NotFound: one of them does not lie there.
        :raises Conflict: one of them has another digest now; C{details["items"]} lists kind, name and digest of what
            lies there instead.  Nothing was trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """

    async def distrust(kind: TrustKind, name: str, actor: Actor) -> None:
        """Take trust back; what waits of it becomes stale.

        :raises NotFound: it is not trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """
