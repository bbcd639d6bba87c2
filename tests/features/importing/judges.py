"""Services that take only what their providers' own clients would send, or what their schemas allow."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import attrs
from graphql import (
    GraphQLSchema,
    get_named_type,
    get_nullable_type,
    graphql_sync,
    is_abstract_type,
    is_enum_type,
    is_leaf_type,
    is_list_type,
)
from twisted.internet.defer import Deferred, succeed

from aileron.connectors import OutgoingRequest, ServiceAnswer
from aileron.connectors._answer import Flight

Given = tuple[str, tuple[str, ...], Any]
"""An argument: where it goes, what the service calls it, and its value."""


class NoSample(Exception):
    """A sample of an argument is none that the client takes, as a date of HTTP's."""


@attrs.define
class Double:
    """A service that judges each request, and answers all alike.

    :ivar judge: says what is wrong with a request; empty: nothing.
    :ivar answer: its body, made of the request.
    """

    judge: Callable[[OutgoingRequest], str]
    answer: Callable[[OutgoingRequest], bytes]
    judged: list[str] = attrs.field(factory=list)

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Judge a request, and answer it."""
        flight.sent = True
        self.judged.append(self.judge(message))
        return succeed(ServiceAnswer(200, {"content-type": "application/json"}, self.answer(message)))


def compare(message: OutgoingRequest, method: str, path: str, query: Mapping[str, list[str]], body: Any) -> str:
    """Say where a request is another than it should be."""
    url = urlsplit(message.url)
    told: Any = message.body or b""
    if told[:1] == b"{":
        told, body = json.loads(told), json.loads(body or b"{}")
    asked = {"method": message.method, "path": unquote(url.path), "query": parse_qs(url.query), "body": told or b""}
    wanted = {"method": method, "path": unquote(path), "query": dict(query), "body": body or b""}
    return "; ".join(
        f"{name}: {asked[name]!r} and not {wanted[name]!r}" for name in asked if asked[name] != wanted[name]
    )


def google(document: Mapping[str, Any]) -> Callable[[str, list[Given]], Double]:
    """Judge by Google's own client, made of the same document."""
    build: Any = import_module("googleapiclient.discovery").build_from_document
    service = build(json.dumps(document), developerKey="key")

    def judge(key: str, given: list[Given]) -> Double:
        resource = service
        *parts, name = key.removeprefix(f"{document['name']}.").split(".")
        for part in parts:
            resource = getattr(resource, part)()
        method = getattr(resource, name)
        arguments = {steps[0].replace("-", "_"): value for place, steps, value in given if place in ("path", "query")}
        body = {steps[0]: value for place, steps, value in given if place == "body"}
        wanted = method(**arguments, **({"body": body} if body else {}))
        url = urlsplit(wanted.uri)
        query = {name: value for name, value in parse_qs(url.query).items() if name not in ("alt", "key")}
        path = url.path.removeprefix(f"/{document['servicePath']}".rstrip("/"))  # it is part of the base URL
        return Double(lambda message: compare(message, wanted.method, path, query, wanted.body), lambda _: b"{}")

    return judge


def aws(model: Mapping[str, Any]) -> Callable[[str, list[Given]], Double]:
    """Judge by what AWS's client for Python makes of the same model."""
    service = import_module("botocore.model").ServiceModel(model, "trial")
    invalid: Any = import_module("botocore.exceptions").ParamValidationError
    serializer: Any = import_module("botocore.serialize").create_serializer(service.metadata["protocol"])

    def judge(key: str, given: list[Given]) -> Double:
        operation = service.operation_model(key)
        told = {steps[0]: value for _, steps, value in given if steps}
        shape = operation.input_shape
        arguments = _unwire(shape, told) if shape else {}
        try:
            wanted = serializer.serialize_to_request(arguments, operation)
        except invalid as problem:
            raise NoSample from problem
        path, _, fixed = wanted["url_path"].partition("?")
        query = parse_qs(fixed) | dict(_query(wanted))

        def judged(message: OutgoingRequest) -> str:
            return compare(_without_key(message), wanted["method"], path, query, wanted["body"])

        return Double(judged, lambda _: b"{}")

    return judge


def _query(wanted: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    query = wanted["query_string"]
    for name, each in query.items() if isinstance(query, dict) else query:
        yield name, each if isinstance(each, list) else [str(each)]


def _without_key(message: OutgoingRequest) -> OutgoingRequest:
    """A request without the effect key, which the client would not know."""
    if (message.body or b"")[:1] != b"{":
        return message
    told = json.loads(message.body or b"")
    return attrs.evolve(
        message, body=json.dumps({name: each for name, each in told.items() if not _is_key(each)}).encode()
    )


def _is_key(value: Any) -> bool:
    try:
        return uuid.UUID(value).version == 5
    except (ValueError, AttributeError, TypeError):
        return False


def _unwire(shape: Any, value: Any) -> Any:
    """Return an argument as AWS's client wants it: by the names of the model, and bytes as such."""
    if shape.type_name == "structure":
        names = {str(each.serialization.get("name", name)): name for name, each in shape.members.items()}
        return {names[name]: _unwire(shape.members[names[name]], each) for name, each in value.items() if name in names}
    if shape.type_name == "list":
        return [_unwire(shape.member, each) for each in value]
    return base64.b64decode(value) if shape.type_name == "blob" else value


def graphql(schema: GraphQLSchema) -> Callable[[str, list[Given]], Double]:
    """Judge by C{graphql-core}, which answers with a sample of each type."""

    def resolve(_: Any, info: Any, **__: Any) -> Any:
        return _sample(schema, info.return_type, info.field_name)

    def answer(message: OutgoingRequest) -> Any:
        body = json.loads(message.body or b"")
        pick: Any = lambda _, info, kind: schema.get_possible_types(kind)[0].name  # noqa: E731
        return graphql_sync(
            schema, body["query"], variable_values=body["variables"], field_resolver=resolve, type_resolver=pick
        ).formatted

    def judge(key: str, given: list[Given]) -> Double:
        def judged(message: OutgoingRequest) -> str:
            found = answer(message)
            return str(found["errors"])[:500] if "errors" in found else ""

        return Double(judged, lambda message: json.dumps(answer(message)).encode())

    return judge


def _sample(schema: GraphQLSchema, kind: Any, name: str) -> Any:
    inner = get_nullable_type(kind)
    if is_list_type(inner):
        return [_sample(schema, inner.of_type, name)]
    if is_enum_type(inner):
        return next(iter(inner.values.values())).value
    if is_leaf_type(inner):
        samples = {"Int": 1, "Float": 1.5, "Boolean": name != "hasNextPage"}
        return samples.get(inner.name, "1")
    assert is_abstract_type(inner) or get_named_type(inner)
    return {}
