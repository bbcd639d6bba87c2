"""The hosts that sandboxed sessions may connect to, by preset or by name, with their states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from aileron.base.addresses import read_address, read_host, read_host_and_port

if TYPE_CHECKING:
    from twisted.internet.interfaces import IProtocol, ITransport

    from aileron.model.tool_claims import ToolCaller

HTTPS_PORT = 443
EGRESS_LINE = b"AILERON-EGRESS "
"""The first bytes of a connection to the proxy. A ticket and an end of line follow."""

PROJECT = "project"
"""The word for the hosts that C{egress.toml} allows the project. They are always allowed, so the word adds none."""

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
"""The hosts of each registry, reached at the port of HTTPS."""


class EgressState(StrEnum):
    """The state of a host that a session requested.

    C{PENDING}: the host was refused and waits for the operator's decision. C{DENIED}: the operator denied the host to
    this session.
    """

    PENDING = "pending"
    ALLOWED = "allowed"
    DENIED = "denied"


class EgressDecision(StrEnum):
    """The operator's decision about a host that a session requested.

    C{SESSION}: allow the host for the session. C{ALWAYS}: allow the host for every session of the project.
    """

    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"


@frozen(kw_only=True)
class EgressHost:
    """A host that a session requested.

    :ivar project: the session's directory, as the launcher claims.
    :ivar host: the host with its port.
    :ivar basis: the reason why the host is allowed, such as a preset; empty if it is not.
    :ivar times: the number of requests.
    :ivar sent: the number of bytes sent to the host.
    :ivar received: the number of bytes received from the host.
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


class TunnelOpener(Protocol):
    """A part of the daemon that answers connections of sandboxes itself, in place of the host."""

    async def recall(self, session_id: str) -> None:
        """Load what was opened for a session before the daemon was restarted. Called before the session connects.

        :raises StoreUnavailable: if the database cannot be read.
        """

    def list_hosts(self, session_id: str) -> frozenset[str]:
        """Return the hosts, with their ports, in whose place this part answers a session, or did before a restart.

        One may begin with C{*.}.
        """

    def find_problem(self, session_id: str, host: str) -> str:
        """Return the reason why a session may not connect to a host, even if it is allowed otherwise, or an empty text.

        :param host: the host with its port.
        :return: a sentence without its full stop.
        """

    def find_basis(self, session_id: str, host: str) -> str:
        """Return the reason why this part answers a session's connections to a host, or an empty text if it does not.

        :param host: the host with its port.
        """

    def serve(self, session_id: str, host: str, transport: ITransport, caller: ToolCaller) -> IProtocol | None:
        """Return a protocol that is connected to the transport, or None if the session has ended.

        The protocol receives all bytes after the response to C{CONNECT}. The first ones are a TLS hello that names
        the host. That is checked before. The protocol closes the transport if nothing passes for too long.

        :param caller: the process that opened the connection, as the launcher claims.
        """


def read_egress_host(text: str) -> str:
    """Parse the name of a host with or without a port, and return the host with its port, by default 443.

    :raises ValueError: if the text is no name of a host, or is an IP address; the message is the end of a sentence
        whose subject is the host.
    """
    host = read_host_and_port(text.lower()) if ":" in text else f"{read_host(text)}:{HTTPS_PORT}"
    if read_address(host.rpartition(":")[0].strip("[]")) is not None:
        raise ValueError("must be a name, which TLS can say, and no IP address")
    return host


def read_egress(words: Iterable[str]) -> dict[str, str]:
    """Parse presets and hosts. Return each host with its port, and the word by which it was given.

    :raises ValueError: if a word is no preset and no host; the message is a sentence.
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
