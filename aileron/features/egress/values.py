"""The hosts that a sandboxed session may connect to, in presets or by name, and what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum

from attrs import frozen

from aileron.base.addresses import read_address, read_host, read_host_and_port

HTTPS_PORT = 443
EGRESS_LINE = b"AILERON-EGRESS "
"""The beginning of a connection to the proxy; a ticket and an end of line follow."""

PROJECT = "project"
"""The word for what C{egress.toml} allows the project, which is allowed in any case: nothing more."""

EGRESS_PRESETS: Mapping[str, tuple[str, ...]] = {
    "npm": ("registry.npmjs.org",),
    "pypi": ("pypi.org", "files.pythonhosted.org"),
    "crates": ("index.crates.io", "static.crates.io"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "debian": ("deb.debian.org", "security.debian.org"),
    "github": (
        "github.com",
        "codeload.github.com",
        "objects.githubusercontent.com",
        "raw.githubusercontent.com",
        "release-assets.githubusercontent.com",
    ),
}
"""Hosts by the registry that they belong to; each is reached at the port of HTTPS."""


class EgressState(StrEnum):
    """The state of a host for one session.

    C{PENDING}: it was refused, and waits for the operator's word.  C{DENIED}: by the operator, for this session.
    """

    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"


class EgressDecision(StrEnum):
    """The operator's answers about a host.

    C{ALWAYS}: for every session of the project from now on.
    """

    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"


@frozen(kw_only=True)
class EgressHost:
    """One host, as one session asked for it.

    :ivar project: the session's directory, as its launcher claims.
    :ivar host: with its port.
    :ivar basis: by what it is allowed, such as a preset; empty: it is not.
    :ivar times: how often it was asked for.
    :ivar sent: bytes that went there.
    :ivar received: bytes that came back.
    """

    id: str
    session_id: str
    project: str
    host: str
    state: EgressState
    basis: str
    asked_at: datetime
    times: int = 1
    sent: int = 0
    received: int = 0


def write_opening(ticket: str) -> bytes:
    """Return the bytes that open a connection to the proxy: the line with the ticket."""
    return EGRESS_LINE + ticket.encode("ascii") + b"\r\n"


def read_egress_host(text: str) -> str:
    """Read a host that may be connected to, with a port or without; the same with its port.

    :raises ValueError: what it must be, as the end of a sentence that begins with its name.
    """
    host = read_host_and_port(text.lower()) if ":" in text else f"{read_host(text)}:{HTTPS_PORT}"
    if read_address(host.rpartition(":")[0].strip("[]")) is not None:
        raise ValueError("must be a name, which TLS can say, and no IP address")
    return host


def read_egress(words: Iterable[str]) -> dict[str, str]:
    """Read presets and hosts: each host with its port, and the word that it comes from.

    :raises ValueError: a word is neither, as a whole sentence.
    """
    return {host: word for word in words for host in _read_word(word)}


def _read_word(word: str) -> Iterator[str]:
    if word in EGRESS_PRESETS:
        yield from (f"{host}:{HTTPS_PORT}" for host in EGRESS_PRESETS[word])
    elif "." in word or ":" in word:
        try:
            yield read_egress_host(word)
        except ValueError as error:
            raise ValueError(f"A host {error}.") from None
    elif word != PROJECT:
        known = ", ".join((*EGRESS_PRESETS, PROJECT))
        raise ValueError(f"There is no preset of this name. Use a host, or one of: {known}.")
