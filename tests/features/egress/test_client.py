"""What a launcher asks the daemon for, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import AnswerNotUnderstood
from aileron.features.egress._head import read_head
from aileron.features.egress.client import open_connection


@frozen
class AnsweringDaemon:
    """Answers what a test says, to the one request that is expected."""

    answer: Mapping[str, Any]

    async def post(self, *path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer."""
        assert (path, body) == (("sessions", "S1", "egress"), {"allow": ["npm"]}), (path, body)
        return self.answer


class OpenTests(SynchronousTestCase):
    """L{open_connection}."""

    def opened(self, **answer: Any) -> tuple[int, bytes]:
        """Ask a daemon that answers so."""
        daemon: Any = AnsweringDaemon(answer)
        return self.successResultOf(Deferred.fromCoroutine(open_connection(daemon, "S1", ("npm",))))

    def test_opening(self) -> None:
        """The first bytes are what the proxy reads before the request to connect."""
        port, opening = self.opened(port=4711, ticket="a-ticket")
        head = read_head(opening + b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        assert head is not None
        self.assertEqual((port, head.ticket, head.host), (4711, "a-ticket", "a.example:443"))

    def test_odd(self) -> None:
        """An answer without a proxy, or with a ticket that no line can hold, is not understood."""
        for answer in ({}, {"port": 1}, {"port": "x", "ticket": "t"}, {"port": 1, "ticket": "é"}):
            daemon: Any = AnsweringDaemon(answer)
            self.failureResultOf(Deferred.fromCoroutine(open_connection(daemon, "S1", ("npm",))), AnswerNotUnderstood)
