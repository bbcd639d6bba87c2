"""Makes the request of an AWS operation from the data type (the "shape") of its input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

from attrs import define, field, frozen

from aileron.base.json import JSON
from aileron.model.connectors import WRITE

from ._references import Inexpressible, NamedTypes, list_of, reference, table_of, text_of
from ._requests import BYTES_TYPE, Arguments
from .description import HEADER, PATH, QUERY

JSON_RPC, REST_JSON = "json", "rest-json"

OWN_HEADERS = frozenset({"accept-encoding", "expect", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"})
"""Headers that signing or sending a request sets."""

_TYPES = {"structure": "object", "map": "object", "list": "array", "boolean": "boolean"}
_TYPES |= dict.fromkeys(("integer", "long", "short", "byte", "bigInteger"), "integer")
_TYPES |= dict.fromkeys(("float", "double", "bigDecimal"), "number")
_BOUNDS = {"string": "Length", "array": "Items", "integer": "imum", "number": "imum"}
_PLACES = {"uri": PATH, "querystring": QUERY, "header": HEADER}
_UUID_CHARACTERS = 36
_KEY = "${effect.uuid}"


def parts(shape: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parts of a data type with their names: members of a structure, element of a list, value of a map."""
    yield from ((name, table_of(each)) for name, each in table_of(shape.get("members")).items())
    yield from ((key, shape[key]) for key in ("member", "value") if isinstance(shape.get(key), Mapping))


def wire_name(name: str, member: Mapping[str, Any]) -> str:
    """Return the name of a member in the HTTP request or response: its C{locationName}, or else C{name}."""
    return text_of(member.get("locationName")) or name


@frozen
class Shapes:
    """The data types (the "shapes") in the description of an AWS service.

    :ivar protocol: L{JSON_RPC} or L{REST_JSON}.
    """

    protocol: str
    metadata: Mapping[str, Any]
    by_name: Mapping[str, Any] = field(repr=False)

    @cached_property
    def types(self) -> NamedTypes:
        """The data types of the AWS service (its "shapes") as JSON Schemas."""
        return NamedTypes.of({name: _schema(table_of(each)) for name, each in self.by_name.items()})

    def of(self, member: object) -> Mapping[str, Any]:
        """Return the data type that a member, an input or an output refers to; empty if it refers to none."""
        return table_of(self.by_name.get(text_of(table_of(member).get("shape"))))


def schema_of(member: Mapping[str, Any], shape: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the JSON Schema of a member of a shape, which is a data type in the AWS service's description.

    :param shape: the data type of the member.
    """
    words = {"description": member["documentation"]} if "documentation" in member else {}
    if shape.get("type") == "timestamp" and "location" in member:
        moment = {"format": "date-time"} if member["location"] == "querystring" else {}
        return {"type": "string", **moment, **words}
    return {**reference(text_of(member.get("shape"))), **words}


def _schema(shape: Mapping[str, Any]) -> dict[str, JSON]:
    kind = _TYPES.get(text_of(shape.get("type")), "string")
    found: dict[str, JSON] = {"type": kind}
    if shape.get("type") == "timestamp":
        return {"type": "number" if shape.get("timestampFormat") in (None, "unixTimestamp") else "string"}
    if shape.get("type") == "blob":
        return {"type": "string", "format": "byte", "description": "In base64."}
    found |= {f"{key}{_BOUNDS[kind]}": shape[key] for key in ("min", "max") if key in shape and kind in _BOUNDS}
    if "enum" in shape:
        found["enum"] = shape["enum"]
    if kind == "array":
        found["items"] = reference(text_of(table_of(shape.get("member")).get("shape")))
    if members := table_of(shape.get("members")):
        named = {name: wire_name(name, table_of(each)) for name, each in members.items()}
        found["properties"] = {named[name]: schema_of(table_of(each), {}) for name, each in members.items()}
        found["required"] = [named[name] for name in map(text_of, list_of(shape.get("required"))) if name in named]
    return {**found, "minProperties": 1, "maxProperties": 1} if shape.get("union") is True else found


@define
class AwsRequest:
    """The request of one operation, built up part by part.

    :ivar target: the request URI of the model: a path, and the query that every request has.
    :ivar query: the query parameters that every request has.
    :ivar has_key: whether the request has an idempotency token.
    """

    shapes: Shapes
    arguments: Arguments
    target: str
    query: dict[str, JSON] = field(factory=dict)
    has_key: bool = False
    _parameters: list[JSON] = field(factory=list)
    _members: dict[str, JSON] = field(factory=dict)
    _needed: list[JSON] = field(factory=list)

    def add(self, operation: str, shape: Mapping[str, Any]) -> None:
        """Add all members of the input's shape to the request.

        :raises Inexpressible: if a required part cannot be expressed.
        """
        self.query |= parse_qsl(self.target.partition("?")[2], keep_blank_values=True)
        payload, needed = text_of(shape.get("payload")), list_of(shape.get("required"))
        for name, member in parts(shape):
            inside, required = self.shapes.of(member), name in needed
            if name != payload or "location" in member:
                self._add(name, member, required)
            elif inside.get("type") in ("blob", "string"):
                self.arguments.add_body({"required": required, "content": {BYTES_TYPE: {}}})
            else:
                for each, part in parts(inside):
                    self._add(each, part, required and each in list_of(inside.get("required")))
        self.arguments.add_parameters(self._parameters)
        self._add_body(operation)

    def _add_body(self, operation: str) -> None:
        """Add the collected members to the body, and the headers that the protocol C{json} requires.

        :raises Inexpressible: if a required member cannot be expressed.
        """
        about = self.shapes.metadata
        if self._members:
            self.arguments.add_members({"type": "object", "properties": self._members, "required": self._needed})
        elif self.arguments.constant and not self.arguments.body:
            self.arguments.body = "json"
        if self.shapes.protocol == JSON_RPC:
            target, version = f"{text_of(about.get('targetPrefix'))}.{operation}", text_of(about.get("jsonVersion"))
            headers = {"X-Amz-Target": target, "Content-Type": f"application/x-amz-json-{version or '1.0'}"}
            self.arguments.headers |= headers

    def _add(self, name: str, member: Mapping[str, Any], required: bool) -> None:
        """Add one member of the input, unless it is optional and deprecated.

        :raises Inexpressible: if the member is a stream of events, or is a required table of headers.
        """
        wire, inside, location = wire_name(name, member), self.shapes.of(member), text_of(member.get("location"))
        if member.get("deprecated") is True and not required:
            return
        if inside.get("eventstream") is True:
            raise Inexpressible("it sends a stream of events")
        if member.get("idempotencyToken") is True and inside.get("max") not in range(_UUID_CHARACTERS):
            self._add_key(wire, location)
        elif location in _PLACES and member.get("jsonvalue") is not True:
            schema = schema_of(member, inside)
            self._parameters.append({"name": wire, "in": _PLACES[location], "required": required, "schema": schema})
        elif location:
            self.arguments.leave_out(wire, Inexpressible("is a table of headers"), required)
        else:
            self._members[wire] = schema_of(member, inside)
            self._needed += [wire] if required else []

    def _add_key(self, wire: str, location: str) -> None:
        """Send the effect key as the idempotency token, in the header, query parameter or body member of that name."""
        self.has_key = True
        if location == "header":
            self.arguments.headers[wire] = _KEY
        elif location == "querystring":
            self.query[wire] = _KEY
        else:
            self.arguments.constant.append(((wire,), _KEY))

    def keys(self, effect: str) -> dict[str, JSON]:
        """Return further keys for the operation's table in the connector file.

        They are constant headers and query, an empty body, and C{idempotent}.
        """
        same = {"headers": self.arguments.headers, "query": self.query}
        found: dict[str, JSON] = {key: each for key, each in same.items() if each}
        if self.shapes.protocol == JSON_RPC and not self.arguments.body:
            found["json"] = {}
        if self.has_key and effect == WRITE:
            found["idempotent"] = True
        return found
