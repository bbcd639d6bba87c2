"""Reads requests for tools that their provider is to run, after sending to note tools, or before to refuse requests."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from functools import partial

from twisted.internet.interfaces import IReactorTime

from aileron.base.http1 import CHUNKED, ChunkedContent
from aileron.features.gateway.exchange import UpstreamExchange
from aileron.features.gateway.values import GatewaySettings, Provider, ProviderTool, ToolCount, ToolKind
from aileron.model.errors import Forbidden, ResourceLimitExceeded

from .notes import ToolNotes
from .scan import ToolScan
from .values import ToolRule, ToolRules, rules_of

MOST_HELD_BYTES = 8 * 1024 * 1024
"""The largest request that is read before it is sent. A larger one is refused."""

MOST_QUEUED_BYTES = 16 * 1024 * 1024
"""The most bytes of all pieces that were sent and are queued for reading."""

_PIECE_BYTES = 512  # the overhead of a stored piece
_SLICE_BYTES = 4096  # read at once, because reading a large piece takes milliseconds
_PAUSE_SECONDS = 0.004
_MOST_SECONDS = 0.002  # the longest reading without a pause
_REST = 3  # a pause is at least this many times as long as the reading before it, so that traffic is not delayed
_LAST_SECONDS = 1.0  # the longest reading when the relay has stopped

_UNREADABLE = ProviderTool(ToolKind.UNREADABLE)
_TOOL = "{provider} was asked to run a tool itself ({tools})"
_NOT_READ = "The request cannot be read to find provider tools: it is compressed, or not JSON"
_TOO_LONG = f"The request is longer than {MOST_HELD_BYTES // 2**20} MiB, more than is read to find provider tools"
_REFUSED = "{why}. The setting gateway.provider_tools in config.yaml refuses this. Nothing was sent."
_coded = re.compile(rb"\r\n(?i:content[-_]encoding):(?![ \t]*+(?i:identity)?[ \t]*+\r)").search


class _Reading:
    """Reads one request in pieces, for the tools that its provider is to run.

    The parser is created when the first piece is read.
    """

    def __init__(self, exchange: UpstreamExchange, rules: ToolRules, tell: Callable[..., None], head: bytes) -> None:
        """Create the reader of one request.

        :param tell: counts tools. Its argument C{refused} says whether their request was refused.
        """
        self._exchange, self._rules, self._tell, self._head = exchange, rules, tell, head
        self._scan: ToolScan | None = None
        self._content: ChunkedContent | None = None
        self._length = 0
        self.lost = False

    def _read(self, data: bytes, *, last: bool) -> ToolScan:
        scan = self._scan
        if scan is None:
            scan = self._scan = ToolScan()
            scan.unreadable = _coded(self._head) is not None
            self._content = ChunkedContent() if self._exchange.length == CHUNKED else None
        self._length += len(data)
        if data:
            scan.feed(data if self._content is None else self._content.take(data))
        if last:
            scan.finish()
        return scan

    def _under(self, rule: ToolRule, scan: ToolScan) -> list[ProviderTool]:
        found = (*scan.found, *([_UNREADABLE] if scan.unreadable or self.lost else ()))
        return [tool for tool in found if self._rules.rule(tool.kind) is rule]

    def note(self, data: bytes, last: bool) -> None:
        """Read a piece of a request that was sent. After the last piece, count its tools with the rule C{NOTE}."""
        scan = self._read(data, last=last)
        if last:
            self._tell(self._under(ToolRule.NOTE, scan), refused=False)

    def decide(self, provider: str, go: Callable[[], None], data: bytes, last: bool) -> None:
        """Read a piece of a held request. After the last piece, send the request.

        If the request is too long or unreadable, or a tool in it is refused, fail the exchange instead.

        :param go: sends the request.
        """
        if self._exchange.over:
            return
        scan = self._read(data, last=last)
        refused = self._under(ToolRule.REFUSE, scan)
        if self._length > MOST_HELD_BYTES and not refused:
            self._tell([_UNREADABLE], refused=True)
            self._exchange.fail(ResourceLimitExceeded(_REFUSED.format(why=_TOO_LONG)), 413)
        elif refused:
            self._tell(refused, refused=True)
            tools = ", ".join(str(tool) for tool in refused if tool != _UNREADABLE)
            why = _TOOL.format(provider=provider, tools=tools) if tools else _NOT_READ
            self._exchange.fail(Forbidden(_REFUSED.format(why=why)), self._exchange.refusal)
        elif last:
            self._tell(self._under(ToolRule.NOTE, scan), refused=False)
            go()


class ToolWatch:
    """The reader of requests for the tools that providers run. It implements the gateway's L{RequestWatch}.

    :ivar providers: the names of the providers with a rule. Their requests are read in every session.
    """

    def __init__(self, settings: GatewaySettings, notes: ToolNotes, clock: IReactorTime) -> None:
        self._notes, self._clock = notes, clock
        self._rules = rules_of(settings)
        self._noting = {name: rules.noting() for name, rules in self._rules.items()}
        self.providers = frozenset(name for name, rules in self._rules.items() if rules.kinds)
        self._queue: deque[tuple[_Reading, bytes, bool]] = deque()
        self._queued_bytes = 0
        self._read = 0  # the bytes read of the first queued piece

    def watch(
        self,
        exchange: UpstreamExchange,
        provider: Provider,
        session_id: str | None,
        *,
        noting: bool,
        head: bytes,
        go: Callable[[], None],
        go_later: Callable[[], None],
    ) -> None:
        """Read a request that has just started.

        :param noting: whether tools without a rule are recorded.
        :param head: the head to send to the provider.
        :param go: sends the request. Called at once if the request need not be held.
        :param go_later: sends a held request. Called when the request is complete and was not refused. It checks again
            whether the request may be sent.
        """
        rules = (self._noting if noting else self._rules)[provider.name]
        tell = partial(self._notes.note, provider.name, session_id)
        reading = _Reading(exchange, rules, tell, head)
        if not exchange.length:
            go()
        elif rules.refuses:
            exchange.watch(partial(reading.decide, provider.name, go_later), holds=True)
        else:
            exchange.watch(partial(self._queue_piece, reading), holds=False)
            go()

    def describe(self, provider: Provider) -> str:
        """Return the rules for the tools that a provider runs as text."""
        return str(self._rules[provider.name])

    def counts(self) -> tuple[ToolCount, ...]:
        """Return how many requests asked for each tool since the daemon's start."""
        return self._notes.counts()

    def read_rest(self) -> None:
        """Read the queued pieces for at most a second. Requests with unread pieces count as unreadable."""
        self._read_for(_LAST_SECONDS)
        while self._queue:
            reading, _, last = self._queue.popleft()
            reading.lost = True
            reading.note(b"", last)

    def _queue_piece(self, reading: _Reading, data: bytes, last: bool) -> None:
        """Queue a piece of a request that was already sent, to read it later.

        If the queue is full, the request counts as unreadable.
        """
        reading.lost |= self._queued_bytes + len(data) > MOST_QUEUED_BYTES
        if reading.lost:
            data = b""
            if not last:
                return
        self._queued_bytes += len(data) + _PIECE_BYTES
        self._queue.append((reading, data, last))
        if len(self._queue) == 1:
            self._clock.callLater(_PAUSE_SECONDS, self._read_some)

    def _read_some(self) -> None:
        took = self._read_for(_MOST_SECONDS)
        if self._queue:
            self._clock.callLater(max(_PAUSE_SECONDS, _REST * took), self._read_some)

    def _read_for(self, seconds: float) -> float:
        """Read slices until the queue is empty or C{seconds} have passed, and return the seconds used."""
        began, took = self._clock.seconds(), 0.0
        while self._queue and took < seconds:
            self._read_slice()
            took = self._clock.seconds() - began
        return took

    def _read_slice(self) -> None:
        reading, data, last = self._queue[0]
        start, self._read = self._read, self._read + _SLICE_BYTES
        ends = self._read >= len(data)
        if ends:
            self._queue.popleft()
            self._queued_bytes -= len(data) + _PIECE_BYTES
            self._read = 0
        reading.note(data[start : start + _SLICE_BYTES], last and ends)
