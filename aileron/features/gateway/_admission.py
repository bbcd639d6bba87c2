"""Checks the heads of requests before anything is sent, and stops requests while the vault is locked."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from twisted.internet.interfaces import IReactorTime

from aileron.base.http1 import RequestHead
from aileron.model.errors import Forbidden
from aileron.model.interfaces.vault import IVault
from aileron.model.vault import VaultState

KEY_FIELD = b"x-aileron-gateway-key"

_SESSION_PATH = re.compile(rb"/s/([^/]+)(/.*)").fullmatch  # the segment is the key, valid or not
_KEY_LINES = re.compile(rb"\r\nx-aileron-gateway-key:[^\r]*", re.IGNORECASE)
_OURS = re.compile(rb"ail_[alogi]_[A-Za-z0-9_-]{43}").search
_COOKIE = re.compile(rb"(?:^|[;,\s])aileron_").search
_WALKS = re.compile(rb"/(?:\.|%2e){1,2}(?:[/;]|$)|\\|%5c|#", re.IGNORECASE).search
_ENCODED_SLASH = re.compile(rb"%2f", re.IGNORECASE).search
# Sec-Fetch-Mode is not listed: Node's fetch sends it too. A browser that sends it also sends the other two.
_BROWSERS = frozenset((b"origin", b"sec-fetch-site", b"sec-fetch-dest"))


class Keyed(NamedTuple):
    """A request's target and fields without the gateway key, and that key.

    :ivar path: the path of the target, without the query.
    :ivar query: the query with its question mark, or empty.
    :ivar lines: all fields as they were received, each preceded by its line end.
    :ivar key: the gateway key, or None if the request has none.
    """

    path: bytes
    query: bytes
    lines: bytes
    key: bytes | None

    @property
    def digest(self) -> bytes | None:
        """SHA-256 of the key, or None if the request has no key."""
        return None if self.key is None else hashlib.sha256(self.key).digest()


def keyed(head: RequestHead) -> Keyed:
    """Return the request without its gateway key, and the key. A key in the path takes precedence over the field."""
    path, mark, query = head.target.partition(b"?")
    lines, key = head.lines, head.fields.get(KEY_FIELD)
    if key is not None:
        lines = _KEY_LINES.sub(b"", lines)
    match = _SESSION_PATH(path) if path.startswith(b"/s/") else None
    if match is not None:
        key, path = match.groups()
    return Keyed(path, mark + query, lines, key)


def is_sound(path: bytes, *, encoded_slashes: bool = True) -> bool:
    """Return whether all servers read the path in the same way: it has no dot segments, backslashes or fragments.

    :param encoded_slashes: whether encoded slashes are allowed. In a path below a prefix, they could lead out of the
        prefix.
    """
    return not _WALKS(path) and (encoded_slashes or not _ENCODED_SLASH(path))


def check(head: RequestHead, found: Keyed) -> None:
    """Check that a request may be relayed.

    :raises Forbidden: if the request asks for a tunnel, comes from a browser, or contains a cookie or key of Aileron's
        own.
    """
    if head.method == b"CONNECT":
        raise Forbidden("There are no tunnels through the gateway.")
    if not _BROWSERS.isdisjoint(head.fields):
        raise Forbidden("Pages of a browser may not speak to the gateway.")
    if b"cookie" in head.fields and _COOKIE(head.fields[b"cookie"]):
        raise Forbidden("A cookie of Aileron's own must not leave this machine: nothing was sent.")
    if b"ail_" in head.raw and (_OURS(found.lines) or _OURS(found.path + found.query)):
        raise Forbidden("A key of Aileron's own must not leave this machine: nothing was sent.")


REMEMBERED_SECONDS = 1.0

_SHUT = {
    VaultState.LOCKED: "Aileron's vault is locked: run aileron vault unlock in a terminal of your own, then try again.",
    VaultState.LOST: "Aileron's vault is lost: run aileron doctor in a terminal of your own.",
}


class GatewaySwitch:
    """The switch that stops all requests while the vault is locked or lost.

    A lock takes effect at once. A vault file that disappears or returns is noticed within L{REMEMBERED_SECONDS}.
    """

    def __init__(self, vault: IVault, clock: IReactorTime) -> None:
        self._vault = vault
        self._clock = clock
        self._why: str | None = None
        self._until = clock.seconds()
        vault.locked().addCallback(self._forget)

    def shut(self) -> str | None:
        """Return the reason why nothing may be sent, for the user, or None if requests may be sent."""
        now = self._clock.seconds()
        if not self._until - REMEMBERED_SECONDS <= now < self._until:  # a clock may be set back
            self._why = _SHUT.get(self._vault.state())
            self._until = now + REMEMBERED_SECONDS
        return self._why

    def _forget(self, _: object) -> None:
        self._until = self._clock.seconds()
