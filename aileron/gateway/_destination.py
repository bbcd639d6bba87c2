"""Where a provider is, and how a request looks that goes there."""

from __future__ import annotations

import re
from typing import Self
from urllib.parse import urlsplit

from attrs import frozen

from aileron.http1 import RequestHead, end_to_end
from aileron.values import Provider

from ._admission import Keyed
from ._dial import Forwarding
from ._pool import Pool

_HOST = re.compile(rb"(\r\nhost:)[^\r]*", re.IGNORECASE).sub


@frozen
class Destination:
    """A provider with the connections to it.

    :ivar before: what stands before every path.
    :ivar host: the line of that name, without its name.
    :ivar more: lines that a proxy wants, each with its end.
    """

    provider: Provider
    pool: Pool
    before: bytes
    host: bytes
    more: bytes

    @classmethod
    def of(cls, provider: Provider, pool: Pool, forwarding: Forwarding) -> Self:
        """The destination that C{provider} names; nothing of it ever comes from a request."""
        split = urlsplit(provider.base_url)
        before = forwarding.target_prefix + split.path.rstrip("/").encode("ascii")
        return cls(provider, pool, before, b"\\1 " + split.netloc.encode("ascii"), forwarding.lines)

    def head(self, head: RequestHead, found: Keyed, path: bytes) -> bytes:
        """The head as it goes there: as it came, but for what is of one hop, the Host, and what was for us.

        :param path: without what said which provider it is for.
        """
        lines = _HOST(self.host, end_to_end(found.lines, head.fields.get(b"connection")), 1)
        more = b"\r\n" + self.more + b"\r\n"
        return b"".join((head.method, b" ", self.before, path, found.query, b" HTTP/1.1", lines, more))
