"""Parses a connector file of the kind C{http} into its specification."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import evolve

from aileron.base.tables import FileTable
from aileron.connectors._operations import Identity, read_operations
from aileron.connectors._services import read_service
from aileron.credentials import SshKey
from aileron.model.connectors import READ, CredentialNeed

from ._forward import make_forwarding
from ._lookup import Lookup
from ._operation import read_operation
from ._own_tools import read_own_tools
from ._spec import HttpOperation, HttpSpec


def read_http(document: FileTable, head: FileTable, identity: Identity) -> HttpSpec:
    """Read the tables of an HTTP connector's file. Faults are added to them."""
    service = read_service(document, head)
    if service.need is not None and service.need.kind == SshKey.name:
        head.faults.add(("credential", "kind"), f"`kind` must not be {SshKey.name}, which is for git over ssh")
    operations = _operations(document, service.need, service.places.others)
    description = service.describe(identity, {name: each.operation for name, each in operations.items()})
    own_tools = read_own_tools(document, description, operations)
    forwarding = {} if own_tools is None else make_forwarding(own_tools.packages)
    for name in forwarding.keys() & operations.keys():
        document.table("operations").fault(name, "is the name of an operation for agents' own tools")
    declared = {**description.operations, **{name: each.operation for name, each in forwarding.items()}}
    traced = head.flag("traced", default=False)
    description = evolve(description, own_tools=own_tools, operations=declared, traced=traced)
    return HttpSpec(description, operations, service.private_network, forwarding)


def _operations(
    document: FileTable, need: CredentialNeed | None, places: Collection[str]
) -> Mapping[str, HttpOperation]:
    found = read_operations(document, lambda name, inside: read_operation(name, inside, need, places))
    for name, operation in found.items():
        if operation.lookup is not None and operation.lookup.operation:
            place = (*document.path, "operations", name, "reconcile")
            _check_lookup(operation.lookup, FileTable({}, place, document.faults), found)
    return found


def _check_lookup(lookup: Lookup, table: FileTable, operations: Mapping[str, HttpOperation]) -> None:
    """Check that the operation that a search uses is a read, returns JSON and has the given inputs.

    Faults are added to the table.
    """
    read = operations.get(lookup.operation)
    if read is None or read.operation.effect != READ:
        table.fault("op", "must name an operation of this file whose effect is read")
    elif read.answer != "json":
        table.fault("op", "must name a read whose answer is json")
    else:
        for name in sorted(set(lookup.inputs) - read.inputs):
            table.fault("inputs", f"has {name!r}, which {lookup.operation} does not take")
