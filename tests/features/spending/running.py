"""The limits as a daemon has started them, without a gateway in front of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from twisted.internet.task import Clock

from aileron.features.spending._file import NAME, SpendingFile
from aileron.features.spending._guard import SpendGate
from aileron.features.spending._ledger import Ledger
from aileron.features.spending._runaway import RunawayDetector
from aileron.features.spending.running import RunningSpending, SpendRecorder
from aileron.features.spending.values import Runaway, SpendLimit, SpendSettings
from aileron.model.audit import Actor
from aileron.model.trust import Trusted, TrustKind
from aileron.model.usage import SpendKey, Spent, Usage
from aileron.store import Store
from aileron.testing import MemoryTrust

from .case import NOON, PRICES, utc_day


class PlainTrust:
    """A trust service that trusts what it is told to."""

    def __init__(self, trust: MemoryTrust) -> None:
        self._trust = trust
        self.fails = False

    async def trust(self, items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[()]:
        """Trust these files."""
        if self.fails:
            raise RuntimeError("no")
        self._trust.put([Trusted(kind, name, digest, NOON, actor.id) for kind, name, digest in items])
        return ()


def limiting(directory: Path, store: Store, clock: Clock, ids: Any, *limits: SpendLimit) -> RunningSpending:
    """Limits of config.yaml, and nothing used yet."""
    trust = MemoryTrust()
    recorder = SpendRecorder(store.audit, store.spending, clock, ids)
    settings = SpendSettings(limits, PRICES, Runaway())
    ledger = Ledger(clock.seconds, utc_day, settings.find_price, recorder.tell)
    file = SpendingFile(directory / NAME, trust)
    runaway = RunawayDetector(settings.runaway, clock.seconds, recorder.tell_runaway)
    gate = SpendGate(settings, file, ledger, runaway, clock.seconds, lambda *_: 0, lambda: True, ("openai",))
    gate.open()
    return RunningSpending(gate, ledger, file, cast(Any, PlainTrust(trust)), recorder)


def use(spending: RunningSpending, session: str, spent: Spent, model: str = "gpt-5", provider: str = "openai") -> None:
    """Have a request of a session pass that used so much."""
    ledger = spending.gate.ledger
    ledger.load({SpendKey(ledger.today, session, provider, model): spent})


def pass_request(spending: RunningSpending, session: str, usage: Usage) -> None:
    """Have a request of a session pass whose answer reports this."""
    ledger = spending.gate.ledger
    ledger.admit(ledger.tab("openai", session), 1).settle(usage, "gpt-5", 200, 0, 0)
