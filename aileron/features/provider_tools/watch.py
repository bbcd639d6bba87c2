"""Reads requests for the tools that their provider is to run: beside the relay to note them, or before it to refuse."""

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
"""Of a request that is read before it is sent."""

MOST_QUEUED_BYTES = 16 * 1024 * 1024
"""Of all requests together, that went on and are still to be read."""

_PIECE_BYTES = 512  # what keeping a piece takes besides
_SLICE_BYTES = 4096  # of a piece; those that are made for it take milliseconds
_PAUSE_SECONDS = 0.004
_MOST_SECONDS = 0.002  # of reading before a pause
_REST = 3  # times as long as was read, at least: others' traffic goes on meanwhile
_LAST_SECONDS = 1.0  # of reading at the end

_UNREADABLE = ProviderTool(ToolKind.UNREADABLE)
_TOOL = "{provider} was asked to run a tool itself ({tools})"
_NOT_READ = "The request cannot be read to find provider tools: it is compressed, or not JSON"
_TOO_LONG = f"The request is longer than {MOST_HELD_BYTES // 2**20} MiB, more than is read to find provider tools"
_REFUSED = "{why}. The setting gateway.provider_tools in config.yaml refuses this. Nothing was sent."
_coded = re.compile(rb"\r\n(?i:content[-_]encoding):(?![ \t]*+(?i:identity)?[ \t]*+\r)").search


class _Reading:
    """One request that is read; what it takes to read is made when it is first read."""

    def __init__(self, exchange: UpstreamExchange, rules: ToolRules, tell: Callable[..., None], head: bytes) -> None:
        """Begin.

        :param tell: notes tools, and whether they were C{refused}.
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
        """Read a piece, and note at the end what the request asks for."""
        scan = self._read(data, last=last)
        if last:
            self._tell(self._under(ToolRule.NOTE, scan), refused=False)

    def decide(self, provider: str, go: Callable[[], None], data: bytes, last: bool) -> None:
        """Read a piece, and refuse the request as soon as that is clear, or have it sent at its end."""
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
    """Reads the requests for which there is a rule, as the rule wants it.  It is the gateway's L{RequestWatch}.

    :ivar providers: names of those for which there is one whatever the session.
    """

    def __init__(self, settings: GatewaySettings, notes: ToolNotes, clock: IReactorTime) -> None:
        self._notes, self._clock = notes, clock
        self._rules = rules_of(settings)
        self._noting = {name: rules.noting() for name, rules in self._rules.items()}
        self.providers = frozenset(name for name, rules in self._rules.items() if rules.kinds)
        self._queue: deque[tuple[_Reading, bytes, bool]] = deque()
        self._queued_bytes = 0
        self._read = 0  # bytes of the first piece

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
        """Have a request read that was just begun.

        :param noting: whether what has no rule is noted.
        :param head: as it goes to the provider.
        :param go: sends it, and is called at once.
        :param go_later: sends it instead, if it may still be sent; called when it has come whole and is not refused.
        """
        rules = (self._noting if noting else self._rules)[provider.name]
        tell = partial(self._notes.note, provider.name, session_id)
        reading = _Reading(exchange, rules, tell, head)
        if not exchange.length:
            go()
        elif rules.refuses:
            exchange.watch(partial(reading.decide, provider.name, go_later), holds=True)
        else:
            exchange.watch(partial(self._put_off, reading), holds=False)
            go()

    def describe(self, provider: Provider) -> str:
        """Return the rules for the tools that a provider runs, in words."""
        return str(self._rules[provider.name])

    def counts(self) -> tuple[ToolCount, ...]:
        """Return how many requests asked for each tool since the daemon's start."""
        return self._notes.counts()

    def read_rest(self) -> None:
        """Read at once what is still to be read, for a second at most; what is left then counts as not read."""
        self._read_for(_LAST_SECONDS)
        while self._queue:
            reading, _, last = self._queue.popleft()
            reading.lost = True
            reading.note(b"", last)

    def _put_off(self, reading: _Reading, data: bytes, last: bool) -> None:
        """Have a piece read once it is on its way, and so are those that came with it."""
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
        """Read slice by slice until nothing is left, or so much time has passed; return how much has."""
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
