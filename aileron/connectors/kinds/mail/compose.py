"""Writes a message (RFC 5322) from an operation's inputs, which cannot add a header."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import quote

from attrs import frozen

from aileron.base.addresses import read_host
from aileron.base.attachments import UNKNOWN_MEDIA_TYPE, media_type_of, regular_base64
from aileron.base.json import JSON
from aileron.connectors._headers import encode_line, read_line
from aileron.connectors._template import problem
from aileron.model.errors import InvalidRequest

MOST_RECIPIENTS = 100
_MOST_ADDRESS_CHARACTERS = 400
_MOST_ATTACHMENTS = 20
_MOST_BYTES = 4 * 1024 * 1024
_POLICY = policy.SMTP.clone(cte_type="7bit")
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_NAMED = re.compile(r"(?P<name>[^<>]*)<(?P<address>[^<>]*)>\s*")
_MESSAGE_ID = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]{1,240}>")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*")
_LINE_END = re.compile(r"\r\n?")
_COMPOSITE = ("message/", "multipart/")  # never encoded (RFC 2046): their lines could end the part

SHARED = frozenset({"to", "cc", "bcc", "subject", "text", "reply_to", "in_reply_to", "attachments"})
"""The inputs of a message."""


@frozen
class Composed:
    """A complete message without its date.

    :ivar recipients: every address of the envelope, once.
    """

    message_id: str
    recipients: tuple[str, ...]
    content: bytes


def message_id(effect_key: str, sender: Address) -> str:
    """Return the Message-ID of an effect, which is unique to its key."""
    mark = hashlib.sha256(effect_key.encode("utf-8")).hexdigest()[:40]
    return f"<aileron.{mark}@{sender.domain}>"


def read_mail_address(text: str) -> Address:
    """Parse C{ada@example.org} or C{Ada Example <ada@example.org>}.

    :raises ValueError: if the address is invalid. The message is the end of a sentence.
    """
    read_line(text)
    if len(text) > _MOST_ADDRESS_CHARACTERS:
        raise ValueError(f"must have {_MOST_ADDRESS_CHARACTERS} characters at most")
    named = _NAMED.fullmatch(text.strip())
    name, address = (named["name"].strip(), named["address"]) if named else ("", text.strip())
    local, _, domain = address.rpartition("@")
    if len(local) > 64 or not _LOCAL.fullmatch(local):
        raise ValueError("must be an address such as ada@example.org, in ASCII, or Ada Example <ada@example.org>")
    if name.startswith('"') and name.endswith('"'):
        name = name[1:-1]
    return Address(name, local, read_host(domain))


def compose(sender: Address, inputs: Mapping[str, JSON], effect_key: str, *, for_draft: bool = False) -> Composed:
    """Return the message. Equal inputs give equal bytes.

    :param for_draft: whether it is a draft. A draft may have no recipients, and has a Bcc header.
    :raises InvalidRequest: if an input is unknown, missing or malformed, or the message is too large.
    """
    for name in inputs:
        if name not in SHARED:
            raise problem(name, "is unknown to the operation")
    given = {name: _addresses(inputs, name) for name in ("to", "cc", "bcc", "reply_to")}
    recipients = tuple({each.addr_spec: None for name in ("to", "cc", "bcc") for each in given[name]})
    if not for_draft and not recipients:
        raise problem("to", "is needed")
    if len(recipients) > MOST_RECIPIENTS:
        raise problem("to", f"and cc and bcc must have {MOST_RECIPIENTS} addresses at most")
    identifier = message_id(effect_key, sender)
    shown = (("To", "to"), ("Cc", "cc"), ("Reply-To", "reply_to"), *((("Bcc", "bcc"),) * for_draft))
    lines = [
        _written("From", [sender]),
        *(_written(header, given[name]) for header, name in shown if given[name]),
        f"Subject: {encode_line(_line(inputs, 'subject', required=not for_draft))}",
        f"Message-ID: {identifier}",
        *_replied(inputs),
    ]
    content = "".join(f"{line}\r\n" for line in lines).encode("ascii") + _body(inputs, identifier)
    if len(content) > _MOST_BYTES:
        raise InvalidRequest(f"The message has more than {_MOST_BYTES // 1024 // 1024} MiB.")
    return Composed(identifier, recipients, content)


def _written(header: str, addresses: Sequence[Address]) -> str:
    """Return a header of addresses, one per line."""
    return f"{header}: " + ",\r\n ".join(map(write_mail_address, addresses))


def write_mail_address(address: Address) -> str:
    """Encode an address for a header."""
    name = address.display_name
    if not name:
        return address.addr_spec
    written = encode_line(name)
    if written != name:
        return f"{written}\r\n <{address.addr_spec}>"
    return f"{name if _ATOMS.fullmatch(name) else chr(34) + quote(name) + chr(34)} <{address.addr_spec}>"


def _body(inputs: Mapping[str, JSON], identifier: str) -> bytes:
    """Return the encoded text and attachments, with their MIME headers.

    :raises InvalidRequest: if the text or an attachment is not valid.
    """
    text = inputs.get("text", "")
    if not isinstance(text, str):
        raise problem("text", "must be a text")
    message = EmailMessage(_POLICY)
    try:
        message.set_content(_LINE_END.sub("\n", text))
        parts = list(_attachments(inputs))
        for name, media_type, content in parts:
            main, _, sub = media_type.partition("/")
            message.add_attachment(content, maintype=main, subtype=sub, filename=name)
    except UnicodeEncodeError:
        raise problem("text", "is no proper Unicode text") from None
    if parts:
        message.set_boundary(f"=_{identifier[1:].partition('@')[0]}")
    return message.as_bytes()


def _attachments(inputs: Mapping[str, JSON]) -> Iterator[tuple[str, str, bytes]]:
    """Yield name, media type and bytes of each attachment.

    :raises InvalidRequest: if there are too many attachments, or one is not valid.
    """
    given = inputs.get("attachments")
    if given is None:
        return
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) > _MOST_ATTACHMENTS:
        raise problem("attachments", f"must be an array of {_MOST_ATTACHMENTS} at most")
    for each in given:
        if not isinstance(each, Mapping) or not each.keys() <= {"name", "media_type", "text", "base64"}:
            raise problem("attachments", "must each have a name, and text or base64, and may have a media_type")
        name, text, encoded = _line(each, "name", required=True), each.get("text"), each.get("base64")
        kind = media_type_of(_line(each, "media_type") or "")
        if kind.startswith(_COMPOSITE):
            kind = UNKNOWN_MEDIA_TYPE
        if isinstance(text, str) and encoded is None:
            yield name, kind, text.encode("utf-8")
        elif isinstance(encoded, str) and text is None and regular_base64(encoded) is not None:
            yield name, kind, base64.b64decode(regular_base64(encoded) or "")
        else:
            raise problem("attachments", "must each have text, or valid base64")


def _addresses(inputs: Mapping[str, JSON], name: str) -> tuple[Address, ...]:
    value = inputs.get(name)
    several = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(several, Sequence) or len(several) > MOST_RECIPIENTS:
        raise problem(name, f"must be an address, or an array of {MOST_RECIPIENTS} at most")
    found = []
    for each in several:
        if not isinstance(each, str):
            raise problem(name, "must be an address, or an array of them")
        try:
            found.append(read_mail_address(each))
        except ValueError as error:
            raise problem(name, str(error)) from None
    return tuple(found)


def _line(inputs: Mapping[str, JSON], name: str, *, required: bool = False) -> str:
    value = inputs.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise problem(name, "must be a text" if value is not None else "is needed")
    try:
        return read_line(value)
    except ValueError as error:
        raise problem(name, str(error)) from None


def _replied(inputs: Mapping[str, JSON]) -> Iterator[str]:
    """Yield the headers that make a message a reply, or nothing if C{in_reply_to} is not given.

    :raises InvalidRequest: if C{in_reply_to} is not a Message-ID.
    """
    text = _line(inputs, "in_reply_to")
    if not text:
        return
    if not _MESSAGE_ID.fullmatch(text):
        raise problem("in_reply_to", "must be a Message-ID, such as <a1b2@example.org>")
    yield f"In-Reply-To: {text}"
    yield f"References: {text}"
