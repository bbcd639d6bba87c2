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
        """Return the current state."""

    def ever_unlocked() -> bool:
        """Return whether the vault was unlocked at any time in this process."""

    def lock() -> None:
        """Delete the key from memory and end every operator session.

        Idempotent. The caller must first wait for running effects.
        """

    def locked() -> Deferred[None]:
        """Return a new Deferred that fires when the vault is locked."""


class ICredential(Interface):
    """A bound credential that is not decrypted. Rooms above the connectors pass it on and never open it.

    If a credential of its kind expires, the methods marked "renews" renew it, once for all waiting callers, and the
    new one is stored before it is used. Cancelling ends the wait, but not the renewal. Two credentials are equal if
    they belong to the same revision of a binding and have equal scopes.
    """

    async def authorize(request: Request) -> Authorization:
        """Return what the credential adds to C{request}, which is about to be sent. Renews.

        :raises VaultLocked: the vault was locked meanwhile.
        :raises BindingFailed: the entry is missing, changed or cannot be decrypted.
        :raises CredentialNeedsYou: a person must renew it first.
        :raises NetworkError: it must be renewed, which failed this time.
        """

    async def reveal() -> bytes:
        """Return the value for C{{key}} in its header, at each use again. Renews.

        A kind that signs requests has no such value and raises C{BindingFailed}. Raises as L{authorize} does.
        """

    async def make_ready() -> None:
        """Renew the credential if that is due, and check that it opens. Raises as L{authorize} does."""

    async def refused(sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        """Record that the service refused C{sent} with a 401.

        A credential that can be renewed is renewed at its next use.

        If the credential cannot be renewed, the operator is notified when it is certain that the service refuses the
        credential and not only one operation: a second operation is refused, or this one for the third time, with none
        accepted in between.

        :param challenge: the C{WWW-Authenticate} of a 403. If it requires more scopes, a person must sign in.
        :param operation: the refused operation if only it may be refused, or empty if the refusal is certain.
        :return: True if the next use sends another credential, so that a retry may succeed.
        """

    def accepted(sent: Authorization) -> None:
        """Record that the service accepted C{sent}, so that an earlier refusal concerned only one operation."""


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

        :raises VaultLocked: the vault is not unlocked.
        :raises Conflict: a binding with this name exists.
        :raises InvalidRequest: a name, base URL or secret is malformed.
        """

    async def replace(name: str, secret: bytes) -> Binding:
        """Store a new secret in the binding, durably. Approvals made with the old one stay valid.

        :raises NotFound: there is no such binding.
        :raises VaultLocked: the vault is not unlocked.
        :raises InvalidRequest: the secret is malformed.
        """

    def credential_state(binding: Binding, needed: Sequence[str] | None = None) -> CredentialState:
        """Return whether its credential can be used. While the vault is locked, that is unknown.

        :param needed: the scopes that it is needed for, or None for those that it was sealed for.
        """

    def bindings_generation() -> int:
        """Return a number that grows whenever a binding or its secret is set up, replaced, rebound or revoked."""

    async def revoke(name: str) -> Binding:
        """Remove a binding and its secret, and return the removed binding.

        :raises NotFound: there is no such binding.
        :raises VaultLocked: the vault is not unlocked.
        """

    async def rebind(name: str, scope: Scope, base_url: str | None = None) -> Binding:
        """Seal the credential again for C{scope}, and return the binding with its new revision.

        :param base_url: the new base URL of this binding, or None for the connector's own.
        :raises NotFound: there is no such binding.
        :raises InvalidRequest: the base URL or scope is malformed.
        :raises VaultLocked: the vault is not unlocked.
        """

    def credential(binding: Binding, scope: Scope) -> ICredential:
        """Return the unopened credential of exactly this revision of this binding.

        It opens only if C{scope}, the scope now in force, equals the scope that it was sealed for.
        """
