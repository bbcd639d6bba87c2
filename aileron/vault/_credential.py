"""A bound credential: authorizes requests with the stored secret and renews it when due."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from attrs import field, frozen
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import JSON, digest_of_bytes, utc
from aileron.base.waiting import uncancelled
from aileron.credentials import KINDS, CredentialKind, CredentialUse, NeedsYou, TokenExchange, no_exchange
from aileron.model.connectors import Request
from aileron.model.errors import AileronError, BindingFailed, CredentialNeedsYou, NetworkError, VaultDamaged
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization, Binding, Scope

from ._cipher import DataKey
from ._format import VaultDocument, VaultEntry
from ._names import check_address, check_scope, check_secret, check_target, refuse_use
from ._sealing import unseal_entry, with_secret
from ._shared_renewal import SecretReplaced, SharedRenewal, Sharing
from ._vault_file import OpenVault

_MOST_TRIES = 5
_CERTAIN_AFTER = 3
"""The number of consecutive refusals of one operation after which the credential is blamed."""

_T = TypeVar("_T")
_Work = Callable[[CredentialKind, CredentialUse], Coroutine[Any, Any, _T]]


@frozen(eq=False)
class Renewals:
    """The dependencies of all renewals of credentials, and what was learned from refusals.

    :ivar exchange: sends requests to token endpoints.
    :ivar needs_you: called when a credential begins to need a person, with the reason.
    :ivar refusals: by binding, the digest of a secret that a service refused and that cannot be renewed. In memory
        only: a restarted daemon tries the secret again.
    :ivar doubts: by binding, the consecutive refusals of a service: the digest of the secrets sent, and the operation
        of each refusal. In memory only.
    """

    exchange: TokenExchange = no_exchange
    needs_you: Callable[[Binding, str], None] = lambda binding, reason: None
    refusals: dict[str, str] = field(factory=dict, repr=False)
    doubts: dict[str, tuple[str, tuple[str, ...]]] = field(factory=dict, repr=False)

    def is_certain(self, binding: Binding, sent: Authorization, operation: str) -> bool:
        """Record a refusal, and return True if the credential is certainly the cause.

        It is if equal secrets were refused for different operations, or several times in a row.

        :param operation: the refused operation, or empty if the credential is known to be the cause.
        """
        digest = digest_of_bytes("\0".join(sent.secrets).encode())
        of, before = self.doubts.get(binding.name, (digest, ()))
        refused = (*(before if of == digest else ()), operation)[-_CERTAIN_AFTER:]
        self.doubts[binding.name] = (digest, refused)
        return not operation or len({*refused}) > 1 or len(refused) == _CERTAIN_AFTER

    def find_refusal(self, binding: Binding, kept: bytes) -> str | None:
        """Return the reason why a secret is useless, or None if no service refused exactly this secret."""
        if self.refusals.get(binding.name) != digest_of_bytes(kept):
            return None
        return f"The service does not accept it. Enter another: aileron credential replace {binding.name}"


@implementer(ICredential)
@frozen
class Credential:
    """The credential of one binding, without the secret itself.  Two objects for equal bindings are equal.

    :param turn: the lock that serializes uses of the binding, so that an expiring credential is renewed once.
    :param sharing: what else a renewal needs if several daemons share the vault, or None.
    """

    _file: OpenVault = field(repr=False, eq=False)
    _binding: Binding
    _scope: Scope = field(repr=False)
    _turn: DeferredLock = field(repr=False, eq=False)
    _clock: IReactorTime = field(repr=False, eq=False)
    _renewals: Renewals = field(repr=False, eq=False)
    _sharing: Sharing | None = field(repr=False, eq=False)

    async def reveal(self) -> bytes:
        return await self._in_turn(lambda kind, use: kind.reveal(use))

    async def authorize(self, request: Request) -> Authorization:
        check_address(self._binding)
        check_target(self._binding, self._scope, request.url)
        return await self._in_turn(lambda kind, use: kind.authorize(use, request))

    async def make_ready(self) -> None:
        await self._in_turn(lambda kind, use: kind.make_ready(use))

    async def refused(self, sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        is_certain = bool(challenge) or self._renewals.is_certain(self._binding, sent, operation)

        async def note(kind: CredentialKind, use: CredentialUse) -> bool:
            if not kind.exchanges and not challenge and is_certain:
                self._note_refusal(use.kept, sent)
            use.is_certain = is_certain
            return kind.refused(use, sent, challenge)

        try:
            return await self._in_turn(note, changes=True)
        except AileronError:  # if it cannot be recorded, the next use is refused too
            return False

    def accepted(self, sent: Authorization) -> None:
        self._renewals.doubts.pop(self._binding.name, None)

    async def _in_turn(self, work: _Work[_T], *, changes: bool = False) -> _T:
        """Run C{work} when no other use of the binding is in progress, and return its result.

        Cancelling stops the wait but not a renewal.

        :param changes: whether C{work} may change the stored secret without an exchange.
        """
        sharing = self._sharing
        use = partial(self._use, work) if sharing is None else partial(self._use_shared, work, sharing, changes)
        doing: Deferred[_T] = self._turn.run(lambda: Deferred.fromCoroutine(use()))
        return await uncancelled(doing)

    async def _use_shared(self, work: _Work[_T], sharing: Sharing, changes: bool) -> _T:
        """Run C{work}. If another daemon renews the secret meanwhile, run it again with the renewed one.

        :raises NetworkError: if other daemons renew it again and again.
        """
        name = f"{self._file.verified.vault}/{self._binding.name}"
        for _ in range(_MOST_TRIES):
            is_replaced = partial(self._is_replaced, self._find_kept())
            renewal = SharedRenewal(sharing, name, is_replaced, self._renewals.exchange, self._clock)
            try:
                if changes and KINDS[self._binding.kind].exchanges:
                    await renewal.begin()
                return await self._use(work, renewal)
            except SecretReplaced:
                continue
            finally:
                await renewal.end()
        raise NetworkError("Other daemons renewed the credential meanwhile.")

    async def _use(self, work: _Work[_T], renewal: SharedRenewal | None = None) -> _T:
        kind, kept = KINDS[self._binding.kind], self._find_kept()
        exchange = self._renewals.exchange if renewal is None else renewal.exchange
        use = CredentialUse(self._scope, kept, partial(self._keep, kept), self._now, exchange)
        refusal = self._renewals.find_refusal(self._binding, kept)
        if refusal is not None:
            raise self._needs_you(refusal)
        try:
            return await work(kind, use)
        except NeedsYou as needs:
            if needs.is_new:
                self._renewals.needs_you(self._binding, needs.reason)
            raise self._needs_you(needs.reason) from None

    def _needs_you(self, reason: str) -> BindingFailed:
        return self._failure(f"needs your attention. {reason}", CredentialNeedsYou, reason=reason)

    def _note_refusal(self, kept: bytes, sent: Authorization) -> None:
        """If the secret sent is still the stored one, record that only a new secret helps. Otherwise, do nothing.

        :raises NeedsYou: if the stored secret was refused, and a person must enter another.
        """
        text = kept.decode("utf-8", "replace")
        if any(each and each in text for each in sent.secrets):
            self._renewals.refusals[self._binding.name] = digest_of_bytes(kept)
            raise NeedsYou(self._renewals.find_refusal(self._binding, kept) or "")

    def _now(self) -> datetime:
        return utc(self._clock.seconds())

    def _find_kept(self) -> bytes:
        key, document, entry = self._entry()
        check_address(self._binding)
        check_scope(self._binding, self._scope)
        try:
            return unseal_entry(document, key, entry)
        except VaultDamaged as error:
            raise self._failure("does not open: its entry was altered.") from error

    def _is_replaced(self, kept: bytes) -> bool:
        return self._find_kept() != kept

    def _keep(self, before: bytes, renewed: bytes) -> None:
        """Replace the secret C{before} by C{renewed}.  The binding is unchanged, so approvals for it stay valid.

        :raises BindingFailed: if the binding was changed or a person stored another secret meanwhile. Nothing changes.
        :raises InvalidRequest: if C{renewed} is no secret of this kind.
        :raises VaultLocked, VaultDamaged, StoreUnavailable: if the vault cannot be read or written.
        """
        key, document, entry = self._entry()
        if unseal_entry(document, key, entry) != before:
            raise self._failure("was given another secret meanwhile.")
        check_secret(self._binding.kind, renewed)
        self._file.write(with_secret(document, key, entry.binding, renewed))

    def _entry(self) -> tuple[DataKey, VaultDocument, VaultEntry]:
        key, document = self._file.opened()
        entry = document.find(self._binding.name)
        if entry is None or entry.binding != self._binding:
            raise self._failure("is gone or was changed.")
        return key, document, entry

    def _failure(self, how: str, error: type[BindingFailed] = BindingFailed, **more: JSON) -> BindingFailed:
        return refuse_use(self._binding, f"The binding {self._binding.name} {how}", error=error, **more)
