"""Mail addresses and domain names, read so narrowly that nobody can read another into them."""

from __future__ import annotations

import re

import idna

_MOST_ADDRESS_CHARACTERS = 320
_MOST_DOMAIN_CHARACTERS = 253
# RFC 5322's dot-atom of at most 64; without % and !, by which old relays were told to send on to somebody else.
_ATOM = r"[A-Za-z0-9#$&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"(?=.{{1,64}}\Z){_ATOM}(?:\.{_ATOM})*\Z")
_TOP = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?\Z")


def parse_domain(address: str) -> str | None:
    """The domain, in its ASCII form, of what is exactly one bare C{local@domain}; L{None}: it is anything else.

    No display name, comment, quote, group, list, blank, control character or IP literal is let through.
    """
    if len(address) > _MOST_ADDRESS_CHARACTERS:
        return None
    local, at, domain = address.partition("@")
    if not at or "@" in domain or not _LOCAL.match(local):
        return None
    return encode_domain(domain)


def encode_domain(name: str) -> str | None:
    """A domain name of two labels or more as A-labels (RFC 5891, without UTS 46's mapping), in lower case.

    :return: L{None}: it is none; a name that ends with a dot and an IP address are none.
    """
    if not 1 <= len(name) <= _MOST_DOMAIN_CHARACTERS or name.endswith(".") or "." not in name:
        return None
    lowered = "".join(chr(ord(each) | 0x20) if "A" <= each <= "Z" else each for each in name)
    try:
        encoded = idna.encode(lowered, strict=True, uts46=False, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return None
    return encoded if _TOP.match(encoded.rpartition(".")[2]) else None
