"""Counts the use of models: by ended requests, the reservations of requests in progress, and the limits on both.

A request is admitted if use and reservations are below each limit that covers the request. The request then reserves an
estimate of its use, until its use is known. So requests that run at the same time do not all pass the last unit of a
limit: the first one reserves it.

A request in progress is never ended; a limit may be passed by what the last admitted request uses beyond its estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime

from attrs import evolve

from aileron.base.json import utc
from aileron.features.gateway.interfaces import RequestCharge
from aileron.model.errors import LimitExceeded
from aileron.model.usage import HeldUse, SharedUse, SpendKey, Spent

from ._charges import PARTS, Reservation, Tab
from ._totals import MOST_MODELS, OTHER_MODELS, Total, use_in_unit
from ._windows import SpendRule, Window, check_request, explain_reached, make_news, refuse_beyond_share
from .values import LimitState, Per, Price, Raise, SpendLimit, SpendNews

MOST_TABS = 4096
"""The most tabs that are kept for further requests."""

_NOTHING = Spent()
MOST_GRANTED = 256
"""The most requests of one grant."""


class Ledger:
    """The use of models, and the limits on it, in memory. No method waits or writes to the database.

    :ivar opened: the reservations of requests whose use is not known.
    :ivar dirty: the totals that have changed and are not stored.
    :ivar unread_tabs: the tabs with requests that no total has yet.
    :ivar read_ended: called to read what the ended requests of a session used.
    """

    def __init__(
        self,
        seconds: Callable[[], float],
        local_day: Callable[[float], date],
        find_price: Callable[[str], Price | None],
        tell: Callable[[SpendNews], None],
    ) -> None:
        """Create an empty ledger.

        :param seconds: returns the time in seconds since 1970.
        :param local_day: returns the day of a time in the daemon's time zone.
        :param find_price: returns the price of a model, or None.
        :param tell: notifies the operator, at most once for each event, limit and window.
        """
        self._seconds, self._local_day, self._tell = seconds, local_day, tell
        self.find_price = find_price
        self.read_ended: Callable[[str], None] = lambda _: None
        self.opened: set[Reservation] = set()
        self.dirty: list[Total] = []
        self.unread_tabs: list[Tab] = []
        self._totals: dict[SpendKey, Total] = {}
        self._models: dict[date, set[str]] = {}
        self._rules: tuple[SpendRule, ...] = ()
        self._raises: Mapping[tuple[str, str], int] = {}
        self._windows: dict[tuple[str, str], Window] = {}
        self._tabs: dict[tuple[str, str, str], Tab] = {}
        self._granting: set[Tab] = set()
        self._elsewhere: HeldUse = {}
        self._daemons = 1
        self.today = local_day(seconds())

    def load(self, totals: Mapping[SpendKey, Spent]) -> None:
        """Add the stored use of earlier processes. Call once, at the start."""
        for key, spent in totals.items():
            self._models.setdefault(key.day, set()).add(key.model)
            self._total(key).add_stored(spent)
        self._rebuild()

    def set_rules(self, rules: Iterable[SpendRule], raises: Iterable[Raise]) -> None:
        """Replace the limits in force. Earlier use and reservations count under the new limits."""
        self._rules = tuple(rules)
        added: dict[tuple[str, str], int] = {}
        for each in raises:
            at = (each.limit_id, each.window)
            added[at] = added.get(at, 0) + each.by
        self._raises = added
        self._rebuild()

    @property
    def rules(self) -> tuple[SpendRule, ...]:
        """The limits in force now."""
        return self._rules

    def of_provider(self, provider: str) -> list[SpendLimit]:
        """Return the limits that may cover requests to a provider."""
        return [each.limit for each in self._rules if each.limit.provider in (None, provider)]

    def look_at_clock(self) -> None:
        """Begin another day if the clock says so. If the clock was set back, that may be an earlier day."""
        self.bring_all_up_to_date()
        today = self._local_day(self._seconds())
        if today != self.today or len(self._tabs) > MOST_TABS:
            self.today, self._tabs = today, {}

    def tab(self, provider: str, session_id: str, model: str = "") -> Tab:
        """Return the tab for requests that begin today.

        :param session_id: the session, or empty for requests without one, which count together as one session.
        :param model: the model, or empty if the request was not read.
        """
        at = (session_id, provider, model)
        found = self._tabs.get(at)
        if found is None:
            found = self._tabs[at] = self._make_tab(provider, session_id, model)
        return found

    def admit(self, tab: Tab, tokens: int, cost: int = 0) -> RequestCharge:
        """Admit a request and reserve its estimated use: C{tokens}, and C{cost} in millionths of a dollar.

        :return: the charge, to settle or release when the request ends.
        :raises LimitExceeded: if a limit is reached. Nothing is reserved.
        """
        if not tab.is_limited:
            return tab
        if not tab.free:
            self._grant(tab)
        for limit in tab.singles:
            check_request(limit, tokens, cost)
        amounts, windows = (tokens, 1, cost), tab.windows
        for window in windows:
            # guard of spending: a reached limit admits no request -> test_ledger.LedgerTests.test_reached
            if window.left <= 0:
                self._read_or_refuse(window, tab.session_id)
            refuse_beyond_share(window)
        for window in windows:
            # guard of spending: requests in progress count -> test_ledger.LedgerTests.test_parallel
            window.left -= amounts[window.at]
            window.room -= amounts[window.at]
        reservation = Reservation(self, tab, amounts)
        self.opened.add(reservation)
        return reservation

    def _grant(self, tab: Tab) -> None:
        """Reserve for up to L{MOST_GRANTED} requests of a tab at once. Do nothing if one of its limits is near."""
        self.bring_up_to_date(tab)
        if tab.is_near or tab.singles or tab.counts_money:
            return
        parts = min([MOST_GRANTED, *(min(each.left, each.room) // (4 * PARTS[each.at]) for each in tab.windows)])
        if parts > 1:
            for window in tab.windows:
                window.room -= parts * PARTS[window.at]
            tab.hold_granted(parts)
            tab.free = parts
            self._granting.add(tab)

    def bring_up_to_date(self, tab: Tab, cost: int = 0) -> None:
        """Count what the ended requests of a tab used, and release the unused part of its reservation.

        :param cost: the use in millionths of a dollar.
        """
        if tab.unread:
            self.unread_tabs.remove(tab)
            tab.book_unread()
        tab.take_ended(cost)
        if not tab.granted:
            self._granting.discard(tab)
        for window in tab.windows:
            if window.left <= window.stir_at:
                self.stir(window, tab.session_id)

    def bring_all_up_to_date(self) -> None:
        """Add the use of all ended requests to the totals, and release the unused parts of all grants."""
        for tab in self.unread_tabs:
            tab.book_unread()
        self.unread_tabs.clear()
        for tab in [*self._granting]:
            self.bring_up_to_date(tab)

    def take_unwritten(self) -> list[tuple[SpendKey, Spent]]:
        """Return the use since the last call, by day, session, provider and model, for the caller to store."""
        self.bring_all_up_to_date()
        dirty = self.dirty[:]
        self.dirty.clear()
        return [(total.key, total.take_unwritten()) for total in dirty]

    def list_held(self) -> HeldUse:
        """Return what requests in progress at this daemon reserve of each limit, without limits on single requests."""
        held = {at: self._count_own(window) for at, window in self._windows.items()}
        return {at: amount for at, amount in held.items() if amount}

    def merge(self, shared: SharedUse) -> None:
        """Count what other daemons used and reserve. Call after what L{take_unwritten} returned was given to the store.

        The operator is notified if a limit is nearly reached by that.
        """
        self._elsewhere, self._daemons = shared.held, shared.daemons
        for key, stored in shared.totals.items():
            added = self._total(key).learn(stored)
            for window in self._windows.values() if added != _NOTHING else ():
                # guard of spending: what other daemons used counts -> test_several.SharedTests.test_used
                if _counts(window.limit, window.key, key):
                    window.left -= use_in_unit(window.limit.unit, added)
        for at, window in self._windows.items():
            # guard of spending: requests in progress at other daemons count -> test_several.SharedTests.test_held
            window.hold_elsewhere(shared.held.get(at, 0), shared.daemons)
            if window.left <= window.stir_at:
                self.stir(window, window.key if window.limit.per is Per.SESSION else "")

    def stir(self, window: Window, session_id: str) -> None:
        """Note that a limit is nearly reached, so that use is counted at once, and notify the operator once."""
        left = window.left + self.count_held(window)
        while window.stir(left):
            for tab in self._tabs.values():
                tab.is_near = tab.is_near or window in tab.windows
            if window.stir_at < 0:
                self._report("spending.warned", window, session_id)

    def count_held(self, window: Window) -> int:
        """Return how much of a limit is reserved by requests in progress at all daemons, in the limit's unit."""
        return self._count_own(window) + window.held_elsewhere

    def _count_own(self, window: Window) -> int:
        held = sum(each.amounts[window.at] for each in self.opened if window in each.tab.windows)
        granted = sum(each.granted for each in self._granting if window in each.windows)
        return held + granted * PARTS[window.at]

    def states(self) -> tuple[LimitState, ...]:
        """Return each limit with its use today, and limits for each session once for each session with use today."""
        self.look_at_clock()
        return tuple(self.read_state(rule, window) for rule in self._rules for window in self._list_windows(rule))

    def find_state(self, limit_id: str, key: str) -> LimitState | None:
        """Return a limit in a session or on a day, or None if there is no such limit."""
        rule = next((each for each in self._rules if each.name == limit_id), None)
        return None if rule is None else self.read_state(rule, self._window(rule, key))

    def read_state(self, rule: SpendRule, window: Window) -> LimitState:
        """Return a limit with its use and its reservations in one window."""
        held = self.count_held(window)
        return LimitState(rule.limit, rule.source, window.key, window.most, window.most - window.left - held, held)

    def totals(self) -> Mapping[SpendKey, Spent]:
        """Return the use by day, session, provider and model, without those that have no requests."""
        self.bring_all_up_to_date()
        return {key: total.read() for key, total in self._totals.items() if total.requests}

    def find_total(self, tab: Tab, model: str) -> Total:
        """Return the use of a tab's requests that this model answered. See L{Tab}."""
        return self._total(SpendKey(tab.day, tab.session_id, tab.provider, self._fit_model(tab.day, model)))

    def _total(self, key: SpendKey) -> Total:
        found = self._totals.get(key)
        if found is None:
            found = self._totals[key] = Total(key)
        return found

    def _make_tab(self, provider: str, session_id: str, model: str) -> Tab:
        key = SpendKey(self.today, session_id, provider, self._fit_model(self.today, model))
        tab = Tab(self, evolve(key, model=model), self._total(key), self.find_price(model))
        self._count_in_windows(tab)
        return tab

    def _count_in_windows(self, tab: Tab) -> None:
        rules = [
            each
            for each in self._rules
            if each.limit.provider in (None, tab.provider)
            and (each.limit.model is None or each.limit.covers(tab.provider, tab.model))
        ]
        singles = tuple(each.limit for each in rules if each.limit.per is Per.REQUEST)
        keys = {Per.SESSION: tab.session_id, Per.DAY: tab.day.isoformat()}
        counting = [each for each in rules if each.limit.per is not Per.REQUEST]
        tab.count_in(singles, tuple(self._window(each, keys[each.limit.per]) for each in counting))

    def _list_windows(self, rule: SpendRule) -> Sequence[Window]:
        limit, today = rule.limit, self.today
        if limit.per is not Per.SESSION:
            return [self._window(rule, today.isoformat() if limit.per is Per.DAY else "")]
        sessions = {key.session_id for key, total in self._totals.items() if key.day == today and total.requests}
        sessions.update(each.tab.session_id for each in self.opened)
        found = [self._window(rule, each) for each in sorted(sessions)]
        return [each for each in found if each.left < each.most] or [Window(limit, "", limit.most)]

    def _window(self, rule: SpendRule, key: str) -> Window:
        at = (rule.name, key)
        found = self._windows.get(at)
        if found is None:
            limit = rule.limit
            used = 0
            for total in self._totals.values():
                if _counts(limit, key, total.key):
                    used += use_in_unit(limit.unit, total.read())
            found = self._windows[at] = Window(limit, key, limit.most + self._raises.get(at, 0), used)
            found.hold_elsewhere(self._elsewhere.get(at, 0), self._daemons)
        return found

    def _rebuild(self) -> None:
        """Count all use and reservations again under the limits in force.

        A limit that was reported as reached is not reported again unless it was raised.
        """
        self.bring_all_up_to_date()
        former, self._windows = self._windows, {}
        for tab in {*self._tabs.values(), *self._granting, *(each.tab for each in self.opened)}:
            self._count_in_windows(tab)
            tab.hold_again()
        for each in self.opened:
            for window in each.tab.windows:
                window.left -= each.amounts[window.at]
        for at, window in former.items():
            now = self._windows.get(at)
            if now is not None and now.most <= window.most:
                now.told = window.told

    def _fit_model(self, day: date, model: str) -> str:
        known = self._models.setdefault(day, set())
        if model in known or len(known) < MOST_MODELS:
            known.add(model)
            return model
        return OTHER_MODELS

    def _read_or_refuse(self, window: Window, session_id: str) -> None:
        """Refuse a request if the limit is reached, after counting the use of the session's ended requests.

        The first refusal of a window is reported.

        :raises LimitExceeded: if the limit is reached.
        """
        self.bring_all_up_to_date()
        if window.left <= 0:
            self.read_ended(session_id)
            self.bring_all_up_to_date()
        if window.left > 0:
            return
        if not window.told:
            window.told = True
            self._report("spending.reached", window, session_id)
        raise LimitExceeded(explain_reached(window, self.count_held(window)))

    def _report(self, type_: str, window: Window, session_id: str) -> None:
        self._tell(make_news(type_, window, self.count_held(window), session_id, utc(self._seconds())))


def _counts(limit: SpendLimit, place: str, key: SpendKey) -> bool:
    """Return whether the use of C{key} counts for a limit in a session or on a day."""
    counts = key.session_id if limit.per is Per.SESSION else key.day.isoformat()
    return counts == place and limit.covers(key.provider, key.model)


def local_day(seconds: float) -> date:
    """Return the day of a time in the time zone of this process."""
    return datetime.fromtimestamp(seconds, UTC).astimezone().date()
