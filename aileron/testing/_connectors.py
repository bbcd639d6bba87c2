"""Connectors in memory: one with scripted results, and a registry of given connectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Overdue
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from zope.interface import implementer

from aileron.base.addresses import read_origin
from aileron.base.json import JSON, canonical, digest
from aileron.base.load_error import LoadError
from aileron.model.connectors import (
    READ,
    WRITE,
    ConnectorDescription,
    CredentialNeed,
    Finding,
    Operation,
    Outcome,
    Request,
    Sought,
)
from aileron.model.errors import CapabilityDenied, ResourceLimitExceeded
from aileron.model.interfaces.connectors import IConnector, IConnectors, IInputNormalizer
from aileron.model.interfaces.vault import ICredential
from aileron.model.trust import Candidate, TrustKind

EFFECT_HEADER = "Idempotency-Key"
"""The header with the effect key of L{ScriptedConnector}."""

READS = Operation("look", READ, idempotent=True)
WRITES = Operation("post", WRITE, idempotent=False)
REPEATS = Operation("put", WRITE, idempotent=True)
FINDABLE = Operation("send", WRITE, idempotent=False, reconcilable=True)


def scripted_description(
    *operations: Operation, fqn: str = "local://test/scripted", credential: CredentialNeed | None = None
) -> ConnectorDescription:
    """Return the description of a connector with these operations, by default one read and three writes."""
    return ConnectorDescription(
        name=fqn,
        version="1.0.0",
        content_hash=digest(fqn),
        base_url="https://scripted.invalid",
        bindable=False,
        hosts=("scripted.invalid:443",),
        operations={each.name: each for each in operations or (READS, WRITES, REPEATS, FINDABLE)},
        credential=credential,
    )


@frozen
class Sending:
    """A request that reached a L{ScriptedConnector}, and its secret.

    :ivar method: the called method, C{read} or C{invoke}.
    """

    method: str
    request: Request
    secret: bytes | None = field(repr=False)
    seconds: float
    late_seconds: float = 0.0

    @property
    def effect_key(self) -> str:
        """The effect key of the request."""
        return dict(self.request.headers)[EFFECT_HEADER]


Answer = Outcome | Deferred[Outcome] | Exception
"""An entry of a script: an outcome, a Deferred that the test fires, or an exception to raise."""

Found = Finding | Deferred[Finding] | Exception
"""An entry of C{findings}: a finding, a Deferred that the test fires, or an exception to raise."""


@implementer(IConnector, IInputNormalizer)
@define
class ScriptedConnector:
    """A connector that returns one entry of its script per request, then C{usual}, and records all requests.

    :ivar clock: the clock for timeouts.
    :ivar script: the results. May be extended at any time.
    :ivar sendings: all requests sent, in order.
    :ivar findings: the results of searches for effects, one per search. Without entries, the outcome stays unknown.
    :ivar looks: all searches, in order.
    :ivar shows: by operation, a function that returns its results instead of the script.
    """

    description: ConnectorDescription = field(factory=scripted_description)
    clock: IReactorTime = field(factory=Clock)
    script: list[Answer] = field(factory=list)
    usual: Outcome = field(factory=lambda: Outcome(output={"done": True}))
    sendings: list[Sending] = field(factory=list)
    findings: list[Found] = field(factory=list)
    looks: list[Sought] = field(factory=list)
    shows: dict[str, Callable[[], Answer]] = field(factory=dict)

    def describe(self) -> ConnectorDescription:
        """Return the given description."""
        return self.description

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Return a POST (a GET for a read) of the inputs as JSON, with the effect key in L{EFFECT_HEADER}.

        :raises CapabilityDenied: if the operation or the URL's host is not declared.
        """
        declared = self._find_declared(operation)
        if not self.description.bindable and read_origin(base_url).host_and_port not in self.description.hosts:
            raise CapabilityDenied("The host is not declared.")
        return Request(
            connector=self.description.name,
            operation=operation,
            effect=declared.effect,
            idempotent=declared.idempotent,
            method="GET" if declared.effect == READ else "POST",
            url=f"{base_url}/{operation}",
            headers=((EFFECT_HEADER, effect_key),),
            body=canonical(inputs),
            credential_header=self.description.credential.header if self.description.credential else None,
        )

    def normalize_input(self, operation: str, name: str, value: JSON) -> JSON:
        """Return the addresses in a text C{to}, and every other input unchanged."""
        if operation not in self.description.operations or name != "to" or not isinstance(value, str):
            return value
        return [each.rpartition("<")[2].strip(" >") for each in value.split(";")]

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Return the script's next result, or raise it if it is an exception.

        :raises CapabilityDenied: if the operation is not declared as a read.
        """
        if self._find_declared(request.operation).effect != READ:
            raise CapabilityDenied("The operation is not declared as a read.")
        return await self._send("read", request, credential, seconds)

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Return the script's next result, or raise it if it is an exception.

        :raises CapabilityDenied: if the operation is not declared.
        """
        self._find_declared(request.operation)
        return await self._send("invoke", request, credential, seconds, late_seconds)

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Return or raise the next of C{findings}, or a finding without an answer if there is none left.

        :raises CapabilityDenied: if the operation is not declared as reconcilable.
        """
        if not self._find_declared(sought.operation).reconcilable:
            raise CapabilityDenied(f"The operation {sought.operation} declares no way to look for its effect.")
        if credential is not None and self.description.credential is not None:
            await credential.reveal()
        self.looks.append(sought)
        found = self.findings.pop(0) if self.findings else Finding(None)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Finding):
            return found
        try:
            return await found.addTimeout(seconds, self.clock)
        except Overdue:
            return Finding(None, fault=ResourceLimitExceeded("The service took too long.").fault())

    def effects(self) -> Counter[str]:
        """Return the number of invocations by effect key."""
        return Counter(each.effect_key for each in self.sendings if each.method == "invoke")

    def _find_declared(self, operation: str) -> Operation:
        if operation not in self.description.operations:
            raise CapabilityDenied(f"There is no operation {operation!r}.")
        return self.description.operations[operation]

    async def _send(
        self,
        method: str,
        request: Request,
        credential: ICredential | None,
        seconds: float,
        late_seconds: float = 0.0,
    ) -> Outcome:
        wanted = credential is not None and self.description.credential is not None
        secret = await credential.reveal() if credential is not None and wanted else None
        self.sendings.append(Sending(method, request, secret, seconds, late_seconds))
        shown = self.shows.get(request.operation)
        answer = shown() if shown else self.script.pop(0) if self.script else self.usual
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Outcome):
            return answer
        try:
            return await answer.addTimeout(seconds + late_seconds, self.clock)
        except Overdue:
            return Outcome(fault=ResourceLimitExceeded("The service took too long.").fault(), classified=False)


@implementer(IConnectors)
@define
class MemoryConnectors:
    """A registry of given connectors. L{add}, L{remove} and L{replace} act like a changed file.

    :ivar reported: the result of L{problems}.
    :ivar of_files: the names of the connectors that count as files of the user, so that L{candidates} returns them.
    """

    _connectors: dict[str, IConnector] = field(factory=dict)
    reported: tuple[LoadError, ...] = ()
    refreshed: int = 0
    of_files: frozenset[str] = frozenset()
    _generation: int = 1

    @classmethod
    def of(cls, connectors: Iterable[IConnector]) -> MemoryConnectors:
        """Return a registry of C{connectors}."""
        return cls({each.describe().name: each for each in connectors})

    def get(self, fqn: str) -> IConnector | None:
        """Return the connector with this name, or None if there is none."""
        return self._connectors.get(fqn)

    def descriptions(self) -> tuple[ConnectorDescription, ...]:
        """Return all descriptions, ordered by name."""
        return tuple(each.describe() for _, each in sorted(self._connectors.items()))

    def candidates(self) -> tuple[Candidate, ...]:
        """Return what the operator could trust: the connectors whose names are in C{of_files}."""
        held = (each for each in self.descriptions() if each.name in self.of_files)
        return tuple(
            Candidate(TrustKind.CONNECTOR, each.name, each.content_hash, f"{each.name}.toml", f"# {each.version}\n")
            for each in held
        )

    def problems(self) -> tuple[LoadError, ...]:
        """Return the errors that the test put into C{reported}."""
        return self.reported

    def generation(self) -> int:
        """Return a number that grows with every change."""
        return self._generation

    def refresh(self) -> None:
        """Count the call, without further effects."""
        self.refreshed += 1

    def add(self, connector: IConnector) -> None:
        """Add C{connector}, replacing one with its name."""
        self._connectors[connector.describe().name] = connector
        self._generation += 1

    def remove(self, fqn: str) -> None:
        """Remove a connector. It must be there."""
        del self._connectors[fqn]
        self._generation += 1

    def replace(self, connector: ScriptedConnector, version: str) -> ScriptedConnector:
        """Replace a connector by one with another version and content that shares the script and the sendings."""
        description = evolve(connector.description, version=version, content_hash=digest(version))
        successor = evolve(connector, description=description)
        self.add(successor)
        return successor
