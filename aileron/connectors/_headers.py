"""Header names and values: what a file may set, and encodings that no input can escape from."""

from __future__ import annotations

import re
from email.charset import SHORTEST, Charset
from email.header import Header

from aileron.base.addresses import PARTIAL_HEADERS

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
_MOST_CHARACTERS = 900  # of one header of a mail
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLAIN = re.compile(
    r"(?!.*=\?)[\x20-\x7e]*"
)  # text that looks like an encoded word is encoded, else it would be decoded

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
    """Check the name of a header that a file sets, and return it.

    :raises ValueError: if the name is invalid, only the daemon sets this header, or it requests a part of a response.
    """
    if not _TOKEN.fullmatch(text):
        raise ValueError("is not a valid header name")
    if text.lower() in OURS:
        raise ValueError("is a header that only the daemon sets")
    if text.lower() in PARTIAL_HEADERS:
        raise ValueError("asks for a part of an answer, in which no secret can be found: it is not sent")
    return text


def header_value(text: str) -> str:
    """Check a header's value, and return it.

    :raises ValueError: if the value has characters other than visible ASCII and inner spaces.
    """
    if not _VALUE.fullmatch(text) or text != text.strip():
        raise ValueError("must be visible ASCII without a line break")
    return text


def credential_format(text: str) -> str:
    """Check the format of a credential's header, and return it.

    :raises ValueError: if C{{key}} is not in it exactly once, or it is no header value.
    """
    if text.count("{key}") != 1 or "{" in text.replace("{key}", ""):
        raise ValueError("must hold {key} exactly once")
    return header_value(text)


def read_line(text: str) -> str:
    """Check one line of a mail, and return it. Control characters could end a header and start another.

    :raises ValueError: if the line has control characters, or is too long.
    """
    if _CONTROL.search(text):
        raise ValueError("must not contain line breaks or control characters")
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"must have {_MOST_CHARACTERS} characters at most")
    return text


def encode_line(text: str) -> str:
    """Encode a text as a mail header (RFC 2047). Plain text is returned unchanged."""
    if _PLAIN.fullmatch(text):
        return text
    charset = Charset("utf-8")
    charset.header_encoding = SHORTEST  # a library such as apprise may have changed the process-wide default
    return Header(text, charset, header_name="Subject").encode(linesep="\r\n")
