"""Opens the client secret of the sign-in provider, which is in the vault."""

from __future__ import annotations

from aileron.model.errors import BindingFailed
from aileron.model.interfaces.vault import IBindings

from .values import TARGET, OidcSettings


async def open_secret(bindings: IBindings, settings: OidcSettings) -> str | None:
    """Return the client secret from the vault, or None if there is none. It is not cached.

    :raises VaultLocked: if the vault is locked.
    :raises BindingFailed: if the secret is for another issuer.
    """
    bound = bindings.for_connector(TARGET)
    if not bound:
        return None
    try:
        return (await bindings.credential(bound[0], settings.scope()).reveal()).decode("ascii")
    except BindingFailed:
        raise BindingFailed("The client secret is for another issuer. Store it again: aileron oidc secret") from None
