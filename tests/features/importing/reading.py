"""What tests of all readers do with a document: import operations of it, and make requests and calls of what came."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from aileron.actions import parse
from aileron.connectors import HttpConnector
from aileron.connectors.kinds.http import HttpSpec
from aileron.features.importing.description import ApiDescription, ApiOperation, ApiReader
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from aileron.model.actions import Action
from aileron.model.connectors import READ, Outcome, Request
from aileron.testing import MemoryCredential
from tests.connectors.service import NOW, spec_of

NAME = "local://me/trial"


def reader(document: Mapping[str, Any] | str) -> ApiReader:
    """What reads a document."""
    return read_api((document if isinstance(document, str) else json.dumps(document)).encode())


def describe(document: Mapping[str, Any] | str, *keys: str) -> ApiDescription:
    """Describe it with operations of it; without a key: with all."""
    found = reader(document)
    return found.describe(NAME, tuple(each for each in found.list_operations() if not keys or each.key in keys))


def operation(document: Mapping[str, Any] | str, key: str) -> ApiOperation:
    """Describe one operation."""
    (found,) = describe(document, key).operations
    return found


def spec(document: Mapping[str, Any] | str, *keys: str) -> HttpSpec:
    """The connector file that is written, read as the daemon reads it."""
    return spec_of(write_connector(describe(document, *keys)).connector.text)


def action(document: Mapping[str, Any] | str, key: str) -> Action:
    """The action that is written, read as the daemon reads it."""
    (written,) = write_connector(describe(document, key)).actions
    return parse(written.text.encode(), written.name)


def request(document: Mapping[str, Any] | str, key: str, base_url: str, /, **inputs: Any) -> Request:
    """The request that the written connector makes."""
    connector = HttpConnector(spec(document, key), _no_network, Clock(), lambda: NOW)  # type: ignore[arg-type]
    return connector.prepare(operation(document, key).name, inputs, base_url, "effect-1")


def _no_network(*_: object) -> None:
    raise AssertionError("nothing is sent to make a request")


def call(written: HttpSpec, transport: Any, request: Request) -> Outcome:
    """Send a request by C{transport}, whose answer comes at once."""
    connector = HttpConnector(written, transport, Clock(), lambda: NOW)
    need = written.description.credential
    credential = MemoryCredential(b"canary-secret", need.format) if need else None
    send = connector.read if request.effect == READ else connector.invoke
    found: list[Any] = []
    Deferred.fromCoroutine(send(request, credential, 10.0)).addBoth(found.append)
    assert isinstance(found[0], Outcome), found[0]
    return found[0]
