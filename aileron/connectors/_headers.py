"""Header names and values: what a file may set, and what no input can break out of."""

from __future__ import annotations

import re
from email.charset import SHORTEST, Charset
from email.header import Header

from aileron.base.addresses import PARTIAL_HEADERS

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
_MOST_CHARACTERS = 900  # of what stands in one header of a mail
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLAIN = re.compile(r"(?!.*=\?)[\x20-\x7e]*")  # what looks like an encoded word is encoded: it would be read as one

OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)
"""Headers that only the daemon sets."""


def header_name(text: str) -> str:
    """Read the name of a header that a file may set.

    :raises ValueError: it is none, or one that only the daemon sets.
    """
    if not _TOKEN.fullmatch(text):
        raise ValueError("is not a valid header name")
    if text.lower() in OURS:
        raise ValueError("is a header that only the daemon sets")
    if text.lower() in PARTIAL_HEADERS:
        raise ValueError("asks for a part of an answer, in which no secret can be found: it is not sent")
    return text


def header_value(text: str) -> str:
    """C{text} as it is.

    :raises ValueError: it holds anything but visible ASCII and spaces inside.
    """
    if not _VALUE.fullmatch(text) or text != text.strip():
        raise ValueError("must be visible ASCII without a line break")
    return text


def credential_format(text: str) -> str:
    """Read the format of a credential's header.

    :raises ValueError: C{{key}} is not in it exactly once, or it is no header value.
    """
    if text.count("{key}") != 1 or "{" in text.replace("{key}", ""):
        raise ValueError("must hold {key} exactly once")
    return header_value(text)


def read_line(text: str) -> str:
    """Read one line of a mail, without control characters: anything else could end a header and begin another.

    :raises ValueError: what it must be.
    """
    if _CONTROL.search(text):
        raise ValueError("must not contain line breaks or control characters")
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"must have {_MOST_CHARACTERS} characters at most")
    return text


def encode_line(text: str) -> str:
    """Write a text as a header of a mail has it (RFC 2047), so that it is read as it is."""
    if _PLAIN.fullmatch(text):
        return text
    charset = Charset("utf-8")
    charset.header_encoding = SHORTEST  # whatever a library has told the registry of this process: apprise does
    return Header(text, charset, header_name="Subject").encode(linesep="\r\n")
