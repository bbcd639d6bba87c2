"""Answers the first requests of an MCP client, including that for the list of tools, until the MCP SDK is loaded."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.client import SessionEnvironment

from ._opening import Opening, ToolsRequest
from .offering.tools import TOOLS_A_PAGE, ToolListing, write_tool
from .waiting.profiles import introduce, know_client

_log = Logger()


class EarlyAnswers:
    """Handles the messages of one MCP client before the MCP SDK is loaded.

    :param opening: the state of the client's first messages.
    :param listing: the tools offered to the client.
    :param write_line: writes one line to the client.
    :param moved: called when a list of tools was sent, or a message was left to the SDK.
    :ivar outdated: True if the tools have changed since a list was sent.
    """

    def __init__(
        self,
        opening: Opening,
        listing: ToolListing,
        session: SessionEnvironment,
        write_line: Callable[[bytes], object],
        moved: Callable[[], object],
    ) -> None:
        self._opening = opening
        self._listing = listing
        self._session = session
        self._write_line = write_line
        self._moved = moved
        self._asked: set[Deferred[None]] = set()
        self._listed = False
        self.outdated = False
        listing.link.notify(self._note_changed)

    def receive(self, line: bytes) -> None:
        """Answer one message, or store it for the MCP SDK, which answers it later."""
        answer = self._opening.take(line)
        if isinstance(answer, ToolsRequest):
            self._answer_list(answer, line)
        elif answer is not None:
            self._write_line(answer)
        elif self._opening.over:
            self._moved()

    def stop(self) -> None:
        """Cancel the answers under way. Idempotent."""
        for asked in list(self._asked):
            asked.cancel()

    def _note_changed(self) -> None:
        self.outdated = self._listed

    def _answer_list(self, request: ToolsRequest, line: bytes) -> None:
        asked = Deferred.fromCoroutine(self._list(request, line))
        if not asked.called:
            self._asked.add(asked)
        asked.addErrback(self._leave, line)
        asked.addBoth(lambda _: self._asked.discard(asked))

    async def _list(self, request: ToolsRequest, line: bytes) -> None:
        client = know_client(introduce(request.client, request.capabilities, modern=request.modern), self._session)
        offered = await self._listing.offered(hears_changes=client.hears_changes)
        if len(offered) > TOOLS_A_PAGE:
            self._opening.leave(line)
        else:
            self._write_line(request.answer([write_tool(each, asked=client.shows_forms) for each in offered]))
            self._listed, self.outdated = True, False
        self._moved()

    def _leave(self, failure: Failure, line: bytes) -> None:
        if failure.check(CancelledError) is None:
            _log.failure("the list of tools could not be written", failure)
            self._opening.leave(line)
            self._moved()
