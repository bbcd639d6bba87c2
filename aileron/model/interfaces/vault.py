"""The vault's state, and which of its credentials is bound to which connector."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred
from zope.interface import Interface

from aileron.model.connectors import Request
from aileron.model.vault import Authorization, Binding, CredentialState, NewBinding, Scope, VaultState


class IVault(Interface):
    """The encrypted file's state.  The key is in memory only while unlocked."""

    def state() -> VaultState:
        """Return the state now."""

    def ever_unlocked() -> bool:
        """Tell whether it was unlocked at any time in this life of the daemon."""

    def lock() -> None:
        """Forget the key and end every operator session.

        Twice is safe.  The caller has waited for running effects.
        """

    def locked() -> Deferred[None]:
        """Fire when the vault becomes locked. Each caller has its own."""


class ICredential(Interface):
    """A bound credential that is not open.  Rooms above the connectors pass it on and open it by no method.

    A kind of credential that runs out is renewed by each method that says so, once for all who wait, and what came of
    it is kept before it is used.  Cancelling ends the wait, and not the renewal.  Two are equal if they are of the same
    revision of the same binding, and of the same scope.
    """

    async def authorize(request: Request) -> Authorization:
        """Open it for C{request}, which is about to leave: what it is sent with.  Renews.

        :raises VaultLocked: the vault was locked meanwhile.
        :raises BindingFailed: the entry is gone, changed, or does not open.
        :raises CredentialNeedsYou: it opens only after a person has renewed it.
        :raises NetworkError: it is to be renewed, which did not work this time.
        """

    async def reveal() -> bytes:
        """Open it: what stands for C{{key}} in its header, asked for anew at each use.  Renews.

        Of a kind that signs requests there is no such thing: C{BindingFailed}.  Raises as L{authorize}.
        """

    async def make_ready() -> None:
        """Renew it, if that is due, and open it for nothing; raises as L{authorize}."""

    async def refused(sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        """Note that the service refused C{sent} with a 401: what runs out is renewed at its next use.

        If nothing renews the credential, a person is told as soon as it is certain that the service refuses it, and not
        only what it was sent for: a second operation is refused as well, or this one for the third time, and nothing
        is accepted between.

        :param challenge: C{WWW-Authenticate} of a 403 instead: where it wants more scopes, a person has to sign in.
        :param operation: what was refused, if the service may have refused this alone; empty: it is certain.
        :return: whether the next use sends something else, so that the same request may succeed.
        """

    def accepted(sent: Authorization) -> None:
        """Note that the service did what C{sent} was sent for: an earlier refusal was of one operation alone."""


class IBindings(Interface):
    """The bindings of credentials to connectors."""

    def list() -> tuple[Binding, ...]:
        """All, by name.  Works while locked."""

    def get(name: str) -> Binding | None:
        """One, or L{None}."""

    def for_connector(fqn: str) -> tuple[Binding, ...]:
        """All of one connector."""

    async def set_up(new: NewBinding) -> Binding:
        """Keep a credential, encrypted, durably.

        :raises VaultLocked: the vault is not unlocked.
        :raises Conflict: there is a binding of that name.
        :raises InvalidRequest: a malformed name, base URL or secret.
        """

    async def replace(name: str, secret: bytes) -> Binding:
        """Keep another secret in the same binding, durably; what was approved with it holds.

        :raises NotFound: there is no such binding.
        :raises VaultLocked: the vault is not unlocked.
        :raises InvalidRequest: a malformed secret.
        """

    def credential_state(binding: Binding, needed: Sequence[str] | None = None) -> CredentialState:
        """Tell whether its credential can be used; works while locked, but is not known then.

        :param needed: the scopes that it is needed for; L{None}: those that it was sealed for.
        """

    def bindings_generation() -> int:
        """Return a number that grows whenever a binding or its secret is set up, replaced, rebound or revoked."""

    async def revoke(name: str) -> Binding:
        """Remove a binding and its secret; the binding as it was.

        :raises NotFound: there is none.
        :raises VaultLocked: the vault is not unlocked.
        """

    async def rebind(name: str, scope: Scope, base_url: str | None = None) -> Binding:
        """Seal the credential anew for C{scope}; the binding as it is now, with another revision.

        :param base_url: for this binding from now on; L{None}: the connector's own.
        :raises NotFound: there is no such binding.
        :raises InvalidRequest: a malformed base URL or scope.
        :raises VaultLocked: the vault is not unlocked.
        """

    def credential(binding: Binding, scope: Scope) -> ICredential:
        """Return the credential of exactly this revision of this binding, not yet open.

        It opens only where C{scope}, which is the one in force now, is the one that it was sealed for.
        """
