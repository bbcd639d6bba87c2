"""Builds the request of an operation from its inputs: pure, so that it can be shown, hashed and built again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from aileron.connectors._headers import header_value
from aileron.connectors._reach import encode_json, refuse_strangers
from aileron.connectors._template import (
    REFERENCE,
    Omitted,
    ReferenceScope,
    Template,
    inputs_of,
    problem,
    render,
    scalar,
    text,
)
from aileron.model.connectors import Request, UploadPart
from aileron.model.errors import InvalidRequest

from ._joined import JoinedInput
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
    "auto": "application/json, */*;q=0.5",
}


def prepare(spec: HttpSpec, operation: HttpOperation, base_url: str, scope: ReferenceScope) -> Request:
    """Build the request of C{operation}.

    :raises InvalidRequest: if no request can be built from the inputs.
    :raises CapabilityDenied: if the host is not declared.
    """
    base = spec.reach.find_base_url(operation.place, base_url)
    refuse_strangers(scope.inputs, operation.inputs)
    body, media_type, parts = _encode(operation, scope)
    description, need = spec.description, spec.description.credential
    return Request(
        connector=description.name,
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


def _path(operation: HttpOperation, scope: ReferenceScope) -> str:
    return "".join("/" + _segment(each, operation, scope) for each in operation.segments)


def _segment(template: str, operation: HttpOperation, scope: ReferenceScope) -> str:
    return REFERENCE.sub(lambda found: _part(found[1], operation, scope), template)


def _part(reference: str, operation: HttpOperation, scope: ReferenceScope) -> str:
    name, given = reference.removeprefix("in."), scope.value(reference)
    joined = operation.joined.get(name)
    try:
        if joined and not isinstance(given, Omitted) and (written := joined.write(given, name, _render_segment)):
            return written
        value = scalar(given, reference)
        return "/".join(map(_render_segment, value.split("/") if name in operation.slashes else [value]))
    except ValueError as error:
        raise problem(name, str(error)) from error


def _render_segment(text: str) -> str:
    """Encode C{text} as exactly one segment of a path.

    :raises ValueError: if the text is empty, C{.}, C{..}, or has a control character.
    """
    if text in {"", ".", ".."}:
        raise ValueError("must not be empty, '.' or '..'")
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise ValueError("must not hold a control character")
    return quote(text, safe="", errors="strict")


def _query(operation: HttpOperation, scope: ReferenceScope) -> str:
    pairs = _url_encoded(operation.query, operation, scope)
    return f"?{pairs}" if pairs else ""


def _url_encoded(templates: Mapping[str, Template], operation: HttpOperation, scope: ReferenceScope) -> str:
    """Encode a query (without the question mark) or a form body.

    :raises InvalidRequest: if an input is no proper Unicode text, or of a type that cannot be a text.
    """
    try:
        return "&".join(
            f"{_quote(name)}={value}"
            for name, template in templates.items()
            for value in _values(name, template, operation, scope)
        )
    except UnicodeEncodeError as error:
        raise InvalidRequest("An input is no proper Unicode text.") from error


def _quote(text: str) -> str:
    return quote(text, safe="", errors="strict")


def _values(name: str, template: Template, operation: HttpOperation, scope: ReferenceScope) -> Iterator[str]:
    """Yield the encoded values of one name in a query or form.

    An array has a value for each element, a joined input one text. A value that is omitted or null is left out.

    :raises InvalidRequest: if an input is of a type that cannot be a text.
    """
    value, joined = render(template, scope), _joined(template, operation)
    if joined is not None:
        written = None if isinstance(value, Omitted) else joined.write(value, name, _quote)
        yield from () if written is None else (written,)
        return
    several = isinstance(value, Sequence) and not isinstance(value, str)
    for each in value if several else [value]:  # type: ignore[union-attr]
        if each is not None and not isinstance(each, Omitted):
            yield _quote(scalar(each, name))


def _joined(template: Template, operation: HttpOperation) -> JoinedInput | None:
    """Return the rule by which the parts of an input are joined into one text, or None if there is no such rule.

    :param template: a template. Only one that is a single reference to an input can have such a rule.
    """
    lone = REFERENCE.fullmatch(template) if isinstance(template, str) and operation.joined else None
    return operation.joined.get(lone[1].removeprefix("in.")) if lone else None


def _headers(operation: HttpOperation, media_type: str, scope: ReferenceScope) -> Iterator[tuple[str, str]]:
    named = {name.lower() for name in operation.headers}
    if "accept" not in named:
        yield "Accept", _ACCEPTS[operation.answer]
    if media_type and "content-type" not in named:
        yield "Content-Type", media_type
    for name, template in operation.headers.items():
        if not media_type and operation.body is not None and name.lower() == "content-type":
            continue  # the body is not sent
        value = _header(name, template, operation, scope)
        if value is not None:
            yield name, value


def _header(name: str, template: str, operation: HttpOperation, scope: ReferenceScope) -> str | None:
    value, joined = render(template, scope), _joined(template, operation)
    if joined is not None and not isinstance(value, Omitted):
        value = joined.write(value, name, str)
    if value is None or isinstance(value, Omitted):
        return None
    try:
        return header_value(scalar(value, name))
    except ValueError as error:
        raise InvalidRequest(f"The header {name} {error}.") from error


def _encode(operation: HttpOperation, scope: ReferenceScope) -> tuple[bytes | None, str, Sequence[UploadPart]]:
    """Return the body, its media type, and the parts of an upload. If no body is sent, return None, C{""} and C{()}.

    :raises InvalidRequest: if an input cannot be encoded.
    """
    body = operation.body
    if body is None or _is_left_out(operation, body, scope):
        return None, "", ()
    if body.kind in (MULTIPART, FILE) and isinstance(body.template, Mapping):
        return encode_upload(body.kind, body.template, scope)
    return _encode_text(operation, body, scope), _CONTENT_TYPES[body.kind], ()


def _is_left_out(operation: HttpOperation, body: RequestBody, scope: ReferenceScope) -> bool:
    """Return whether no body is sent: its only input, or every input of an optional body, was not given."""
    lone = REFERENCE.fullmatch(body.template) if isinstance(body.template, str) else None
    if lone is not None:
        return isinstance(scope.value(lone[1]), Omitted)
    return operation.optional_body and not inputs_of(body.template) & scope.inputs.keys()


def _encode_text(operation: HttpOperation, body: RequestBody, scope: ReferenceScope) -> bytes:
    if body.kind == "form" and isinstance(body.template, Mapping):
        return _url_encoded(body.template, operation, scope).encode("ascii")
    if body.kind == "mail" and isinstance(body.template, Mapping):
        return write_mail(body.template, scope)
    if body.kind != "text":
        return encode_json(body.template, scope)
    try:
        return text(str(body.template), scope).encode("utf-8")
    except ValueError as error:
        raise InvalidRequest("An input holds a number or a text that JSON cannot carry.") from error
