"""A service that is made of its own OpenAPI document: it judges each request by it, and answers with a sample."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import attrs
from hypothesis import find
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, succeed

from aileron.base.json import JSON
from aileron.connectors import OutgoingRequest, ServiceAnswer
from aileron.connectors._answer import Flight
from aileron.features.importing._references import ApiDocument, Inexpressible, WorkBudget, table_of
from aileron.features.importing._schemas import narrow

_TEXTS = {
    "uuid": "3f6a1b1e-6d0c-4e57-9a0b-0d3a5f6c7e21",
    "date": "2030-01-31",
    "date-time": "2030-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "ada@example.org",
    "uri": "https://example.org/a",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "byte": "aGk=",
    "duration": "P1D",
}


def sample(schema: Mapping[str, Any]) -> Any:
    """A value that a schema of ours allows, as a rule."""
    for key in ("oneOf", "anyOf"):
        if key in schema:
            return sample({**{name: each for name, each in schema.items() if name != key}, **schema[key][0]})
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    make = _MAKE.get(str(schema.get("type")))
    return make(schema) if make else "a"


def _text(schema: Mapping[str, Any]) -> str:
    if "pattern" in schema:
        return str(find(st.from_regex(schema["pattern"]), lambda text: len(text) >= schema.get("minLength", 0)))
    text = _TEXTS.get(str(schema.get("format")), "a")
    return text.ljust(schema.get("minLength", 0), "a")[: schema.get("maxLength")]


def _number(schema: Mapping[str, Any]) -> float:
    step = schema.get("multipleOf", 1)
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + step if "exclusiveMinimum" in schema else None)
    most = schema.get("maximum", schema.get("exclusiveMaximum", 0) - step if "exclusiveMaximum" in schema else None)
    return least if least is not None else min(step, most) if most is not None else step  # type: ignore[no-any-return]


def _array(schema: Mapping[str, Any]) -> list[Any]:
    return [sample(schema.get("items", {})) for _ in range(max(1, schema.get("minItems", 1)))]


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: sample(each) for name, each in schema.get("properties", {}).items()}


_MAKE: Mapping[str, Any] = {
    "string": _text,
    "integer": _number,
    "number": _number,
    "boolean": lambda _: True,
    "array": _array,
    "object": _object,
}


def _is_bracketed(parameter: Mapping[str, Any]) -> bool:
    return parameter.get("style") == "deepObject" and parameter.get("schema", {}).get("type") != "object"


@attrs.define
class Double:
    """The service of one operation of a document; its network is a call.

    :ivar root: the document.
    :ivar path: of the operation, as the document has it.
    :ivar base_url: where it is.
    :ivar judged: what openapi-core found wrong with each request, in order; empty: nothing.
    """

    root: Mapping[str, Any]
    path: str
    method: str
    base_url: str
    judged: list[str] = attrs.field(factory=list)

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Judge a request, and answer it."""
        flight.sent = True
        self.judged.append(self._judge(message))
        status, body = self._answer()
        return succeed(ServiceAnswer(status, {"content-type": "application/json"}, body))

    def _judge(self, message: OutgoingRequest) -> str:
        core = import_module("openapi_core")
        mock = import_module("openapi_core.testing").MockRequest
        url, base = urlsplit(message.url), urlsplit(self.base_url)
        headers = {name: value for name, value in message.headers if name.lower() != "content-type"}
        kind = next((value for name, value in message.headers if name.lower() == "content-type"), "application/json")
        query: dict[str, Any] = {}
        for name, value in parse_qsl(url.query, keep_blank_values=True):
            query.setdefault(name, []).append(value)
        request = mock(
            f"{base.scheme}://{base.netloc}",
            message.method.lower(),
            url.path,
            args=query,
            headers=headers,
            data=message.body,
            content_type=kind,
        )
        try:
            core.OpenAPI.from_dict(self._reduced(), config=self._config()).validate_request(request)
        except Exception as error:  # noqa: BLE001 - whatever the judge says
            return f"{type(error).__name__}: {error} {error.__cause__ or ''}"[-500:]
        return ""

    def _config(self) -> Any:
        return import_module("openapi_core").Config(spec_validator_cls=None)

    def _reduced(self) -> dict[str, Any]:
        """The document with this operation alone, at this place, asking for no credential."""
        item = dict(table_of(self.root["paths"][self.path]))
        item.pop("servers", None)
        operation = {name: each for name, each in item[self.method].items() if name not in ("security", "servers")}
        # Arrays in brackets, which the judge does not know.
        operation["parameters"] = [each for each in operation.get("parameters", ()) if not _is_bracketed(each)]
        if "requestBody" in operation:
            body = ApiDocument(self.root).follow(operation["requestBody"]).keys
            kinds = {"*/*": "application/json"}  # for the first the judge reads no JSON
            content = {kinds.get(name, name): self._judged(each) for name, each in body["content"].items()}
            operation["requestBody"] = {**body, "content": content}
        others = {name: each for name, each in item.items() if name in ("parameters", "summary")}
        paths = {self.path: {**others, self.method: operation}}
        reduced = {name: self.root[name] for name in self.root if name in ("openapi", "components")}
        info = {"title": "Double", "version": "1"}
        return {**reduced, "info": info, "servers": [{"url": self.base_url}], "paths": paths}

    def _judged(self, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """The content of a body without arrays in brackets."""
        deep = {name for name, each in content.get("encoding", {}).items() if each.get("style") == "deepObject"}
        schema = ApiDocument(self.root).follow(content.get("schema", {})).keys
        properties = table_of(schema.get("properties"))
        kept = {name: each for name, each in properties.items() if name not in deep or each.get("type") != "array"}
        if not deep or len(kept) == len(properties):
            return content
        encoding = {name: each for name, each in content["encoding"].items() if name in kept}
        return {**content, "schema": {**schema, "properties": kept}, "encoding": encoding}

    def _answer(self) -> tuple[int, bytes]:
        """Answer with the first success that the document describes."""
        # An answer has what only the service says.
        document = ApiDocument(json.loads(json.dumps(self.root).replace('"readOnly": true', '"readOnly": false')))
        for status, answer in self._answers():
            try:
                content = table_of(document.follow(answer).keys.get("content"))
                schema = next((each.get("schema") for name, each in content.items() if "json" in name), None)
                body: JSON = {} if schema is None else sample(narrow(document, schema, WorkBudget()).schema)
            except Inexpressible:
                body = {}
            return status, json.dumps(body).encode()
        return 200, b"{}"

    def _answers(self) -> Iterator[tuple[int, Any]]:
        for status, answer in table_of(self.root["paths"][self.path][self.method].get("responses")).items():
            if status.startswith("2"):
                yield int(status.replace("XX", "00").replace("xx", "00")), answer
