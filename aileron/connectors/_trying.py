"""Builds the request of one operation, as a call would, without sending it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from aileron.base.json import JSON
from aileron.model.connectors import Request
from aileron.model.errors import AileronError

from ._files import all_files, one_file
from ._schema import read_connector
from .kind import ConnectorKind, Spec
from .kinds import KindTable

_SHIPPED = KindTable()
EFFECT_KEY = "dry-run"
"""The effect key of a tried request."""


class NotTried(Exception):
    """The error for a request that cannot be built. Its text is a sentence.

    :ivar connector: the name of the connector, or empty if it was not found.
    :ivar missing: inputs of the operation that were not given.
    """

    def __init__(self, message: str, connector: str = "", missing: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.connector = connector
        self.missing = missing


@frozen
class TriedRequest:
    """A request that a call would send, without its credential.

    :ivar credential: the kind of credential that would be added, or None.
    :ivar missing: inputs of the operation that were not given, and are omitted in the request.
    """

    request: Request
    credential: str | None
    missing: Sequence[str] = ()


def build_request(
    target: str,
    directory: Path,
    operation: str,
    inputs: Mapping[str, JSON],
    base_url: str | None = None,
    kinds: KindTable = _SHIPPED,
) -> TriedRequest:
    """Build the request of an operation of a connector, if its kind supports it.

    :param target: the path of the connector's file, or its name.
    :param directory: the directory of the user's connectors, in which a name is searched.
    :param base_url: the base URL of the service, or None for the connector's own.
    :raises NotTried: if there is no such connector or operation, or no request can be built from the inputs.
    """
    files = all_files(directory) if "://" in target else (one_file(target),)
    readings = [read_connector(file, kinds) for file in files]
    sound = [(each.kind, each.spec) for each in readings if each.kind is not None]
    named = [each for each in sound if "://" not in target or each[1].description.name == target]
    if not named:
        problems = [each.message for reading in readings for each in reading.problems] if "://" not in target else []
        raise NotTried(f"There is no valid connector {target}{f': {problems[0]}' if problems else ''}.")
    kind, spec = named[0]
    return _build(kind, spec, operation, inputs, base_url)


def _build(
    kind: ConnectorKind[Any], spec: Spec, operation: str, inputs: Mapping[str, JSON], base_url: str | None
) -> TriedRequest:
    found = spec.operations.get(operation)
    if found is None:
        raise NotTried(f"{spec.description.name} has no operation {operation}. It has: {', '.join(spec.operations)}.")
    template = spec.description.template
    address = base_url or (spec.description.base_url if template is None else template.example)
    if not address:
        raise NotTried(f"{spec.description.name} has no base URL of its own.")
    missing = sorted(found.inputs - inputs.keys())
    try:
        request = kind.build_request(spec, operation, inputs, address, EFFECT_KEY)
    except AileronError as error:
        message = f"These inputs make no request: {error.fault().message}"
        raise NotTried(message, spec.description.name, missing) from None
    if request is None:
        raise NotTried(
            f"{spec.description.name} is no HTTP connector: try one of its actions, with aileron action try."
        )
    need = spec.description.credential
    return TriedRequest(request, None if need is None else need.kind, missing)
