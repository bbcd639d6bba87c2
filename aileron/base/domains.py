"""Domain names in their ASCII form."""

from __future__ import annotations

import re

import idna

_MOST_DOMAIN_CHARACTERS = 253
_TOP = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?\Z")


def encode_domain(name: str) -> str | None:
    """Encode a domain name of two or more labels as A-labels (RFC 5891, without the mapping of UTS 46), in lower case.

    :return: the encoded name, or None if C{name} is not valid, ends with a dot or is an IP address.
    """
    if not 1 <= len(name) <= _MOST_DOMAIN_CHARACTERS or name.endswith(".") or "." not in name:
        return None
    lowered = "".join(chr(ord(each) | 0x20) if "A" <= each <= "Z" else each for each in name)
    try:
        encoded = idna.encode(lowered, strict=True, uts46=False, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return None
    return encoded if _TOP.match(encoded.rpartition(".")[2]) else None
