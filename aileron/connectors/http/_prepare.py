"""From inputs to the request that would leave: pure, so that it can be shown, digested and built again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, urlencode

from aileron.addresses import BaseUrl
from aileron.connectors._headers import header_value
from aileron.connectors._places import own_base_url
from aileron.connectors._template import REFERENCE, Omitted, ReferenceScope, Template, problem, render, scalar, text
from aileron.errors import CapabilityDenied, InvalidRequest
from aileron.values import JSON, Request, UploadPart, canonical

from ._mail import write_mail
from ._multipart import FILE, MULTIPART, encode_upload
from ._spec import HttpOperation, HttpSpec, RequestBody

_CONTENT_TYPES = {
    "json": "application/json",
    "graphql": "application/json",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain; charset=utf-8",
    "mail": "message/rfc822",
}
_ACCEPTS = {
    "json": "application/json",
    "xml": "application/xml",
    "text": "text/*, */*;q=0.1",
    "file": "*/*",
    "none": "*/*",
}


def prepare(spec: HttpSpec, operation: HttpOperation, base_url: str, scope: ReferenceScope) -> Request:
    """Build the request that C{operation} would send.

    :raises InvalidRequest: the inputs make no request.
    :raises CapabilityDenied: the host is not declared.
    """
    base = _find_allowed(spec, operation, base_url)
    _no_strangers(operation, scope.inputs)
    body, media_type, parts = _encode(operation.body, scope)
    description, need = spec.description, spec.description.credential
    return Request(
        connector=description.fqn,
        operation=operation.operation.name,
        effect=operation.operation.effect,
        idempotent=operation.operation.idempotent,
        method=operation.method,
        url=base.url + _path(operation, scope) + _query(operation, scope),
        headers=tuple(_headers(operation, media_type, scope)),
        body=body,
        credential_header=(need.header or None) if need else None,
        credential_query=need.query if need else None,
        parts=tuple(parts),
        credential_path=need.path if need else None,
    )


def _find_allowed(spec: HttpSpec, operation: HttpOperation, base_url: str) -> BaseUrl:
    """Find where C{operation} goes, if its connector is at C{base_url}."""
    description = spec.description
    try:
        base = own_base_url(base_url, private_network=spec.private_network, ssh=spec.over_ssh)
        if description.template is not None:
            description.template.values_of(base_url)
        elif description.base_url_problem(base_url) is not None:
            raise not_declared(spec, base.origin.host_and_port)
        if operation.place is None:
            return base
        return own_base_url(description.url_of(operation.place, base_url), private_network=spec.private_network)
    except ValueError as error:
        raise CapabilityDenied(f"The base URL of {description.fqn} {error}.") from error


def not_declared(spec: HttpSpec, host_and_port: str) -> CapabilityDenied:
    """Make the error for a host that the connector does not declare."""
    details: dict[str, JSON] = {
        "requested": f"network:{host_and_port}",
        "granted": [f"network:{each}" for each in spec.description.hosts],
    }
    return CapabilityDenied(f"{spec.description.fqn} does not declare the host {host_and_port}.", details)


def _no_strangers(operation: HttpOperation, inputs: Mapping[str, JSON]) -> None:
    for name in inputs:
        if name not in operation.inputs:
            raise problem(name, "is unknown to the operation")


def _path(operation: HttpOperation, scope: ReferenceScope) -> str:
    return "".join("/" + _segment(each, operation, scope) for each in operation.segments)


def _segment(template: str, operation: HttpOperation, scope: ReferenceScope) -> str:
    return REFERENCE.sub(lambda found: _part(found[1], operation, scope), template)


def _part(reference: str, operation: HttpOperation, scope: ReferenceScope) -> str:
    name, value = reference.removeprefix("in."), scalar(scope.value(reference), reference)
    try:
        return "/".join(map(_render_segment, value.split("/") if name in operation.slashes else [value]))
    except ValueError as error:
        raise problem(name, str(error)) from error


def _render_segment(text: str) -> str:
    """Write C{text} as exactly one segment of a path: nothing in it can end the segment or climb.

    :raises ValueError: it is empty, C{.}, C{..}, or holds a control character.
    """
    if text in {"", ".", ".."}:
        raise ValueError("must not be empty, '.' or '..'")
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise ValueError("must not hold a control character")
    return quote(text, safe="", errors="strict")


def _query(operation: HttpOperation, scope: ReferenceScope) -> str:
    pairs = _url_encoded(operation.query, scope)
    return f"?{pairs}" if pairs else ""


def _url_encoded(templates: Mapping[str, Template], scope: ReferenceScope) -> str:
    try:
        return _form(pair for name, template in templates.items() for pair in _pairs(name, template, scope))
    except UnicodeEncodeError as error:
        raise InvalidRequest("An input is no proper Unicode text.") from error


def _form(pairs: Iterable[tuple[str, str]]) -> str:
    """Write C{pairs} as a query (without the question mark) or as a form body."""
    return urlencode(list(pairs), quote_via=quote, safe="", errors="strict")


def _pairs(name: str, template: Template, scope: ReferenceScope) -> Iterator[tuple[str, str]]:
    """Yield a value once, an array's elements each, an omitted one or null not at all."""
    value = render(template, scope)
    several = isinstance(value, Sequence) and not isinstance(value, str)
    for each in value if several else [value]:  # type: ignore[union-attr]
        if each is not None and not isinstance(each, Omitted):
            yield name, scalar(each, name)


def _headers(operation: HttpOperation, media_type: str, scope: ReferenceScope) -> Iterator[tuple[str, str]]:
    named = {name.lower() for name in operation.headers}
    if "accept" not in named:
        yield "Accept", _ACCEPTS[operation.answer]
    if media_type and "content-type" not in named:
        yield "Content-Type", media_type
    for name, template in operation.headers.items():
        value = _header(name, template, scope)
        if value is not None:
            yield name, value


def _header(name: str, template: str, scope: ReferenceScope) -> str | None:
    value = render(template, scope)
    if value is None or isinstance(value, Omitted):
        return None
    try:
        return header_value(scalar(value, name))
    except ValueError as error:
        raise InvalidRequest(f"The header {name} {error}.") from error


def _encode(body: RequestBody | None, scope: ReferenceScope) -> tuple[bytes | None, str, Sequence[UploadPart]]:
    """Return the body, its type, and the parts of one that carries files."""
    if body is None:
        return None, "", ()
    if body.kind in (MULTIPART, FILE) and isinstance(body.template, Mapping):
        return encode_upload(body.kind, body.template, scope)
    return _encode_text(body, scope), _CONTENT_TYPES[body.kind], ()


def _encode_text(body: RequestBody, scope: ReferenceScope) -> bytes:
    if body.kind == "form" and isinstance(body.template, Mapping):
        return _url_encoded(body.template, scope).encode("ascii")
    if body.kind == "mail" and isinstance(body.template, Mapping):
        return write_mail(body.template, scope)
    try:
        if body.kind == "text":
            return text(str(body.template), scope).encode("utf-8")
        value = render(body.template, scope)
        return canonical(None if isinstance(value, Omitted) else value)
    except ValueError as error:
        raise InvalidRequest("An input holds a number or a text that JSON cannot carry.") from error
