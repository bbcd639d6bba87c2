"""The bindings in the vault's file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from attrs import evolve
from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import utc
from aileron.credentials import KINDS
from aileron.model.errors import Conflict, NotFound, VaultDamaged, VaultLocked
from aileron.model.interfaces.vault import IBindings, ICredential
from aileron.model.vault import Binding, CredentialState, CredentialStatus, NewBinding, Scope

from ._credential import Credential, Renewals
from ._format import VaultDocument, VaultEntry
from ._names import binding_of, check_binding, check_secret
from ._sealing import unseal_entry, with_secret
from ._shared_renewal import Sharing
from ._vault_file import OpenVault


@implementer(IBindings)
class FileBindings:
    """The bindings of a vault.  A mixin of L{Vault}.

    A secret decrypts only if every field of its entry is as it was when the secret was encrypted.
    """

    _file: OpenVault
    _clock: IReactorTime
    _turns: defaultdict[str, DeferredLock]
    _renewals: Renewals
    _sharing: Sharing | None
    _changes: int

    def list(self) -> tuple[Binding, ...]:
        document = self._file.read_unverified()
        return tuple(entry.binding for entry in document.entries) if document else ()

    def get(self, name: str) -> Binding | None:
        return next((binding for binding in self.list() if binding.name == name), None)

    def for_connector(self, fqn: str) -> tuple[Binding, ...]:
        return tuple(binding for binding in self.list() if binding.connector == fqn)

    async def set_up(self, new: NewBinding) -> Binding:
        key, document = self._file.opened()
        binding = binding_of(new, utc(self._clock.seconds()), document.entry_revisions + 1)
        if document.find(binding.name):
            raise Conflict(f"There is a binding {binding.name} already.", {"binding": binding.name})
        return self._write(with_secret(document, key, binding, new.secret), binding)

    async def replace(self, name: str, secret: bytes) -> Binding:
        key, document = self._file.opened()
        binding = _find(document, name).binding
        check_secret(binding.kind, secret)
        return self._write(with_secret(document, key, binding, secret), binding)

    async def revoke(self, name: str) -> Binding:
        document = self._file.current()
        return self._write(document.without(name), _find(document, name).binding)

    async def rebind(self, name: str, scope: Scope, base_url: str | None = None) -> Binding:
        key, document = self._file.opened()
        entry = _find(document, name)
        binding = evolve(entry.binding, scope=scope, base_url=base_url, revision=document.entry_revisions + 1)
        check_binding(binding)
        return self._write(with_secret(document, key, binding, unseal_entry(document, key, entry)), binding)

    def _write(self, changed: VaultDocument, binding: Binding) -> Binding:
        self._file.write(changed)
        self._renewals.refusals.pop(binding.name, None)
        self._changes += 1
        return binding

    async def at_rest(self) -> None:
        """Wait until renewals of credentials in progress are stored. A lost one may be a credential's last token."""
        for turn in tuple(self._turns.values()):
            await turn.run(lambda: None)

    def bindings_generation(self) -> int:
        return self._changes + self._file.others_bindings

    def credential_state(self, binding: Binding, needed: Sequence[str] | None = None) -> CredentialState:
        try:
            key, document = self._file.opened()
        except VaultLocked:
            return CredentialState(CredentialStatus.LOCKED)
        entry = document.find(binding.name)
        if entry is None:
            return CredentialState(CredentialStatus.REVOKED)
        try:
            kind, kept = KINDS[binding.kind], unseal_entry(document, key, entry)
        except VaultDamaged:
            return CredentialState(CredentialStatus.NEEDS_YOU, reason="Its entry in the vault was altered.")
        state, refusal = kind.state(kept, utc(self._clock.seconds())), self._renewals.find_refusal(binding, kept)
        if refusal is not None:
            return evolve(state, status=CredentialStatus.NEEDS_YOU, reason=refusal)
        if state.reason is not None or binding.scope is None:
            return state
        scopes = binding.scope.settings.get("scopes", "").split() if needed is None else needed
        surplus = None if needed is None else kind.surplus(kept, scopes)
        return evolve(state, reason=kind.limit(kept, scopes), surplus=surplus)

    def credential(self, binding: Binding, scope: Scope) -> ICredential:
        return Credential(
            self._file, binding, scope, self._turns[binding.name], self._clock, self._renewals, self._sharing
        )


def _find(document: VaultDocument, name: str) -> VaultEntry:
    entry = document.find(name)
    if entry is None:
        raise NotFound("There is no such binding.")
    return entry
