"""A relay in memory whose requests the limits on spending decide, with the real counting behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from twisted.internet.task import LoopingCall

from aileron.base.json import digest_of_bytes
from aileron.features.gateway._gateway import Gateway
from aileron.features.gateway._tally import Tally
from aileron.features.gateway.values import ANTHROPIC, OPENAI
from aileron.features.spending._file import SpendingFile
from aileron.features.spending._guard import SpendGate
from aileron.features.spending._ledger import Ledger
from aileron.features.spending._runaway import RunawayDetector
from aileron.features.spending.values import Per, Price, Runaway, SpendLimit, SpendNews, SpendSettings, Unit
from aileron.model.trust import Trusted, TrustKind
from aileron.model.usage import Spent
from aileron.testing import MemoryTrust
from tests.features.gateway.case import KEY, GatewayCase, Line, Peer, request

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = NOON.date()
PRICES = {"gpt-5*": Price(1.0, 10.0, 0.5), "claude*": Price(3.0, 15.0, 0.3)}


def limit(
    most: int,
    unit: Unit = Unit.TOKENS,
    per: Per = Per.DAY,
    provider: str | None = None,
    model: str | None = None,
) -> SpendLimit:
    """A limit."""
    return SpendLimit(unit, per, most, provider, model)


def utc_day(seconds: float) -> date:
    """The day of a moment, where local time is UTC."""
    return datetime.fromtimestamp(seconds, UTC).date()


def answer_of(text: str, *fields: str) -> bytes:
    """An answer of JSON with its length."""
    body = text.encode()
    head = ["HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join([*head, "", ""]).encode() + body


def chat(tokens_in: object = 10, tokens_out: object = 5, model: str = "gpt-5-mini") -> str:
    """A chat's answer with these numbers, whatever they are."""
    usage = f'{{"prompt_tokens":{tokens_in},"completion_tokens":{tokens_out}}}'
    return f'{{"id":"1","model":"{model}","choices":[],"usage":{usage}}}'


class SpendCase(GatewayCase):
    """Builds it all, at noon."""

    def setUp(self) -> None:
        self.news: list[SpendNews] = []
        super().setUp()
        self.clock.advance(NOON.timestamp())
        self.trust = MemoryTrust(self.vault)
        self.path = Path(self.mktemp()) / "spending.toml"
        self.path.parent.mkdir()
        self.tally = Tally(
            self.clock.seconds, lambda call: self.clock.callLater(0.004, call), lambda *_: None, reads=False
        )
        self.tally.read_all()
        self.gateway._meters = self.tally
        self.ticking = LoopingCall(lambda: None)
        self.limited()

    def limited(
        self, *limits: SpendLimit, runaway: Runaway | None = None, prices: Mapping[str, Price] = PRICES
    ) -> None:
        """Have these limits, and nothing used yet."""
        settings = SpendSettings(limits, prices, runaway or Runaway())
        self.ledger = Ledger(self.clock.seconds, utc_day, settings.find_price, self.news.append)
        self.file = SpendingFile(self.path, self.trust)
        tell = lambda session, why: self.told.append((session, why))  # noqa: E731 - one line of a double
        self.told: list[tuple[str, str]] = []
        self.gate = SpendGate(
            settings,
            self.file,
            self.ledger,
            RunawayDetector(settings.runaway, self.clock.seconds, tell),
            self.clock.seconds,
            self.tally.reading.read_of,
            self.vault.ever_unlocked,
            tuple(self.places),
        )
        self.gate.open()
        if self.ticking.running:
            self.ticking.stop()
        self.ticking = LoopingCall(self.gate.look)
        self.ticking.clock = self.clock
        self.ticking.start(1.0, now=False)
        gateway: Gateway = self.gateway
        gateway.guard_spending(self.gate)

    def put(self, text: str, *, trusted: bool = True) -> None:
        """Write the file of limits."""
        self.path.write_text(text, encoding="utf-8")
        self.path.chmod(0o600)
        if trusted:
            digest = digest_of_bytes(text.encode())
            self.trust.put([Trusted(TrustKind.CONFIG, "spending.toml", digest, NOON, "operator")])

    def spend(self, body: Mapping[str, Any] | bytes = b"{}", answer: bytes = b"", session: bool = True) -> bytes:
        """One request, with what its client hears."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        line, there = self.begin(data, session=session)
        if there is not None:
            there.end.write(answer or answer_of(chat()))
        return self.after(line)

    def begin(
        self, body: bytes = b"{}", *fields: str, session: bool = True, path: str = "/v1/chat/completions"
    ) -> tuple[Line, Peer | None]:
        """One request, and the provider's end of it, or L{None} if it was not sent."""
        line = self.line()
        name = "anthropic" if "messages" in path else "openai"
        place = self.places[name]
        idle = [peer for peer in place.peers if peer.lost is None]
        heard = sum(len(peer.heard) for peer in place.peers)
        prefix = f"/s/{KEY}" if session else ""
        line.end.write(request(f"{prefix}{path}", *fields, body=body))
        self.net.run()
        if sum(len(peer.heard) for peer in place.peers) == heard and [p for p in place.peers if p.lost is None] == idle:
            return line, None
        return line, max(place.peers, key=lambda peer: len(peer.heard))

    def all_used(self) -> Spent:
        """What was used altogether, once that is known."""
        self.wait(2, 0.004)
        return sum(self.ledger.totals().values(), Spent())


__all__ = ["ANTHROPIC", "OPENAI"]
