"""Forwards the requests of an agent's own tools unchanged, and returns whole answers. For all kinds of connector."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from twisted.web.client import URI

from aileron.base.addresses import PARTIAL_HEADERS
from aileron.base.attachments import regular_base64
from aileron.base.json import JSON, compact
from aileron.base.tables import TextRule
from aileron.credentials import CONTENT_HEADER, KINDS, UNSIGNED_CHUNKS
from aileron.model.connectors import (
    READ,
    ConnectorDescription,
    Operation,
    Outcome,
    Request,
    StoredBody,
)
from aileron.model.errors import ExternalApiError
from aileron.redaction import REDACTED, Redactor

from ._answer import ServiceAnswer, may_pass
from ._headers import OURS, header_name, header_value
from ._reach import Reach, refuse_strangers
from ._template import problem

MOST_FORWARDED_BYTES = 1024 * 1024
"""The limit of the body of a write, and of the answer to it."""

MOST_READ_BYTES = 16 * 1024 * 1024
"""The limit of the answer to a read."""

MOST_HEADERS = 64
SERVICE = re.compile(r"[a-z][a-z0-9-]{0,39}")
SERVICE_RULE = TextRule(SERVICE.fullmatch, "must be a name in a-z, 0-9 and '-' that begins with a letter")
"""The rule for the name by which a user asks for the own tools of a service."""

FORWARD_SECONDS, STORED_SECONDS = 60.0, 300.0
"""The most seconds for a request, and for one whose body is sent from a file."""

FORWARDED_INPUTS = frozenset(
    "host method target headers body body_base64 recognised content size beginning parts".split()
)

_METHOD = re.compile(r"[A-Z]{1,20}")
_TARGET = re.compile(r"/[\x21-\x7e]{0,8191}")
_LENGTH = re.compile(r"[1-9][0-9]{0,17}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REQUEST_TIMEOUT, _UNAUTHORIZED = 408, 401
_MOVED, _BUCKET_REGION = 301, "x-amz-bucket-region"
_ELSEWHERE = frozenset((307, 308))  # the request is to be sent to another place, with the same method: it was not done
_LEFT_OUT = OURS | PARTIAL_HEADERS
_KEPT_BACK = frozenset(
    (
        *("connection", "content-encoding", "content-length", "keep-alive", "proxy-authenticate", "set-cookie"),
        *("set-cookie2", "trailer", "transfer-encoding", "upgrade", "www-authenticate", "authentication-info"),
        *("alt-svc", "proxy-connection", "public-key-pins", "strict-transport-security", "te"),
    )
)
"""Headers of an answer that are not handed on: they concern the connection, or the login of the credential."""


def prepare_forwarded(reach: Reach, operation: Operation, inputs: Mapping[str, JSON], base_url: str) -> Request:
    """Return the request with exactly the method, target, headers and bytes that the inputs give.

    :raises InvalidRequest: if an input is missing or invalid, a header is one that only the daemon sets, or the target
        would not be sent exactly as it is.
    :raises CapabilityDenied: if the connector covers no such host.
    """
    refuse_strangers(inputs, FORWARDED_INPUTS)
    about = reach.about
    need = about.credential
    host, target = _text(inputs, "host"), _text(inputs, "target")
    return Request(
        connector=about.name,
        operation=operation.name,
        effect=operation.effect,
        idempotent=operation.idempotent,
        method=_matching(inputs, "method", _METHOD, "must be a method in upper case"),
        url=_write_url(reach.find_forwarding_url(host, base_url), target),
        headers=_read_headers(about, inputs.get("headers", ())),
        body=_read_body(inputs),
        stored=_read_stored(inputs),
        credential_header=(need.header or None) if need else None,
        credential_query=need.query if need else None,
        credential_path=need.path if need else None,
    )


def _write_url(origin: str, target: str) -> str:
    """Return the URL of a target.

    :raises InvalidRequest: if the HTTP client would send another target.
    """
    url = f"{origin}{target}"
    # guard of own tools: what is sent is the target that was shown
    #    -> connectors.kinds.http.test_forward.PrepareTests.test_target
    if not _TARGET.fullmatch(target) or "#" in target or URI.fromBytes(url.encode()).originForm != target.encode():
        raise problem("target", "must be a path in visible ASCII that can be sent exactly as it is")
    return url


def _text(inputs: Mapping[str, JSON], name: str) -> str:
    value = inputs.get(name)
    if not isinstance(value, str):
        raise problem(name, "must be a text")
    return value


def _matching(inputs: Mapping[str, JSON], name: str, pattern: re.Pattern[str], what: str) -> str:
    value = _text(inputs, name)
    if not pattern.fullmatch(value):
        raise problem(name, what)
    return value


def _read_headers(about: ConnectorDescription, given: JSON) -> tuple[tuple[str, str], ...]:
    """Return the headers, which are given as lines with a colon, without those that the daemon sets itself.

    Headers that ask for a part of an answer are left out too: no secret could be found in a part.

    :raises InvalidRequest: if one is invalid, or may carry a credential.
    """
    if isinstance(given, (str, Mapping)) or not isinstance(given, (list, tuple)) or len(given) > MOST_HEADERS:
        raise problem("headers", f"must be a list of at most {MOST_HEADERS} lines")
    need = about.credential
    filled = {"authorization", "cookie"}
    if need is not None:
        filled |= {need.header.lower(), *KINDS[need.kind].reserved}
    found = []
    for line in given:
        name, colon, value = line.partition(": ") if isinstance(line, str) else ("", "", "")
        # guard of own tools: a tool's request carries no credential of its own
        #    -> connectors.kinds.http.test_forward.PrepareTests.test_credential
        if not colon or (name.lower() in filled and (name.lower(), value) != (CONTENT_HEADER, UNSIGNED_CHUNKS)):
            raise problem("headers", f"has {name[:100]!r}, which is no header that a tool may set")
        if name.lower() in _LEFT_OUT:
            continue
        try:
            found.append((header_name(name), header_value(value)))
        except ValueError as error:
            raise problem("headers", f"has {name[:100]!r}, which {error}") from None
    return tuple(found)


def _read_body(inputs: Mapping[str, JSON]) -> bytes | None:
    """Return the body, or None if there is none.

    :raises InvalidRequest: if it is given twice, is no base64, or is too long.
    """
    text, encoded = inputs.get("body"), inputs.get("body_base64")
    if text is not None and encoded is not None:
        raise problem("body", "must not stand beside body_base64")
    if text is None and encoded is None:
        return None
    if encoded is None:
        body = _text(inputs, "body").encode()
    else:
        regular = regular_base64(_text(inputs, "body_base64"))
        if regular is None:
            raise problem("body_base64", "must be base64")
        body = base64.b64decode(regular)
    if len(body) > MOST_FORWARDED_BYTES:
        raise problem("body", f"must be at most {MOST_FORWARDED_BYTES} bytes")
    return body


def _read_stored(inputs: Mapping[str, JSON]) -> StoredBody | None:
    """Return the stored body, or None if there is none.

    :raises InvalidRequest: if it is given beside another body, or is not described by a digest and a size.
    """
    digest, size = inputs.get("content"), inputs.get("size")
    if digest is None and size is None:
        return None
    if any(inputs.get(name) is not None for name in ("body", "body_base64")):
        raise problem("content", "must not stand beside another body")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise problem("content", "must be a digest")
    if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
        raise problem("size", "must be a number of bytes")
    summary = {name: inputs[name] for name in ("beginning", "parts") if inputs.get(name)}
    return StoredBody(digest, size, summary)


def judge_forwarded(name: str, effect: str, answer: ServiceAnswer, echo: Redactor, wait: float | None) -> Outcome:
    """Return the outcome of a forwarded request.

    The output of a success is the whole answer, see L{write_answer}. So is that of a read with any other status than
    401. The notes of a write that was refused or is in doubt contain the whole answer as JSON.

    :param wait: the seconds to wait that the service asks for, or None.
    """
    whole, status = write_answer(answer, echo), answer.status
    if 200 <= status <= 299 or (effect == READ and status != _UNAUTHORIZED):
        return Outcome(output=whole, status=status, retry_after_seconds=wait)
    return Outcome(
        fault=ExternalApiError(f"{name} answered with status {status}.", {"status": status}).fault(),
        classified=_is_elsewhere(answer) or (400 <= status <= 499 and status != _REQUEST_TIMEOUT),
        retry_after_seconds=wait if may_pass(status) else None,
        status=status,
        notes={"answer": {"type": "application/json", "text": compact(whole)}},
    )


def _is_elsewhere(answer: ServiceAnswer) -> bool:
    """Return whether the service did not do the request but names another place for it, as S3 does with 301."""
    return answer.status in _ELSEWHERE or (answer.status == _MOVED and _BUCKET_REGION in answer.headers)


def write_answer(answer: ServiceAnswer, echo: Redactor) -> JSON:
    """Return a whole answer as JSON: C{status}, C{reason}, C{headers} as lines, and C{body} or C{body_base64}.

    The secret is replaced everywhere. A body in which the secret cannot be searched for is left out.
    """
    reason, fields = (answer.head[0], answer.head[1:]) if answer.head else ("", ())
    pairs = zip(fields[::2], fields[1::2], strict=True)
    headers: list[JSON] = [
        f"{key}: {echo.text(value)}" for key, value in pairs if key.lower() not in _KEPT_BACK and _is_clean(value)
    ]
    length = answer.headers.get("content-length", "")
    if not answer.body and _LENGTH.fullmatch(length):  # the answer to HEAD: the length of what GET would return
        headers.append(f"Content-Length: {length}")
    encoding = answer.headers.get("content-encoding", "identity").lower()
    body = write_body(answer.body, echo) if encoding == "identity" else {"body": "", "withheld": "encoded"}
    return {"status": answer.status, "reason": echo.text(reason)[:200], "headers": headers, **body}


def _is_clean(value: str) -> bool:
    return not _CONTROL.search(value) and "\n" not in value and "\r" not in value


def write_body(content: bytes, echo: Redactor) -> dict[str, JSON]:
    """Return a body as C{body} if it is text without control characters, else as C{body_base64}.

    The secret is replaced in texts. Other content that contains it is withheld.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if not _CONTROL.search(text):
        return {"body": echo.text(text)}
    # guard of own tools: content that holds a secret is withheld
    #    -> connectors.kinds.http.test_forward.AnswerTests.test_binary_echo
    if echo.holds(content):
        return {"body": REDACTED, "withheld": "secret"}
    return {"body_base64": base64.b64encode(content).decode("ascii")}


def read_whole_body(whole: JSON) -> bytes:
    """Return the body of a whole answer, as L{write_answer} wrote it."""
    if not isinstance(whole, Mapping):
        return b""
    text, encoded = whole.get("body"), whole.get("body_base64")
    if isinstance(text, str):
        return text.encode("utf-8", "replace")
    return base64.b64decode(encoded) if isinstance(encoded, str) else b""
