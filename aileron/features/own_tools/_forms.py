"""The normal form of a tool's request. Repetitions of the same command have equal forms."""

from __future__ import annotations

import re

from aileron.base.json import JSON, canonical, digest, digest_of_bytes, loads_strict
from aileron.model.own_tools import ToolDeclaration

from ._bodies import BodyReading
from .values import ToolRequest

_VARYING = frozenset(
    "accept-encoding accept-language authorization baggage connection content-length date expect host keep-alive "
    "traceparent tracestate user-agent x-amz-date x-amz-security-token x-b3-sampled x-b3-spanid x-b3-traceid x-client-"
    "request-id x-correlation-id x-ms-client-request-id x-ms-date x-ms-return-client-request-id x-request-id".split()
)
"""Headers that differ between two runs of one command, in lower case."""

_USUAL = frozenset(
    "accept accept-charset cache-control content-type graphql-features origin pragma priority referer time-zone "
    "x-github-api-version x-requested-with".split()
)
"""Further headers that do not change what a request does, in lower case."""

_VARYING_PREFIXES = ("amz-sdk-", "x-stainless-")
_BOUNDARY = re.compile(
    r'(?<=;)[ \t]{0,8}boundary=(?:"([^"\\]{1,70})"|([^";,\s]{1,70}))[ \t]{0,8}(?=;|\Z)', re.IGNORECASE
)
_FORM = "application/x-www-form-urlencoded"
_JSON = frozenset(("application/json", "application/x-amz-json-1.0", "application/x-amz-json-1.1"))
_MOST_VALUES = 20_000


def form_digest(
    request: ToolRequest,
    declaration: ToolDeclaration,
    left_out: frozenset[str] = frozenset(),
    varying: frozenset[str] = frozenset(),
    same: str = "",
) -> str:
    """Return the digest of a request's normal form, as C{sha256:<64 hex>}.

    Two requests of one form have the same host, method, target, headers and content. What differs between repetitions
    of one command is not part of it: dates, IDs of attempts, the user agent, the placeholder, the order of members in
    JSON, the boundary of a multipart body, and headers that the connector declares as varying. Requests of the same
    form have the same effect, so the answer to one can be given to the other.

    :param left_out: further headers, in lower case, that are not passed on.
    :param varying: parameters in the content that differ between repetitions.
    :param same: the digest of the normal form of the content, or empty for the usual form.
    """
    content_type = next((value for name, value in request.headers if name.lower() == "content-type"), "")
    boundary, plain_type = split_boundary(content_type)
    left_out |= _VARYING | declaration.varying | declaration.headers
    kept = sorted(
        (name.lower(), value if boundary is None or name.lower() != "content-type" else plain_type)
        for name, value in request.headers
        if name.lower() not in left_out and not name.lower().startswith(_VARYING_PREFIXES)
    )
    body: list[JSON] = [same] if same else _write_body(request, content_type, boundary, varying)
    return digest([request.host, request.method, request.target, kept, *body])


def find_unusual_header(request: ToolRequest, declaration: ToolDeclaration) -> str:
    """Return the name of a header that may change what a request does, such as C{Sudo}, or an empty text."""
    usual = _USUAL | _VARYING | declaration.varying | declaration.headers
    unusual = (name for name, _ in request.headers if name.lower() not in usual)
    return next((name for name in unusual if not name.lower().startswith((*_VARYING_PREFIXES, "sec-"))), "")


def split_boundary(content_type: str) -> tuple[str | None, str]:
    """Return the boundary of a multipart body, or None if there is not exactly one, and the type without it."""
    found = _BOUNDARY.search(content_type) if content_type.lower().startswith("multipart/") else None
    # guard of own tools: a body is divided at no boundary that a server would not find
    #    -> features.own_tools.test_bodies.PartTests.test_other_boundary, instead if found is None
    if found is None or content_type.lower().count("boundary") != found[0].lower().count("boundary"):
        return None, content_type
    return found[1] or found[2], f"{content_type[: found.start()]}boundary={content_type[found.end() :]}"


def read_long(content_type: str) -> BodyReading:
    """Return the reader of a long body. It searches for method overrides if servers read parameters in this type."""
    boundary, plain_type = split_boundary(content_type)
    media_type = plain_type.replace(",", ";").partition(";")[0].strip().lower()
    return BodyReading(boundary, media_type.startswith("multipart/") or not media_type)


def _write_body(request: ToolRequest, content_type: str, boundary: str | None, varying: frozenset[str]) -> list[JSON]:
    """Return the kind of the body's normal form, and its digest, as a list for the digest of the request."""
    if request.long is not None:
        return [*request.long.form]
    body = request.body
    if boundary is not None:
        mark = b"--" + boundary.encode("utf-8")
        # guard of own tools: bodies with other parts are not the same
        #    -> features.own_tools.test_forms.FormTests.test_other_parts, instead plain = body.replace(mark, b"--")
        plain = body.replace(b"\0", b"\0\0").replace(mark, b"\0\1")
        return ["multipart", digest_of_bytes(plain)]
    media_type = content_type.partition(";")[0].strip().lower()
    encoded = any(name.lower() == "content-encoding" for name, _ in request.headers)
    if varying and media_type == _FORM:
        pieces = (each for each in body.split(b"&") if each.partition(b"=")[0].decode("latin-1") not in varying)
        return ["bytes", digest_of_bytes(b"&".join(pieces))]
    if body and not encoded and (media_type in _JSON or media_type.endswith("+json")):
        try:
            value = loads_strict(body, most_values=_MOST_VALUES)
            if isinstance(value, dict):
                value = {name: each for name, each in value.items() if name not in varying}
            return ["json", digest_of_bytes(canonical(value))]
        except ValueError:
            return ["bytes", digest_of_bytes(body)]
    return ["bytes", digest_of_bytes(body)]
