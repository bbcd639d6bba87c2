"""Bodies with files: C{multipart/form-data} (RFC 7578), and the bytes of one file."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from aileron.base.attachments import media_type_of, regular_base64
from aileron.base.json import JSON, canonical
from aileron.base.tables import FileTable
from aileron.connectors._template import (
    REFERENCE,
    Omitted,
    ReferenceScope,
    Template,
    check_references,
    problem,
    references,
    render,
    scalar,
)
from aileron.model.connectors import UploadPart
from aileron.model.errors import InvalidRequest

MULTIPART, FILE = "multipart", "file"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
KEYS = ("filename", "media_type", "base64", "text")
FILES, JSON_PART = "files", "json"
"""A part that is written as many files as its input lists, each with its L{KEYS}; and one that is written as JSON."""


def read_upload(table: FileTable, kind: str) -> Template:
    """Check a table C{multipart} or C{file}, and return it. Faults are added to the table."""
    inside = table.table(kind)
    for name, value in inside.values.items() if kind == MULTIPART else ():
        if isinstance(value, dict) and value.keys() & {FILES, JSON_PART}:
            _check_lone(inside.table(name))
        elif isinstance(value, dict):
            _check_file(inside.table(name), "filename")
        elif inside.text(name):
            check_references(inside, name, value)
    if kind == FILE:
        _check_file(inside)
    elif not inside.values:
        table.fault(kind, "must have at least one part")
    return dict(inside.values)


def _check_lone(table: FileTable) -> None:
    """Check a part that consists of one reference to an input. Faults are added to the table."""
    for key in (FILES, JSON_PART):
        text = table.text(key, required=False)
        check_references(table, key, text)
        if text and not REFERENCE.fullmatch(text):
            table.fault(key, "must be exactly one ${in.<name>}")
    if len(table.values) > 1:
        table.fault(FILES, "must stand alone")
    table.close()


def _check_file(table: FileTable, *required: str) -> None:
    for key in KEYS:
        check_references(table, key, table.text(key, required=key in {"media_type", *required}))
    if ("base64" in table.values) is ("text" in table.values):
        table.fault("base64", "must say what its content is: one of base64 and text")
    table.close()


def encode_upload(
    kind: str, template: Mapping[str, Template], scope: ReferenceScope
) -> tuple[bytes, str, list[UploadPart]]:
    """Return the body, its media type, and its parts. Equal inputs give equal bytes.

    :raises InvalidRequest: if an input is missing, has another type than its part needs, or is no valid base64, media
        type or name.
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
    """Yield the parts of one name: one for each element of an array. Omitted and null inputs have no part.

    :raises InvalidRequest: if an input cannot be encoded as its part.
    """
    if isinstance(template, Mapping) and template.keys() & {FILES, JSON_PART}:
        yield from _lone(name, template, scope)
        return
    if isinstance(template, Mapping):
        yield from _file(name, template, scope)
        return
    value = render(template, scope)
    several = isinstance(value, Sequence) and not isinstance(value, str)
    for each in value if several else [value]:  # type: ignore[union-attr]
        if each is not None and not isinstance(each, Omitted):
            yield UploadPart(name, _bytes(scalar(each, name)))


def _lone(name: str, template: Mapping[str, JSON], scope: ReferenceScope) -> Iterator[UploadPart]:
    """Yield the parts of an input that lists files, or the one part of an input encoded as JSON.

    :raises InvalidRequest: if the input is no array of files, or cannot be encoded as JSON.
    """
    value = render(next(iter(template.values())), scope)
    if value is None or isinstance(value, Omitted):
        return
    if JSON_PART in template:
        try:
            yield UploadPart(name, canonical(value), "application/json")
        except ValueError as error:
            raise problem(name, "holds a number or a text that JSON cannot carry") from error
        return
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise problem(name, "must be an array of files")
    for each in value:
        if not isinstance(each, Mapping) or each.keys() - {*KEYS} or not {"filename", "media_type"} <= each.keys():
            raise problem(name, "must have filename, media_type and base64 or text for each file")
        if ("base64" in each) is ("text" in each):
            raise problem(name, "must say what the content of each file is: one of base64 and text")
        yield from _content(name, each, name)


def _file(name: str, template: Mapping[str, JSON], scope: ReferenceScope) -> Iterator[UploadPart]:
    given = template["base64" if "base64" in template else "text"]
    value = render(given, scope)
    if value is None or isinstance(value, Omitted):
        return
    rendered = {key: render(each, scope) for key, each in template.items()}
    yield from _content(name, rendered, ", ".join(sorted(references(given))).removeprefix("in.") or name)


def _content(name: str, file: Mapping[str, JSON | Omitted], said: str) -> Iterator[UploadPart]:
    """Yield the part of a file whose keys are rendered.

    :param said: the name of the input with its content.
    :raises InvalidRequest: if the content is no valid base64, or the media type is not valid.
    """
    encoded = "base64" in file
    text = scalar(file["base64" if encoded else "text"], said)
    regular = regular_base64(text) if encoded else ""
    if regular is None:
        raise problem(said, "must be base64")
    media_type = _value(file, "media_type")
    if media_type_of(media_type) != media_type:
        raise InvalidRequest("The media type of a file must be one in lower case, such as image/png.")
    content = base64.b64decode(regular) if encoded else _bytes(text)
    yield UploadPart(name, content, media_type, _value(file, "filename") if "filename" in file else None)


def _value(file: Mapping[str, JSON | Omitted], key: str) -> str:
    text = scalar(file[key], key)
    if not _bytes(text) or _CONTROL.search(text):
        raise InvalidRequest(f"The {key.replace('_', ' ')} of a file must not be empty or hold a control character.")
    return text


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest("An input is no proper Unicode text.") from None
