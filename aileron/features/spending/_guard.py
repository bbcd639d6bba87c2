"""Decides before each request to a model whether the limits on spending let it pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import define, field

from aileron.base.http1 import CHUNKED, ChunkedContent
from aileron.features.gateway.exchange import UpstreamExchange
from aileron.model.errors import AileronError, Forbidden, LimitExceeded, ResourceLimitExceeded, StoreUnavailable
from aileron.model.usage import SpendKey, Spent

from ._charges import BYTES_OF_TOKEN, GRANTED_TOKENS, Tab
from ._file import NAME, OwnLimits, SpendingFile
from ._ledger import Ledger
from ._request import MOST_ANSWER, MOST_HELD_BYTES, read_request
from ._runaway import RunawayDetector
from ._windows import SpendRule
from .values import LimitSource, SpendSettings, Unit

UNKNOWN_TOKENS = 8192
"""The tokens of a request that are assumed if its head does not tell its length."""

_GRANTED_BYTES = (GRANTED_TOKENS - MOST_ANSWER) * BYTES_OF_TOKEN

EAGER_A_SECOND = 50
"""How many responses a second are read at once, so that limits hold exactly between two requests."""

_UNREAD = (
    f"Aileron's limits on spending cannot be read: {NAME} is not as it was trusted. Nothing was sent. In a terminal of "
    "your own, run: aileron config trust"
)
_NO_MODEL = (
    "Aileron limits spending by model, and this request names no model that can be read: it is compressed, or not "
    "JSON, or names two. Nothing was sent."
)
_NO_PRICE = (
    "Aileron limits what may be spent, and has no price for the model {model}. Nothing was sent. Add it to "
    "gateway.prices in config.yaml."
)
_TOO_LONG = (
    f"The request is longer than {MOST_HELD_BYTES // 2**20} MiB, more than is read to apply limits on spending. "
    "Nothing was sent."
)
_TOO_MANY = 429
_NOT_LOADED = "What was spent today is not known yet. Nothing was sent. Try again."


class SpendGate:
    """Admits or refuses the relay's requests by the limits on spending. It implements the gateway's L{SpendGuard}.

    :ivar ledger: the use of models, and the limits in force.
    :ivar reading: the names of the providers whose requests are read before they are sent.
    """

    def __init__(
        self,
        settings: SpendSettings,
        file: SpendingFile,
        ledger: Ledger,
        runaway: RunawayDetector,
        seconds: Callable[[], float],
        read_usage: Callable[[str | None, int], int],
        knows_trust: Callable[[], bool],
        providers: tuple[str, ...],
    ) -> None:
        """Create a gate, which refuses everything that has a limit until L{open} is called.

        :param seconds: returns the time in seconds since 1970.
        :param read_usage: reads so many of a session's responses that have ended, or of those without a session, and
            returns how many were read.
        :param knows_trust: returns whether it is known which files the operator trusts.
        :param providers: the names of all providers.
        """
        self.settings, self.ledger, self.reading = settings, ledger, frozenset[str]()
        self._file, self._runaway, self._seconds, self._read_usage = file, runaway, seconds, read_usage
        self._knows_trust, self._providers = knows_trust, providers
        self._own: OwnLimits | None = OwnLimits()
        self._is_open = self._is_settled = False
        self._digests = runaway.bounds.same_requests is not None
        self._checks_runaway = runaway.bounds.per_minute is not None or runaway.bounds.same_requests is not None
        self._eager = EAGER_A_SECOND
        self._tabs: dict[tuple[str | None, str], Tab] = {}
        ledger.read_ended = self._read_eagerly
        self._set_rules()

    def open(self) -> None:
        """Start to admit requests. Call after the stored use was loaded into the ledger."""
        self._is_open = True
        self.look()

    @property
    def own(self) -> OwnLimits | None:
        """The limits set by commands, or None if they cannot be read."""
        return self._own

    def look(self) -> None:
        """Begin a new day if the clock says so, and read the limits set by commands again. Call this each second."""
        self._eager, self._tabs = EAGER_A_SECOND, {}
        self.ledger.look_at_clock()
        own = self._file.read_own()
        if own != self._own:
            self._own = own
            self._set_rules()
        # Until the vault was unlocked it is not known what the operator trusts, so each request looks again.
        self._is_settled = self._is_open and own is not None and self._knows_trust()

    def admit(self, exchange: UpstreamExchange, provider: str, session_id: str | None) -> bool:
        if not self._is_settled and not self._settle(exchange, provider):
            return False
        tab = self._tabs.get((session_id, provider))
        if tab is None:
            tab = self._tabs[session_id, provider] = self.ledger.tab(provider, session_id or "")
        length = exchange.length
        if tab.free and (length <= _GRANTED_BYTES or not tab.is_limited) and not self._checks_runaway:
            tab.free -= 1
            exchange.meter.charge = tab
            return True
        tokens = (
            UNKNOWN_TOKENS if length == CHUNKED else (length + BYTES_OF_TOKEN - 1) // BYTES_OF_TOKEN
        ) + MOST_ANSWER
        return self._charge(exchange, tab, tokens, 0, None)

    def admit_read(
        self, exchange: UpstreamExchange, provider: str, session_id: str | None, head: bytes, body: bytes
    ) -> bool:
        if not self._is_settled and not self._settle(exchange, provider):
            return False
        if len(body) > MOST_HELD_BYTES:
            exchange.fail(ResourceLimitExceeded(_TOO_LONG), 413)
            return False
        content = ChunkedContent().take(body) if exchange.length == CHUNKED else body
        facts = read_request(head, content, digests=self._digests)
        tab = self.ledger.tab(provider, session_id or "", facts.model or "")
        tokens, cost = (facts.length + BYTES_OF_TOKEN - 1) // BYTES_OF_TOKEN, 0
        if tab.price is not None:
            cost = tab.price.cost(tokens, facts.answer, 0)
        # guard of spending: an unknown model passes no limit on models -> test_guard.HeldTests.test_no_model
        if facts.model is None and self._depends_on_model(provider):
            return _refuse(exchange, Forbidden(_NO_MODEL))
        # guard of spending: a model without a price passes no limit on money -> test_guard.HeldTests.test_no_price
        if facts.model is not None and tab.counts_money and tab.price is None:
            return _refuse(exchange, Forbidden(_NO_PRICE.format(model=facts.model)))
        return self._charge(exchange, tab, tokens + facts.answer, cost, facts.digest)

    def hold(
        self,
        exchange: UpstreamExchange,
        provider: str,
        session_id: str | None,
        *,
        head: bytes,
        go_later: Callable[[], None],
    ) -> None:
        admit = partial(self.admit_read, exchange, provider, session_id, head)
        exchange.watch(HeldRequest(exchange, admit, go_later).read, holds=True)

    def take_unwritten(self) -> list[tuple[SpendKey, Spent]]:
        """Return the use since the last call, by day, session, provider and model, for the caller to store."""
        return self.ledger.take_unwritten()

    def _charge(self, exchange: UpstreamExchange, tab: Tab, tokens: int, cost: int, digest: bytes | None) -> bool:
        try:
            if self._checks_runaway:
                self._runaway.check(tab.session_id, digest)
            if tab.is_near:
                self._read_eagerly(tab.session_id)
            exchange.meter.charge = self.ledger.admit(tab, tokens, cost)
        except LimitExceeded as error:
            if "retry_after" in error.details:  # clients try again what is refused with this status
                exchange.fail(error, _TOO_MANY)
                return False
            return _refuse(exchange, error)
        return True

    def _read_eagerly(self, session_id: str) -> None:
        """Read the use from the session's last responses, so that its limits hold exactly between two requests.

        At most L{EAGER_A_SECOND} responses are read in a second. Others are read later or charged an estimate.
        """
        if self._eager > 0:
            self._eager -= self._read_usage(session_id or None, self._eager)

    def _settle(self, exchange: UpstreamExchange, provider: str) -> bool:
        """Return whether the limits and the use of models are known. If not, fail the exchange."""
        self.look()
        # guard of spending: limits that cannot be read let nothing pass -> test_guard.GuardTests.test_unread
        if self._own is None:
            return _refuse(exchange, Forbidden(_UNREAD))
        # guard of spending: nothing passes before the use of today is known -> test_guard.GuardTests.test_not_loaded
        if not self._is_open and self.ledger.of_provider(provider):
            return _refuse(exchange, StoreUnavailable(_NOT_LOADED))
        return True

    def _depends_on_model(self, provider: str) -> bool:
        limits = self.ledger.of_provider(provider)
        return any(limit.unit is Unit.MONEY or limit.model is not None for limit in limits)

    def _set_rules(self) -> None:
        own = self._own or OwnLimits()
        rules = [
            *(SpendRule(each, LimitSource.CONFIG) for each in self.settings.limits),
            *(SpendRule(each, LimitSource.COMMAND) for each in own.limits),
        ]
        self.ledger.set_rules(_strictest(rules), own.raises)
        self.reading = frozenset(each for each in self._providers if self._digests or self._depends_on_model(each))


@define(eq=False)
class HeldRequest:
    """A request to a model that is held until it is complete, since limits may refuse it."""

    _exchange: UpstreamExchange
    _admit: Callable[[bytes], bool]
    _go_later: Callable[[], None]
    _pieces: list[bytes] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)

    def read(self, data: bytes, last: bool) -> None:
        """Read a piece of the request. After the last piece, continue, or fail the request if it is not admitted."""
        exchange = self._exchange
        if exchange.over:
            return
        self._pieces.append(data)
        self._held += len(data)
        if self._held > MOST_HELD_BYTES:
            exchange.fail(ResourceLimitExceeded(_TOO_LONG), 413)
        elif last:
            # guard of spending: a held request that is refused is not sent -> test_guard.HeldTests.test_held_refused
            if not self._admit(b"".join(self._pieces)):
                return
            self._go_later()


def _refuse(exchange: UpstreamExchange, error: AileronError) -> bool:
    """Fail an exchange that is not admitted, and return False."""
    exchange.fail(error, exchange.refusal)
    return False


def _strictest(rules: list[SpendRule]) -> list[SpendRule]:
    """Return the rules without those that another one of the same name makes needless."""
    found: dict[str, SpendRule] = {}
    for rule in rules:
        other = found.get(rule.name)
        if other is None or rule.limit.most < other.limit.most:
            found[rule.name] = rule
    return list(found.values())
