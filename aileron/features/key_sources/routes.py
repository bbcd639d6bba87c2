"""The routes of key sources, which need a login by a passphrase in a terminal."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import ANY_OBJECT, TEXT, described, list_of, made_of
from aileron.api.shapes.values import to_json
from aileron.base.json import JSON
from aileron.features.feature import RunningFeature
from aileron.model.errors import Forbidden, NotFound
from aileron.model.vault import KeySource

TABLE = EndpointTable()

_PATH = "/v1/vault/key-sources"
_SOURCE = described(KeySource)


class VaultKeySources(Protocol):
    """The key sources of the vault. The methods raise as those of L{aileron.vault.Vault.key_sources} do."""

    def list(self) -> tuple[KeySource, ...]:
        """Return all sources, oldest first."""

    def check(self, given: JSON, proof: str) -> KeySource:
        """Check a source that was made with the vault's key, without storing it, and return it.

        :raises InvalidRequest: if it is malformed.
        :raises Forbidden: if the proof was not made with the vault's key.
        :raises Conflict: if there is such a source already, or there are too many.
        :raises VaultLocked, BindingFailed: if the vault cannot be read.
        """

    def add(self, given: JSON, proof: str) -> KeySource:
        """Store a source that was made with the vault's key, and return it.

        :raises InvalidRequest: if it is malformed.
        :raises Forbidden: if the proof was not made with the vault's key.
        :raises Conflict: if there is such a source already, or there are too many.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault cannot be read or written.
        """

    def remove(self, source_id: str) -> KeySource:
        """Remove a source, and return it.

        :raises NotFound: if there is no such source.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault cannot be written.
        """


@frozen(eq=False)
class RunningKeySources(RunningFeature):
    """The feature of key sources in the running daemon."""

    sources: VaultKeySources

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)


@TABLE.route("GET", _PATH, operators=READERS, answers={200: made_of({"items": list_of(_SOURCE)})})
async def list_key_sources(context: RequestContext, deps: Dependencies) -> Answer:
    """List the sources that unlock the vault beside the passphrase, oldest first."""
    return answer({"items": [to_json(each) for each in _sources(deps).list()]})


@TABLE.route(
    "POST",
    _PATH,
    operators=Who.OPERATOR,
    body=made_of({"entry": ANY_OBJECT, "proof": TEXT}),
    answers={201: _SOURCE},
)
async def add_key_source(context: RequestContext, deps: Dependencies) -> Answer:
    """Add a source that a command made with the vault's key. The entry has the key sealed; the source opens it.

    :raises Forbidden: if the caller is a page, or the proof was not made with the vault's key.
    :raises InvalidRequest: if the entry is malformed.
    :raises Conflict: if there is such a source already, or there are too many.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
    """
    _require_terminal(context)
    given, proof = context.body["entry"], str(context.body["proof"])
    # Recorded first: a daemon that is killed in between has no source that the record does not name.
    await _record(context, deps, "vault.key_source_added", _sources(deps).check(given, proof))
    source = _sources(deps).add(given, proof)
    return answer(to_json(source), 201)


@TABLE.route("DELETE", f"{_PATH}/<source_id>", operators=Who.OPERATOR, answers={200: _SOURCE})
async def remove_key_source(context: RequestContext, deps: Dependencies, source_id: str) -> Answer:
    """Remove a source. Copies of the vault's file that have it still open with it.

    :raises NotFound: if there is no such source.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
    """
    source = _sources(deps).remove(source_id)
    await _record(context, deps, "vault.key_source_removed", source)
    return answer(to_json(source))


async def _record(context: RequestContext, deps: Dependencies, kind: str, source: KeySource) -> None:
    payload: dict[str, JSON] = {"id": source.id, "kind": source.kind.value, "name": source.name}
    await deps.access_log.record(kind, context.caller.actor, payload)


def _sources(deps: Dependencies) -> VaultKeySources:
    found = deps.features.find(RunningKeySources)
    if found is None:
        raise NotFound("This daemon has no key sources.")
    return found.sources


def _require_terminal(context: RequestContext) -> None:
    if context.caller.token is None:
        raise Forbidden("No page may do that: use a terminal.")
