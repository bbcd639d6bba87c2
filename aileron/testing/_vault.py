"""A vault, bindings and logins in memory, for tests of the runner and the API."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

import attrs
from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from zope.interface import implementer

from aileron.base.waiting import Waiting
from aileron.credentials import KINDS, place
from aileron.model.connectors import Request
from aileron.model.errors import BindingFailed, Conflict, CredentialNeedsYou, NotFound, StoreUnavailable, VaultLocked
from aileron.model.interfaces.vault import IBindings, ICredential, IVault
from aileron.model.sessions import OperatorSession
from aileron.model.vault import Authorization, Binding, CredentialState, CredentialStatus, NewBinding, Scope, VaultState
from aileron.vault import (
    LoginExchange,
    Operators,
    binding_of,
    check_address,
    check_binding,
    check_scope,
    check_secret,
    check_target,
    client_proof,
)

from ._browser import SigningBrowser

_CREATED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@implementer(IVault)
class MemoryVault:
    """An L{IVault} in memory. It stays in its initial state until it is locked."""

    def __init__(self, state: VaultState = VaultState.UNLOCKED) -> None:
        self._state = state
        self._ever_unlocked = state is VaultState.UNLOCKED
        self._waiting = Waiting()

    def state(self) -> VaultState:
        return self._state

    def ever_unlocked(self) -> bool:
        return self._ever_unlocked

    def lock(self) -> None:
        if self._state is VaultState.UNLOCKED:
            self._state = VaultState.LOCKED
            self._waiting.fire()

    def locked(self) -> Deferred[None]:
        return self._waiting.wait(over=self._state is not VaultState.UNLOCKED)

    def operator_key(self) -> bytes:
        """Return the operator's key, which is the same in all vaults of this class."""
        self.check()
        return b"memory".ljust(32)

    def check(self) -> None:
        """Raise L{VaultLocked} unless the vault is unlocked."""
        if self._state is not VaultState.UNLOCKED:
            raise VaultLocked("The vault is not unlocked.", {"state": self._state.value})


class KeptInMemory:
    """The base of objects that store a vault's contents in memory.

    :param vault: the vault whose state applies, by default an unlocked one.
    :ivar full: set to make every change fail as on a full disk.
    """

    def __init__(self, vault: MemoryVault | None = None) -> None:
        self._vault = MemoryVault() if vault is None else vault
        self.full = False

    def check_writable(self) -> None:
        """Check that a change can be stored.

        :raises VaultLocked: if the vault is locked.
        :raises StoreUnavailable: if the simulated disk is full.
        """
        self._vault.check()
        if self.full:
            raise StoreUnavailable("The vault could not be written.")


@implementer(IBindings)
class MemoryBindings:
    """Bindings in memory.

    :param vault: the vault whose state applies.
    :ivar needing: by name of the binding, the reason why it needs a person.
    """

    def __init__(self, vault: MemoryVault | None = None) -> None:
        self._vault = MemoryVault() if vault is None else vault
        self._kept: dict[str, tuple[Binding, bytes]] = {}
        self._revisions = itertools.count(1)
        self._changes = 0
        self.needing: dict[str, str] = {}

    def list(self) -> tuple[Binding, ...]:
        return tuple(self._kept[name][0] for name in sorted(self._kept))

    def get(self, name: str) -> Binding | None:
        return self._kept[name][0] if name in self._kept else None

    def for_connector(self, fqn: str) -> tuple[Binding, ...]:
        return tuple(binding for binding in self.list() if binding.connector == fqn)

    def add(self, new: NewBinding) -> Binding:
        """Add a binding synchronously, for the setup of a test.

        :raises VaultLocked: if the vault is locked.
        :raises Conflict: if there is a binding with this name.
        :raises InvalidRequest: if a part of the binding is malformed.
        """
        self._vault.check()
        binding = binding_of(new, _CREATED_AT, next(self._revisions))
        if binding.name in self._kept:
            raise Conflict("There is a binding of that name already.", {"binding": binding.name})
        self._kept[binding.name] = (binding, new.secret)
        self._changes += 1
        return binding

    async def set_up(self, new: NewBinding) -> Binding:
        return self.add(new)

    async def replace(self, name: str, secret: bytes) -> Binding:
        self._vault.check()
        binding = self._find(name)
        check_secret(binding.kind, secret)
        self._kept[name] = (binding, secret)
        self.needing.pop(name, None)
        self._changes += 1
        return binding

    def credential_state(self, binding: Binding, needed: Sequence[str] | None = None) -> CredentialState:
        if self._vault.state() is not VaultState.UNLOCKED:
            return CredentialState(CredentialStatus.LOCKED)
        if binding.name not in self._kept:
            return CredentialState(CredentialStatus.REVOKED)
        reason = self.needing.get(binding.name)
        if reason is not None or needed is None:
            return CredentialState(CredentialStatus.NEEDS_YOU if reason else CredentialStatus.READY, reason=reason)
        kind, kept = KINDS[binding.kind], self._kept[binding.name][1]
        limit, surplus = kind.limit(kept, needed), kind.surplus(kept, needed)
        return CredentialState(CredentialStatus.READY, reason=limit, surplus=surplus)

    def bindings_generation(self) -> int:
        return self._changes

    def _find(self, name: str) -> Binding:
        if name not in self._kept:
            raise NotFound("There is no such binding.")
        return self._kept[name][0]

    async def revoke(self, name: str) -> Binding:
        self._vault.check()
        self._find(name)
        self._changes += 1
        return self._kept.pop(name)[0]

    async def rebind(self, name: str, scope: Scope, base_url: str | None = None) -> Binding:
        self._vault.check()
        self._find(name)
        kept, secret = self._kept[name]
        binding = attrs.evolve(kept, scope=scope, base_url=base_url, revision=next(self._revisions))
        check_binding(binding)
        self._kept[name] = (binding, secret)
        self._changes += 1
        return binding

    def credential(self, binding: Binding, scope: Scope) -> ICredential:
        return _KeptCredential(self, binding, scope)

    def secret_of(self, binding: Binding, scope: Scope) -> bytes:
        """Return the secret of exactly this binding, if it was encrypted for this scope.

        :raises VaultLocked: if the vault is locked.
        :raises BindingFailed: if the binding or the scope differs.
        :raises CredentialNeedsYou: if the binding needs a person.
        """
        self._vault.check()
        kept, secret = self._kept.get(binding.name, (None, b""))
        if kept != binding:
            raise BindingFailed("The binding is gone or was changed.", {"binding": binding.name})
        check_address(binding)
        check_scope(binding, scope)
        if binding.name in self.needing:
            raise CredentialNeedsYou(
                f"The binding {binding.name} needs your attention.", {"reason": self.needing[binding.name]}
            )
        return secret


@implementer(ICredential)
@define
class _KeptCredential:
    _bindings: MemoryBindings = field(eq=False)
    _binding: Binding
    _scope: Scope

    async def reveal(self) -> bytes:
        return self._bindings.secret_of(self._binding, self._scope)

    async def authorize(self, request: Request) -> Authorization:
        check_target(self._binding, self._scope, request.url)
        return place((await self.reveal()).decode("ascii"), self._scope)

    async def make_ready(self) -> None:
        await self.reveal()

    async def refused(self, sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        return False

    def accepted(self, sent: Authorization) -> None:
        """Do nothing: this fake does not record whether the service accepted the credential."""


class MemoryOperators(Operators):
    """The real class for logins, with a vault in memory and with shortcuts for the setup of a test."""

    ADDRESS = "http://localhost:7001"
    INSTANCE = "memory"
    CLIENT_NONCE = "A" * 43

    def __init__(self, vault: MemoryVault | None = None, clock: IReactorTime | None = None) -> None:
        self._memory_vault = MemoryVault() if vault is None else vault
        self.ticking = ticking = Clock() if clock is None else clock
        super().__init__(self._memory_vault, self.INSTANCE, lambda: (self.ADDRESS,), ticking)

    def prove(self, daemon_nonce: str, client_nonce: str = CLIENT_NONCE, public_key: str = "") -> str:
        """Return the proof by which a client shows the daemon that it has the operator's key.

        :param daemon_nonce: the daemon's nonce, which the proof covers.
        :param public_key: the key with which the client signs decisions, which the proof covers too, or empty.
        """
        exchange = LoginExchange(client_nonce, daemon_nonce, self.INSTANCE, self.ADDRESS, public_key)
        return client_proof(self._memory_vault.operator_key(), exchange)

    def log_in(self) -> tuple[str, OperatorSession]:
        """Log in and return the token and session."""
        nonce, _proof = self.challenge(self.CLIENT_NONCE, self.ADDRESS)
        return self.login(nonce, self.prove(nonce))

    def open_browser(self) -> tuple[SigningBrowser, OperatorSession]:
        """Return a logged-in browser and its session.

        :raises Unauthorized, Conflict, Forbidden: if the hand-over fails.
        """
        token, _session = self.log_in()
        browser = self.waiting_browser(self.hand_over(token))
        return browser, self.confirm(token, self.words_of(browser))

    def waiting_browser(self, code: str) -> SigningBrowser:
        """Return a browser that has used this login code and registered its key, but is not confirmed yet."""
        cookie, page_key, _maker = self.redeem(code)
        browser = SigningBrowser.generate(cookie, self.ticking.seconds)
        return browser.with_instance(self.register(cookie, page_key, browser.public_key))

    def words_of(self, browser: SigningBrowser) -> str:
        """Return the words on the page of a browser, or an empty string if there are none."""
        entering = self.entering(browser.sign_request("GET", "/handover/state"))
        return "" if entering is None else entering.words
