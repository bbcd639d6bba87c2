"""Bodies that carry files: C{multipart/form-data} (RFC 7578), and the bytes of one file."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256

from aileron.connectors._template import (
    Omitted,
    ReferenceScope,
    Template,
    check_references,
    problem,
    references,
    render,
    scalar,
)
from aileron.errors import InvalidRequest
from aileron.tables import FileTable
from aileron.values import JSON, UploadPart, media_type_of, regular_base64

MULTIPART, FILE = "multipart", "file"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
KEYS = ("filename", "media_type", "base64", "text")


def read_upload(table: FileTable, kind: str) -> Template:
    """Check a table C{multipart}, or C{file}, and return it; faults go where the table's go."""
    inside = table.table(kind)
    for name, value in inside.values.items() if kind == MULTIPART else ():
        if isinstance(value, dict):
            _check_file(inside.table(name), "filename")
        elif inside.text(name):
            check_references(inside, name, value)
    if kind == FILE:
        _check_file(inside)
    elif not inside.values:
        table.fault(kind, "must have at least one part")
    return dict(inside.values)


def _check_file(table: FileTable, *required: str) -> None:
    for key in KEYS:
        check_references(table, key, table.text(key, required=key in {"media_type", *required}))
    if ("base64" in table.values) is ("text" in table.values):
        table.fault("base64", "must say what its content is: one of base64 and text")
    table.close()


def encode_upload(
    kind: str, template: Mapping[str, Template], scope: ReferenceScope
) -> tuple[bytes, str, list[UploadPart]]:
    """Return the body, its type, and the parts that it is made of; the same inputs make the same bytes.

    :raises InvalidRequest: an input is no base64, no media type, or no name.
    """
    if kind == FILE:
        parts = list(_file("", template, scope))
        content, media_type = (parts[0].content, parts[0].media_type) if parts else (b"", "application/octet-stream")
        return content, media_type, parts
    parts = [part for name, each in template.items() for part in _part(name, each, scope)]
    hashed = sha256(b"".join(sha256(each.head + each.content).digest() for each in parts))
    boundary = f"aileron-{hashed.hexdigest()[:40]}"
    pieces = (b"--%b\r\n%b\r\n%b\r\n" % (boundary.encode(), each.head, each.content) for each in parts)
    return b"".join(pieces) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}", parts


def _part(name: str, template: Template, scope: ReferenceScope) -> Iterator[UploadPart]:
    """Make a part; none of what was not given."""
    if isinstance(template, Mapping):
        yield from _file(name, template, scope)
        return
    value = render(template, scope)
    if value is not None and not isinstance(value, Omitted):
        yield UploadPart(name, _bytes(scalar(value, name)))


def _file(name: str, template: Mapping[str, JSON], scope: ReferenceScope) -> Iterator[UploadPart]:
    encoded = "base64" in template
    given = template["base64" if encoded else "text"]
    value = render(given, scope)
    if value is None or isinstance(value, Omitted):
        return
    said = ", ".join(sorted(references(given))).removeprefix("in.") or name
    text = scalar(value, said)
    regular = regular_base64(text) if encoded else ""
    if regular is None:
        raise problem(said, "must be base64")
    media_type = _value(template, "media_type", scope)
    if media_type_of(media_type) != media_type:
        raise InvalidRequest("The media type of a file must be one in lower case, such as image/png.")
    content = base64.b64decode(regular) if encoded else _bytes(text)
    yield UploadPart(name, content, media_type, _value(template, "filename", scope) if "filename" in template else None)


def _value(template: Mapping[str, JSON], key: str, scope: ReferenceScope) -> str:
    text = scalar(render(template[key], scope), key)
    if not _bytes(text) or _CONTROL.search(text):
        raise InvalidRequest(f"The {key.replace('_', ' ')} of a file must not be empty or hold a control character.")
    return text


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest("An input is no proper Unicode text.") from None
