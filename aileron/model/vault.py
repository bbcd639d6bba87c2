"""The values that describe the vault and its bindings while no credential is opened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from aileron.base.addresses import base_url_problem
from aileron.base.converter import OMITTED, Member, differ
from aileron.model.people import Owner


class VaultState(StrEnum):
    """The state of the vault. C{lost}: the database has a history, but there is no vault file."""

    MISSING = "missing"
    LOCKED = "locked"
    UNLOCKED = "unlocked"
    LOST = "lost"


@frozen
class Scope:
    """The scope of a credential: the only hosts, and the only place in a request, for which it opens.

    :ivar hosts: the allowed C{host:port}, as the connector declares.
    :ivar base_url: the base URL in use: that of the binding, or the connector's.
    :ivar header: the request header that carries the credential, or empty.
    :ivar format: the header's value, with C{{key}} in place of the credential.
    :ivar settings: further settings of the credential's kind, such as its query parameter, or a region.
    """

    hosts: tuple[str, ...]
    base_url: str
    header: str
    format: str
    settings: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class Binding:
    """A binding of one credential to one connector, without the credential.

    :ivar name: C{<kind>/<service>/<identity>}.
    :ivar revision: a number that grows with each change of the entry.
    :ivar base_url: the binding's own base URL, or None for the connector's.
    :ivar scope: the scope that the credential was encrypted for. If None, it opens nowhere until it is rebound.
    :ivar owner: the account whose agents alone use the credential, or None if it is shared.
    """

    name: str
    kind: str
    service: str
    identity: str
    connector: str
    created_at: datetime
    revision: int = 1
    base_url: str | None = None
    account: str | None = None
    scope: Scope | None = None
    owner: Owner | None = None

    def serves(self, owner: Owner | None) -> bool:
        """Return whether runs of this owner may use the credential.

        :param owner: the owner of a run, or None for the operator.
        """
        return self.owner is None or (owner is not None and owner.account == self.owner.account)

    @property
    def address_problem(self) -> str | None:
        """The requirement that the base URL violates, so that the credential never opens, or None if it is valid."""
        return None if self.base_url is None else base_url_problem(self.base_url)


class KeySourceKind(StrEnum):
    """The kinds of key sources.

    C{SYSTEMD}: a credential that systemd decrypts for the daemon's unit.  C{SECURITY_KEY}: a FIDO2 security key that a
    person touches.  C{TRANSIT}: a secret that the transit engine of HashiCorp Vault or OpenBao decrypts.
    C{EXTERNAL}: a source of another package.
    """

    SYSTEMD = "systemd"
    SECURITY_KEY = "security_key"
    TRANSIT = "transit"
    EXTERNAL = "external"


@frozen
class SecurityKey:
    """The public parts of a credential on a FIDO2 security key, from which the key computes a secret (ADR 90).

    :ivar credential_id: the ID that the security key gave to the credential, 1 to 1023 bytes.
    :ivar salt: the random input of the security key's C{hmac-secret} (CTAP 2.1, section 12.5), 32 bytes.
    :ivar verified: whether the security key verifies the person, by PIN or fingerprint, before it computes the secret.
    :raises ValueError: if the credential ID or the salt has another length.
    """

    credential_id: bytes
    salt: bytes
    verified: bool

    def __attrs_post_init__(self) -> None:
        if not 1 <= len(self.credential_id) <= _MOST_CREDENTIAL_ID_BYTES or len(self.salt) != _SALT_BYTES:
            raise ValueError("the credential of a security key has another length")


_MOST_CREDENTIAL_ID_BYTES, _SALT_BYTES = 1023, 32
_MOST_SETTINGS, _MOST_SETTING_CHARACTERS = 24, 2048


@frozen
class KeySource:
    """A source that unlocks the vault without a passphrase.

    :ivar public_key: the X25519 public key to which the vault's key is encrypted, in hexadecimal. The private key is
        outside of the home.
    :ivar security_key: the credential from which the private key is derived, or None for other kinds.
    :ivar settings: the settings by which a source of the kinds C{TRANSIT} and C{EXTERNAL} is asked. None is secret.
    :raises ValueError: if only one of C{kind} and C{security_key} stands for a security key, or there are settings of
        another kind, too many or too long ones.
    """

    id: str
    kind: KeySourceKind
    name: str
    public_key: str
    made_at: datetime
    security_key: SecurityKey | None = None
    settings: Mapping[str, str] = field(factory=dict, hash=False)

    def __attrs_post_init__(self) -> None:
        if (self.kind is KeySourceKind.SECURITY_KEY) != (self.security_key is not None):
            raise ValueError("the kind of a key source does not match its parts")
        if self.settings and self.kind not in (KeySourceKind.TRANSIT, KeySourceKind.EXTERNAL):
            raise ValueError("a key source of this kind has no settings")
        lengths = [len(text) for setting in self.settings.items() for text in setting]
        if len(self.settings) > _MOST_SETTINGS or max(lengths, default=0) > _MOST_SETTING_CHARACTERS:
            raise ValueError("a key source has too many settings, or too long ones")


@frozen
class NewBinding:
    """The request of C{binding setup}. The secret is passed only here and is not in the repr.

    :ivar scope: the scope shown to the operator. If None, the credential opens nowhere until it is rebound.
    :ivar owner: the account whose agents alone use the credential, or None if it is shared.
    """

    kind: str
    service: str
    identity: str
    connector: str
    secret: bytes = field(repr=False)
    base_url: str | None = None
    account: str | None = None
    scope: Scope | None = None
    owner: Owner | None = None


@frozen
class BindingFlag:
    """A warning that is stored for one revision of a binding, such as that a response contained its secret.

    :ivar reason: the reason, as a sentence for people.
    """

    binding: str
    revision: int
    since: datetime
    reason: str


@frozen
class Authorization:
    """The decrypted parts that a credential adds to one request. They are sent only to the service.

    :ivar headers: the names and values of headers.
    :ivar query: the query parameters, not encoded.
    :ivar prefix: the encoded text between the host and the path.
    :ivar private_key: the key for SSH logins, in OpenSSH's format. HTTP connectors ignore it.
    :ivar secrets: every secret in these parts, so that they can be found in responses.
    """

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    prefix: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


class CredentialStatus(StrEnum):
    """The status of a credential.

    C{NEEDS_YOU}: only a person can renew it.  C{LOCKED}: it is unknown while the vault is locked.
    C{REVOKED}: it was removed.
    """

    READY = "ready"
    EXPIRES = "expires"
    NEEDS_YOU = "needs_you"
    LOCKED = "locked"
    REVOKED = "revoked"


@frozen
class CredentialState:
    """The state of a credential: whether it can be used, and why not.

    :ivar expires_at: when the access token expires. It is renewed before, unless a person is needed.
    :ivar reason: the reason why a person is needed, as a sentence. If the credential can be used but lacks a
        permission, a sentence that names the permission.
    :ivar surplus: the permissions beyond what is needed, as a sentence.
    :ivar wanted: the scopes to request at the next sign-in, or empty for those of the first sign-in.
    :ivar issuer: the authorization server of the sign-in, or None if the connector file names its endpoints.
    :ivar token_url: the URL for renewal, or None if the credential is not renewed or the URL is unknown.
    """

    status: CredentialStatus
    expires_at: datetime | None = None
    reason: str | None = None
    surplus: str | None = None
    wanted: tuple[str, ...] = ()
    issuer: str | None = None
    token_url: str | None = None


_OPTIONAL = Member(optional=True)
differ(CredentialState, wanted=_OPTIONAL, issuer=_OPTIONAL, token_url=_OPTIONAL)
differ(Scope, settings=_OPTIONAL)
differ(KeySource, security_key=OMITTED, settings=OMITTED)
differ(Binding, owner=_OPTIONAL)
