"""A kind of connector of another package: services that speak JSON-RPC 2.0 over HTTP, without recorded answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen
from zope.interface import implementer

from aileron.base.addresses import read_origin
from aileron.base.json import JSON
from aileron.connectors.kit import (
    FAILURES,
    BaseSpec,
    ConnectorKind,
    FileTable,
    Flight,
    Identity,
    OutgoingRequest,
    Reach,
    ReferenceScope,
    ServiceAnswer,
    Specimen,
    Workshop,
    describe_failure,
    encode_json,
    open_credential,
    read_declared,
    read_operations,
    read_service,
    refuse_strangers,
    wait_in_time,
    with_credential,
)
from aileron.model.connectors import READ, WRITE, ConnectorDescription, Finding, Operation, Outcome, Request, Sought
from aileron.model.errors import CapabilityDenied, ExternalApiError
from aileron.model.interfaces.connectors import IConnector
from aileron.model.interfaces.vault import ICredential

_MOST_BYTES = 64 * 1024
_HEADERS = (("Content-Type", "application/json"), ("Accept", "application/json"))


@frozen
class RpcOperation:
    """A method of the service.

    :ivar inputs: the names of its parameters.
    """

    operation: Operation
    inputs: frozenset[str]
    method: str


@frozen
class RpcSpec(BaseSpec):
    """A connector file of this kind."""

    operations: Mapping[str, RpcOperation]
    private_network: bool

    @property
    def reach(self) -> Reach:
        """The addresses that its requests may go to."""
        return Reach(self.description, self.private_network)


@implementer(IConnector)
@frozen
class RpcConnector:
    """Calls the methods that its file declares."""

    spec: RpcSpec
    workshop: Workshop

    def describe(self) -> ConnectorDescription:
        """Return the description of the file."""
        return self.spec.description

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Build a call; its id is the effect key."""
        about, need = self.spec.find_operation(operation), self.spec.description.credential
        declared, base = self.spec.operations[operation], self.spec.reach.find_base_url(None, base_url)
        refuse_strangers(inputs, declared.inputs)
        call: JSON = {
            "jsonrpc": "2.0",
            "id": "${effect.key}",
            "method": declared.method,
            "params": {name: f"${{in.{name}}}" for name in sorted(declared.inputs)},
        }
        return Request(
            connector=self.spec.fqn,
            operation=operation,
            effect=about.effect,
            idempotent=about.idempotent,
            method="POST",
            url=base.url,
            headers=_HEADERS,
            body=encode_json(call, ReferenceScope(inputs, effect_key)),
            credential_header=need.header if need else None,
        )

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Call a method that is declared to change nothing."""
        self.spec.find_read(request.operation)
        return await self.invoke(request, credential, seconds)

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Call a method once."""
        about, clock = self.spec.find_operation(request.operation), self.workshop.reactor
        self.spec.reach.check_own(request, about, "POST", None)
        until = clock.seconds() + seconds
        sent = await open_credential(self.spec.description, request, credential, seconds=seconds, clock=clock)
        message = OutgoingRequest(
            method="POST",
            url=with_credential(request.url, sent),
            headers=(*request.headers, *sent.headers),
            body=request.body,
            private_network=self.spec.private_network,
            max_response_bytes=_MOST_BYTES,
        )
        flight, left = Flight(), max(until - clock.seconds(), 0.0)
        sending = self.workshop.transport.send(message, flight)
        try:
            answer = await wait_in_time(sending, clock, flight, seconds=left, late_seconds=late_seconds)
        except FAILURES as error:
            fault = describe_failure(self.spec.fqn, error, flight, seconds=left, most_bytes=_MOST_BYTES)
            return Outcome(fault=fault, sent=flight.sent, classified=False)
        return self._judge(answer)

    def _judge(self, answer: ServiceAnswer) -> Outcome:
        """Read an answer: only one of the protocol says whether something happened."""
        try:
            told = json.loads(answer.body)
        except ValueError:
            told = None
        if answer.status == 200 and isinstance(told, dict) and "result" in told:
            return Outcome(told["result"], status=answer.status)
        refused = isinstance(told, dict) and "error" in told
        fault = ExternalApiError(f"{self.spec.fqn} did not do it (status {answer.status}).").fault()
        return Outcome(fault=fault, classified=refused and answer.status == 200, status=answer.status)

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Refuse: no method looks for an effect."""
        raise CapabilityDenied(f"The operation {sought.operation} declares no way to look for its effect.")


class RpcKind(ConnectorKind[RpcSpec]):
    """Services that speak JSON-RPC."""

    name = "json_rpc"

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> RpcSpec:
        """Read a file."""
        service = read_service(document, head)
        operations = read_operations(document, _read_operation)
        about = service.describe(identity, {name: each.operation for name, each in operations.items()})
        return RpcSpec(about, operations, service.private_network)

    def make(self, spec: RpcSpec, workshop: Workshop) -> IConnector:
        """Make the connector."""
        return RpcConnector(spec, workshop)

    def schema(self) -> Mapping[str, JSON]:
        """Describe a file."""
        return {"type": "object", "required": ["connector", "operations"]}

    def build_request(
        self, spec: RpcSpec, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str
    ) -> Request:
        """Build a call."""
        workshop: Any = None
        return RpcConnector(spec, workshop).prepare(operation, inputs, base_url, effect_key)

    def bench(self, specimen: Specimen, bench: Any) -> Any:
        """Put a connector before the double of a service over HTTP."""
        from aileron.features.proving.rigs import HTTP, Case, Rig, ServiceDouble, list_controls, list_trials

        spec: RpcSpec = specimen.spec
        body = b'{"jsonrpc": "2.0", "id": "1", "result": {"text": "sample"}}'
        good = ServiceAnswer(200, {"content-type": "application/json"}, body)
        cases = {
            name: Case(each.operation, dict.fromkeys(sorted(each.inputs), "sample"), good=good, most_bytes=_MOST_BYTES)
            for name, each in spec.operations.items()
        }
        origins = {read_origin(specimen.base_url): HTTP}
        return Rig(spec, specimen.base_url, ServiceDouble(bench.clock), origins, cases, list_trials, list_controls)


def _read_operation(name: str, table: FileTable) -> RpcOperation:
    effect = table.choice("effect", (READ, WRITE), WRITE)
    about = read_declared(name, table, effect, most_seconds=300.0, usual_seconds=30.0)
    found = RpcOperation(about, frozenset(table.texts("inputs", required=False)), table.text("rpc_method"))
    table.close()
    return found


KIND = RpcKind()
