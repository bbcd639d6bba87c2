"""Which calls go through one's collaborators' collaborators."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ._source import Source

_MOST_DOTS = 2

ALLOWED_CHAINS = frozenset(
    {
        "self._access.tunnels",
        "self._app.input",
        "self._app.output",
        "self._client.transport",
        "self._home.actions",
        "self._listing.link",
        "self._loaded.candidates",
        "self._loaded.connectors",
        "self._login.private_key",
        "self._login.user",
        "self._opening.lines",
        "self._parts.connectors",
        "self._parts.features",
        "self._parts.leases",
        "self._parts.runner",
        "self._parts.runner.decisions",
        "self._parts.runner.submission",
        "self._parts.store",
        "self._parts.store.audit",
        "self._parts.vault",
        "self._renewals.doubts",
        "self._renewals.refusals",
        "self._round.held",
        "self._round.notes",
        "self._round.parts",
        "self._round.texts",
        "self._service.clock",
        "self._service.open",
        "self._thread.bridge",
        "self._upstream.transport",
        "self._writer.committed",
        "self.api.base.url",
        "self.arguments.constant",
        "self.bench.clock",
        "self.bench.double",
        "self.bench.home.root",
        "self.bench.loop",
        "self.bench.network",
        "self.calls.daemon",
        "self.calls.withdrawals",
        "self.case.sample",
        "self.channel.relay",
        "self.channel.transport",
        "self.client.settings",
        "self.client.transport",
        "self.connector.clock",
        "self.connector.sessions",
        "self.connector.spec.operations",
        "self.connector.transport",
        "self.copy.git",
        "self.copy.snapshot.head",
        "self.copy.snapshot.refs",
        "self.credential.settings",
        "self.deps.features",
        "self.description.operations",
        "self.document.root",
        "self.handler.requests",
        "self.known.arguments",
        "self.local.environment",
        "self.local.package",
        "self.schema.type_map",
        "self.server.middleware",
        "self.server.room",
        "self.server.room.messages",
        "self.settings.environment",
        "self.shape.fields",
        "self.shapes.by_name",
        "self.site.limiter",
        "self.site.reactor",
        "self.site.rules",
        "self.site.taker",
        "self.site.turns",
        "self.spec.description",
        "self.spec.operations",
        "self.terms.client",
        "self.terms.client.transport",
        "self.transport.peerExtensions",
    }
)
"""The chains that still stand somewhere outside the runner: the list only shrinks."""


def long_chains(source: Source) -> Iterator[str]:
    """Find calls such as ``self._gate.requests.refresh()``: an object talks to the collaborators that it owns."""
    for line, chain in _chains(source):
        if source.name.startswith("aileron.runner.") or chain not in ALLOWED_CHAINS:
            yield f"{source.name}:{line} calls through {chain}: give the object a method, or its own collaborator"


def needless_chains(sources: Iterable[Source]) -> set[str]:
    """Find chains that are still allowed and stand nowhere any more."""
    return set(ALLOWED_CHAINS - {chain for source in sources for _, chain in _chains(source)})


def _chains(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            chain = _names(node.func.value)
            if chain.startswith("self.") and chain.count(".") >= _MOST_DOTS:
                yield node.lineno, chain


def _names(node: ast.expr) -> str:
    """Return a chain of names as it is written, or an empty text if it is anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""
