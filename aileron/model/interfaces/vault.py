"""Interfaces of the vault's state and its bindings of credentials to connectors."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred
from zope.interface import Interface

from aileron.model.connectors import Request
from aileron.model.vault import Authorization, Binding, CredentialState, NewBinding, Scope, VaultState


class IVault(Interface):
    """The state of the vault. Its key is in memory only while it is unlocked."""

    def state() -> VaultState:
        """Return whether the vault exists and is locked or unlocked now."""

    def ever_unlocked() -> bool:
        """Return whether the vault was unlocked at any time in this process."""

    def lock() -> None:
        """Delete the key from memory and end every operator session.

        Idempotent. The caller must first wait for running effects.
        """

    def locked() -> Deferred[None]:
        """Return a new Deferred that fires when the vault is locked. If no key is in memory, it has already fired."""


class IKeySource(Interface):
    """A place outside of the home that has the private key of a key source.

    It is a credential of systemd, a security key, which computes the private key when a person touches it, or a service
    that decrypts the secret from which the private key is derived. Other packages can have sources of their own.
    """

    def read() -> bytes | None:
        """Return the private key, 32 bytes, or None if the source is not available in this process.

        None is also returned if the person chose the passphrase instead. Each call may ask the person.

        :raises Forbidden: if other users may have read or written the private key.
        :raises InvalidRequest: if the place has something else, or a security key failed. The message has the reason.
        :raises NetworkError: if the source cannot be asked now. A later call may succeed. The message has the reason.
        :raises VaultDamaged: if the vault's file, which names the credentials of security keys, was altered.
        """


class ICredential(Interface):
    """A bound credential that is not decrypted. The packages above the connectors pass it on and never open it.

    If a credential of its kind expires, the methods marked "renews" renew it, once for all waiting callers, and the new
    one is stored before it is used. Cancelling ends the wait, but not the renewal. Two credentials are equal if they
    belong to the same revision of a binding and have equal scopes.
    """

    async def authorize(request: Request) -> Authorization:
        """Return the parts that the credential adds to C{request}, which is about to be sent. Renews.

        :raises VaultLocked: if the vault was locked meanwhile.
        :raises BindingFailed: if the entry is missing, changed or cannot be decrypted.
        :raises CredentialNeedsYou: if a person must renew the credential first.
        :raises NetworkError: if the credential must be renewed, and the renewal failed this time.
        """

    async def reveal() -> bytes:
        """Return the value for C{{key}} in the credential's header. Call it for each use. Renews.

        A kind that signs requests has no such value.

        :raises VaultLocked: if the vault was locked meanwhile.
        :raises BindingFailed: if the entry is missing, changed, cannot be decrypted, or has no such value.
        :raises CredentialNeedsYou: if a person must renew the credential first.
        :raises NetworkError: if the credential must be renewed, and the renewal failed this time.
        """

    async def make_ready() -> None:
        """Renew the credential if that is due, and check that it can be decrypted.

        :raises VaultLocked: if the vault was locked meanwhile.
        :raises BindingFailed: if the entry is missing, changed or cannot be decrypted.
        :raises CredentialNeedsYou: if a person must renew the credential first.
        :raises NetworkError: if the credential must be renewed, and the renewal failed this time.
        """

    async def refused(sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        """Record that the service refused C{sent} with a 401.

        A credential that can be renewed is renewed at its next use.

        If the credential cannot be renewed, the operator is notified when it is certain that the service refuses the
        credential and not only one operation: a second operation is refused, or this one for the third time, with none
        accepted in between.

        :param challenge: the C{WWW-Authenticate} of a 403. If it requires more scopes, a person must sign in.
        :param operation: the refused operation, if the refusal may concern only this operation, or empty if it concerns
            the credential.
        :return: True if the next use sends another credential, so that a retry may succeed.
        """

    def accepted(sent: Authorization) -> None:
        """Record that the service accepted C{sent}. Earlier refusals then count as refusals of single operations."""


class IBindings(Interface):
    """The bindings of credentials to connectors."""

    def list() -> tuple[Binding, ...]:
        """Return all bindings by name, also while the vault is locked."""

    def get(name: str) -> Binding | None:
        """Return one binding, or None."""

    def for_connector(fqn: str) -> tuple[Binding, ...]:
        """Return all bindings of one connector."""

    async def set_up(new: NewBinding) -> Binding:
        """Store a credential, encrypted and durable.

        :raises VaultLocked: if the vault is not unlocked.
        :raises Conflict: if a binding with this name exists.
        :raises InvalidRequest: if a name, base URL or secret is malformed.
        :raises BindingFailed, StoreUnavailable: if the vault's file was altered, or cannot be written.
        """

    async def replace(name: str, secret: bytes) -> Binding:
        """Store a new secret in the binding, durably. Approvals made with the old one stay valid.

        :raises NotFound: if there is no such binding.
        :raises VaultLocked: if the vault is not unlocked.
        :raises InvalidRequest: if the secret is malformed.
        :raises BindingFailed, StoreUnavailable: if the vault's file was altered, or cannot be written.
        """

    def credential_state(binding: Binding, needed: Sequence[str] | None = None) -> CredentialState:
        """Return the state of the binding's credential. While the vault is locked, the state is unknown.

        :param needed: the scopes that the use needs, or None for the scopes that the credential was encrypted for.
        """

    def bindings_generation() -> int:
        """Return a number that grows whenever a binding or its secret is set up, replaced, rebound or revoked."""

    async def revoke(name: str) -> Binding:
        """Remove a binding and its secret, and return the removed binding.

        :raises NotFound: if there is no such binding.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if the vault's file was altered, or cannot be written.
        """

    async def rebind(name: str, scope: Scope, base_url: str | None = None) -> Binding:
        """Encrypt the credential again for C{scope}, and return the binding with its new revision.

        :param base_url: the new base URL of this binding, or None for the connector's own.
        :raises NotFound: if there is no such binding.
        :raises InvalidRequest: if the base URL or scope is malformed.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if the vault's file was altered, or cannot be written.
        """

    def credential(binding: Binding, scope: Scope) -> ICredential:
        """Return the unopened credential of exactly this revision of this binding.

        It opens only if C{scope}, the scope now in force, equals the scope that it was encrypted for.
        """
