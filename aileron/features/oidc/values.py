"""The settings of the sign-in with a provider."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from aileron.base.addresses import read_origin
from aileron.model.people import Role
from aileron.model.vault import Scope

TARGET = "oidc://client"
"""The target that the client secret is bound to in the vault."""

SERVICE, IDENTITY = "oidc", "client"

OPENID = "openid"
"""The scope without which a provider gives no ID token."""


@frozen
class OidcSettings:
    """The settings of the sign-in with a provider.

    :ivar issuer: the provider's issuer, exactly as its ID tokens name it.
    :ivar title: the name of the provider for people, or empty for the issuer's host.
    :ivar groups_claim: the claim of the ID token with the person's groups: a name, or a dotted path.
    :ivar roles: the role of each group.
    :ivar emails: the role of each person whose verified address is listed here, in small letters.
    :ivar domains: the domains of which a verified address is required, or empty for none.
    :ivar recheck_minutes: the time after which a login ends unless the provider has confirmed it again.
    :ivar private_network: whether the provider may have a private address, or one on loopback.
    """

    issuer: str
    client_id: str
    title: str = ""
    scopes: tuple[str, ...] = (OPENID, "profile", "email")
    groups_claim: str = "groups"
    roles: Mapping[str, Role] = field(factory=dict)
    emails: Mapping[str, Role] = field(factory=dict)
    domains: tuple[str, ...] = ()
    recheck_minutes: int = 15
    private_network: bool = False

    @property
    def name(self) -> str:
        """The name of the provider for people."""
        return self.title or read_origin(self.issuer).host

    def scope(self) -> Scope:
        """Return the scope that the client secret is encrypted for in the vault."""
        return Scope((read_origin(self.issuer).authority,), self.issuer, "client_secret", "{key}")
