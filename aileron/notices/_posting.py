"""Posts a few bytes to an address of the operator's, and wants no more of the answer than its status."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from twisted.internet.protocol import Protocol
from twisted.internet.task import Cooperator
from twisted.web.http_headers import Headers

ANSWER_SECONDS = 30.0


async def post(url: str, body: bytes, clock: Any, headers: Mapping[str, str] | None = None) -> int:
    """The status of the answer to C{body}, JSON, at C{url}; nothing is followed anywhere.

    :param clock: the reactor.
    :raises Exception: none came.
    """
    import treq
    from twisted.web.client import FileBodyProducer

    producer = FileBodyProducer(BytesIO(body), Cooperator(scheduler=lambda work: clock.callLater(0, work)))
    answer = await treq.post(
        url,
        producer,
        headers=Headers(
            {"Content-Type": ["application/json"], **{name: [each] for name, each in (headers or {}).items()}}
        ),
        reactor=clock,
        timeout=ANSWER_SECONDS,
        allow_redirects=False,
        persistent=False,
        unbuffered=True,
    )
    answer.deliverBody(_Dropped())  # a server may never end it
    return int(answer.code)


class _Dropped(Protocol):
    """What is answered besides a status is of no interest."""

    def connectionMade(self) -> None:
        """Hang up."""
        if self.transport is not None:
            self.transport.loseConnection()
