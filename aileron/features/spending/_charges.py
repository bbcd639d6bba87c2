"""Charges requests to language models to the limits: reserves what a request may use, and counts what it used.

Each request of the relay passes here, so objects are found again instead of made anew, and sums are plain attributes.
Far from its limits a session reserves for several requests at once: a grant, of which each request takes a part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from aileron.model.usage import SpendKey, Usage

from ._totals import MOST_MODELS, Total
from ._windows import NEVER, Window
from .values import Price, SpendLimit, Unit

BYTES_OF_TOKEN = 4
"""How many bytes of a request are estimated to make one token."""

BYTES_OF_ANSWER_TOKEN = 8
"""How many bytes of an answer are estimated to make one token. A streamed token takes more of them."""

GRANTED_TOKENS = 32_768
"""The tokens that a grant reserves for each of its requests. A request that may use more is admitted by itself."""

_ERROR = 400
_FEW_BYTES = 65_536
_TOKENS_AT_MOST = 10**8

PARTS = (GRANTED_TOKENS, 1, 0)
"""The amounts that a grant reserves for each of its requests, in the order of L{UNITS}."""


class ChargedLedger(Protocol):
    """The methods of L{Ledger} that a L{Tab} uses, where the use of models is counted."""

    opened: set[Reservation]
    dirty: list[Total]
    unread_tabs: list[Tab]
    find_price: Callable[[str], Price | None]

    def find_total(self, tab: Tab, model: str) -> Total:
        """Return the use of a tab's requests that this model answered. See L{Tab}."""

    def bring_up_to_date(self, tab: Tab, cost: int = 0) -> None:
        """Count what the ended requests of a tab used, and release the unused part of its reservation."""

    def stir(self, window: Window, session_id: str) -> None:
        """Notify the operator, once, that most of a limit is used."""


class Tab:
    """The requests of one session to one provider, and one model if it was read, that begin on one day.

    It implements the gateway's L{RequestCharge} for requests that are part of its grant, or have no limit.

    :ivar windows: the limits that cover these requests.
    :ivar singles: the limits on each of these requests.
    :ivar is_limited: whether any limit covers these requests.
    :ivar counts_money: whether any of these limits is on money.
    :ivar is_near: whether the use of ended requests must be known at once.
    :ivar free: how many more requests the grant admits.
    :ivar granted: the number of requests with a reservation: C{free}, in progress, or C{ended}.
    :ivar ended: how many requests of the grant have ended since the windows were brought up to date.
    :ivar sent: how many of the C{ended} requests were sent to the provider. Together they used C{tokens}.
    :ivar unread: how many requests have ended without their responses being read and are not in a total yet. Their
        bodies have C{uploaded} bytes in total, and the bodies of their responses C{received} bytes.
    :ivar total: the use of these requests, except those that another model answered.
    :ivar price: the price of the model, or None.
    """

    __slots__ = (
        "_answered",
        "_dirty",
        "_ledger",
        "_unread_tabs",
        "counts_money",
        "day",
        "ended",
        "free",
        "granted",
        "is_limited",
        "is_near",
        "model",
        "price",
        "provider",
        "received",
        "sent",
        "session_id",
        "singles",
        "tokens",
        "total",
        "unread",
        "uploaded",
        "windows",
    )

    def __init__(self, ledger: ChargedLedger, key: SpendKey, total: Total, price: Price | None) -> None:
        """Create a tab (the requests of one session and model on a day) to which no limits apply yet."""
        self._ledger, self._dirty, self.total, self.price = ledger, ledger.dirty, total, price
        self.day, self.session_id, self.provider, self.model = key.day, key.session_id, key.provider, key.model
        self._answered: dict[str, tuple[Total, Price | None]] = {}
        self._unread_tabs = ledger.unread_tabs
        self.granted = self.ended = self.sent = self.tokens = self.unread = self.uploaded = self.received = 0
        self.count_in((), ())

    def count_in(self, singles: Sequence[SpendLimit], windows: Sequence[Window]) -> None:
        """Apply these limits to the tab's requests from now on.

        :param singles: the limits on each single request.
        :param windows: the limits on the requests of a session or a day.
        """
        self.singles, self.windows = singles, windows
        self.is_limited, self.is_near = bool(singles or windows), any(each.is_near for each in windows)
        limits = (*singles, *(each.limit for each in windows))
        self.counts_money = any(each.unit is Unit.MONEY for each in limits)
        self.free = 0 if self.is_limited else NEVER

    def release(self) -> None:
        self.ended += 1

    def settle(self, usage: Usage | None, model: str, code: int, uploaded: int, received: int) -> None:
        if usage is None and code < _ERROR and uploaded + received < _FEW_BYTES:
            # Its estimate is less than a part of a grant: in a flood most requests end here, and are added up later.
            if not self.unread:
                self._unread_tabs.append(self)
            self.unread += 1
            self.uploaded += uploaded
            self.received += received
            return
        tokens, _, cost = self.book(usage, model, code, uploaded, received)
        if self.windows:
            self.ended += 1
            self.sent += 1
            self.tokens += tokens
            # guard of spending: what passes its part of a grant counts at once -> test_guard.GrantTests.test_exact
            if tokens > GRANTED_TOKENS or cost or not self.granted:
                self._ledger.bring_up_to_date(self, cost)

    def hold_granted(self, parts: int) -> None:
        """Reserve L{GRANTED_TOKENS} tokens for each of C{parts} requests."""
        self.granted += parts
        self._reserve(parts)

    def _reserve(self, parts: int) -> None:
        for window in self.windows:
            window.left -= parts * PARTS[window.at]

    def hold_again(self) -> None:
        """Repeat the reservations after the windows (limits in a session or on a day) were replaced."""
        self._reserve(self.granted)

    def book_unread(self) -> None:
        """Add the estimates of requests whose responses were not read to the total."""
        count, self.unread = self.unread, 0
        read = (self.uploaded + (BYTES_OF_TOKEN - 1) * count) // BYTES_OF_TOKEN
        written = (self.received + (BYTES_OF_ANSWER_TOKEN - 1) * count) // BYTES_OF_ANSWER_TOKEN
        self.uploaded = self.received = 0
        total = self._find_dirty("")
        total.requests += count
        total.estimated += count
        total.input += read
        total.output += written
        if self.price is None:
            total.unpriced += count
        else:
            total.microdollars += self.price.cost(read, written, 0)
        if self.windows:
            self.ended += count
            self.sent += count
            self.tokens += read + written

    def _find_dirty(self, model: str) -> Total:
        """Return the total of this tab's requests that C{model} answered, and mark the total as not stored yet.

        :param model: the model that answered, or an empty text if it is the model that the requests asked for.
        """
        total = self._find_answered(model)[0] if model else self.total
        if not total.dirty:
            total.dirty = True
            self._dirty.append(total)
        return total

    def take_ended(self, cost: int) -> None:
        """Replace the reservations of ended requests by their use, and release those of unused parts of the grant.

        :param cost: the use in millionths of a dollar.
        """
        in_progress = max(0, self.granted - self.free - self.ended) if self.is_limited else 0
        back = self.granted - in_progress
        used = self.tokens, self.sent, cost
        for window in self.windows:
            window.left += back * PARTS[window.at] - used[window.at]
        self.granted, self.free = in_progress, 0 if self.is_limited else NEVER
        self.ended = self.sent = self.tokens = 0

    def book(self, usage: Usage | None, model: str, code: int, uploaded: int, received: int) -> tuple[int, int, int]:
        """Add the use of a request to a total, and return it as tokens, requests and millionths of a dollar.

        :param usage: the use that the response reports, or None to estimate it from the sizes.
        :param model: the model that the response names, or empty.
        :param code: the HTTP status. A request that fails with 400 or above and reports no use costs nothing.
        :param uploaded: the size of the request's body in bytes.
        :param received: the size of the response's body in bytes.
        """
        # guard of spending: a report beyond belief is not believed -> test_guard.ChargeTests.test_beyond_belief
        if usage is not None and not (0 < usage.input <= _TOKENS_AT_MOST and usage.output <= _TOKENS_AT_MOST):
            usage = None
        named = model if not self.model and model.isprintable() else ""
        price = self._find_answered(named)[1] if named else self.price
        total = self._find_dirty(named)
        total.requests += 1
        if usage is not None:
            return usage.input + usage.output, 1, total.add(usage, price)
        if code >= _ERROR:  # an error of the provider costs nothing
            return 0, 1, 0
        read = (uploaded + BYTES_OF_TOKEN - 1) // BYTES_OF_TOKEN
        written = (received + BYTES_OF_ANSWER_TOKEN - 1) // BYTES_OF_ANSWER_TOKEN
        total.input += read
        total.output += written
        total.estimated += 1
        if price is None:
            total.unpriced += 1
            return read + written, 1, 0
        cost = price.cost(read, written, 0)
        total.microdollars += cost
        return read + written, 1, cost

    def _find_answered(self, model: str) -> tuple[Total, Price | None]:
        """Return the total of requests that were answered by a model, and its price."""
        found = self._answered.get(model)
        if found is None:
            ledger = self._ledger
            found = ledger.find_total(self, model), ledger.find_price(model)
            if len(self._answered) < MOST_MODELS:
                self._answered[model] = found
        return found


class Reservation:
    """An admitted request with a reservation of its own, outside a grant. It implements the gateway's L{RequestCharge}.

    :ivar amounts: the reserved tokens, requests and millionths of a dollar.
    :ivar is_open: whether the reservation is still in force.
    """

    __slots__ = ("_ledger", "_opened", "amounts", "is_open", "tab")

    def __init__(self, ledger: ChargedLedger, tab: Tab, amounts: tuple[int, int, int]) -> None:
        self._ledger, self._opened = ledger, ledger.opened
        self.tab, self.amounts, self.is_open = tab, amounts, True

    def release(self) -> None:
        # guard of spending: what was reserved is given back -> test_ledger.LedgerTests.test_release
        if self.is_open:
            self.is_open = False
            self._opened.discard(self)
            for window in self.tab.windows:
                window.left += self.amounts[window.at]

    def settle(self, usage: Usage | None, model: str, code: int, uploaded: int, received: int) -> None:
        # guard of spending: a request is charged once -> test_ledger.LedgerTests.test_once
        if not self.is_open:
            return
        self.is_open = False
        ledger, tab, held = self._ledger, self.tab, self.amounts
        self._opened.discard(self)
        used = tab.book(usage, model, code, uploaded, received)
        for window in tab.windows:
            at = window.at
            window.left += held[at] - used[at]
            if window.left <= window.stir_at:
                ledger.stir(window, tab.session_id)
