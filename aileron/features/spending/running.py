"""Limits on spending as the daemon runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Protocol, cast

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.json import JSON, utc
from aileron.features.core import Core
from aileron.features.feature import RunningFeature
from aileron.features.gateway.running import RunningGateway
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable
from aileron.model.failures import log_failure
from aileron.model.interfaces.governance import ITrustService
from aileron.model.interfaces.store import IAudit
from aileron.model.trust import TrustKind
from aileron.model.usage import HeldUse, LimitKey, SharedUse, SpendKey, Spent
from aileron.model.vault import VaultState

from ._file import MOST_RAISES, NAME, OwnLimits, SpendingFile, set_limit
from ._guard import SpendGate
from ._ledger import Ledger, local_day
from ._runaway import RunawayDetector
from .settings import MOST_LIMITS
from .values import LimitState, Per, Raise, SpendLimit, SpendNews, SpendSettings

_log = Logger()
_TICK_SECONDS = 1.0
_UNREAD = f"{NAME} is not as it was trusted, so nothing was changed. Review it first: aileron config trust."
_IN_CONFIG = "This limit is set in config.yaml. Nothing was changed. Change it there, then run: aileron config trust."
_NO_LIMIT = "There is no such limit. List them: aileron gateway limit list"


class RecordsOnce(Protocol):
    """Records news about limits once for all daemons on a database. See L{aileron.store.Store}."""

    async def record_once(self, event: Event, state: LimitKey) -> bool:
        """Store an event, and return True, unless one of its type is stored for this state of a limit.

        :raises StoreUnavailable: if it cannot be stored.
        """


class SpendRecorder:
    """Records events about limits in the audit log."""

    def __init__(self, audit: IAudit, once: RecordsOnce, clock: IReactorTime, ids: Callable[[], str]) -> None:
        self._audit, self._once, self._clock, self._ids = audit, once, clock, ids
        self._writing: set[Deferred[None]] = set()

    def tell(self, news: SpendNews) -> None:
        """Write news to the audit log in the background: once for all daemons if about a limit. Failures are logged."""
        payload: dict[str, JSON] = {"why": news.why}
        if news.limit is not None:
            payload = {**describe_limit(news.limit), "used": news.used, "most": news.most, **payload}
        actor = DAEMON if news.session_id is None else Actor("agent", news.session_id)
        event = Event(self._ids(), news.type, news.at, actor, payload, session_id=news.session_id)
        writing = Deferred.fromCoroutine(self._record(event, news))
        self._writing.add(writing)
        writing.addErrback(lambda why: log_failure(_log, "recording {type}", why, type=event.type))
        writing.addBoth(lambda _: self._writing.discard(writing))

    async def _record(self, event: Event, news: SpendNews) -> None:
        if news.limit is None:
            await self._audit.append(event)
        else:
            await self._once.record_once(event, LimitKey(news.limit.id, news.place, news.most))

    def tell_runaway(self, session_id: str, why: str) -> None:
        """Record in the background that the agent of a session runs away."""
        self.tell(SpendNews("spending.runaway", session_id or None, why, utc(self._clock.seconds())))

    async def record_change(self, actor: Actor, what: str, limit: SpendLimit, **more: JSON) -> None:
        """Record that the operator changed a limit.

        :raises StoreUnavailable: if the audit log cannot be written.
        """
        payload: dict[str, JSON] = {"change": what, **describe_limit(limit), "most": limit.most, **more}
        now = utc(self._clock.seconds())
        await self._audit.append(Event(self._ids(), "spending.changed", now, actor, payload))

    async def stop(self) -> None:
        """Wait until all events are recorded."""
        while self._writing:
            await next(iter(self._writing))


def describe_limit(limit: SpendLimit) -> dict[str, JSON]:
    """Return the JSON members that identify a limit: its ID, unit, span, provider and model."""
    return {
        "limit": limit.id,
        "unit": limit.unit.value,
        "per": limit.per.value,
        "provider": limit.provider,
        "model": limit.model,
    }


@define(eq=False)
class RunningSpending(RunningFeature):
    """The running feature: the limits on spending in this daemon, and the use of models.

    :ivar gate: admits or refuses requests to models.
    """

    gate: SpendGate
    _ledger: Ledger
    _file: SpendingFile
    _trust: ITrustService
    _recorder: SpendRecorder
    _lock: DeferredLock = field(factory=DeferredLock, init=False)

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    @property
    def settings(self) -> SpendSettings:
        """The operator's settings about spending in config.yaml."""
        return self.gate.settings

    def states(self) -> tuple[LimitState, ...]:
        """Return each limit in force with its use today, and in each session with use today."""
        self.gate.look()
        return self._ledger.states()

    def is_readable(self) -> bool:
        """Return whether the limits that were set by commands could be read."""
        self.gate.look()
        return self.gate.own is not None

    def today(self) -> date:
        """Return the present day in the daemon's time zone."""
        self._ledger.look_at_clock()
        return self._ledger.today

    def totals(self) -> Mapping[SpendKey, Spent]:
        """Return the use of models by day, session, provider and model."""
        return self._ledger.totals()

    async def set(self, limit: SpendLimit, actor: Actor) -> None:
        """Set a limit. An earlier limit with the same ID is replaced.

        :raises InvalidRequest: if there are too many limits.
        :raises Conflict: if config.yaml has a stricter limit, or the file on disk is not trusted.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the limit could not be stored.
        """
        stricter = [each for each in self.settings.limits if each.id == limit.id and each.most <= limit.most]
        if stricter:
            raise Conflict(_IN_CONFIG)

        def change(own: OwnLimits) -> OwnLimits:
            changed = set_limit(own, limit)
            if len(changed.limits) > MOST_LIMITS:
                raise InvalidRequest(f"There are {MOST_LIMITS} limits already. Nothing was changed.")
            return changed

        await self._change(change, actor, "set", limit)

    async def remove(self, limit_id: str, actor: Actor) -> SpendLimit:
        """Remove a limit that was set by a command, and return the limit.

        :raises NotFound: if there is no such limit.
        :raises Conflict: if it is set in config.yaml, or the file on disk is not trusted.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the change could not be stored.
        """
        limit = self._find(limit_id)
        if self.gate.own is None or all(each.id != limit_id for each in self.gate.own.limits):
            raise Conflict(_IN_CONFIG)

        def change(own: OwnLimits) -> OwnLimits:
            raises = tuple(each for each in own.raises if each.limit_id != limit_id)
            return OwnLimits(tuple(each for each in own.limits if each.id != limit_id), raises)

        await self._change(change, actor, "removed", limit)
        return limit

    async def raise_limit(self, limit_id: str, window: str, by: int, seen: int, actor: Actor) -> LimitState:
        """Allow more in one session or on one day.

        :param window: the session, or the day.
        :param by: the amount to add, in the limit's unit.
        :param seen: the amount of the limit that the operator was shown, so that a second click raises nothing.
        :return: the limit as it is now.
        :raises NotFound: if there is no such limit.
        :raises Conflict: if the limit is not C{seen}, is for single requests, or the file on disk is not trusted.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the change could not be stored.
        """
        limit = self._find(limit_id)
        if limit.per is Per.REQUEST:
            raise Conflict("A limit on single requests cannot be raised for a while. Set another one.")

        def change(own: OwnLimits) -> OwnLimits:
            found = self._ledger.find_state(limit_id, window)
            # guard of spending: a raise counts once -> test_routes.RaiseTests.test_twice
            if found is None or found.most != seen:
                raise Conflict("This limit was changed meanwhile. Look at it again.")
            kept = [each for each in own.raises if self._is_current(each)][-(MOST_RAISES - 1) :]
            return evolve(own, raises=(*kept, Raise(limit_id, window, by)))

        await self._change(change, actor, "raised", limit, window=window, by=by)
        return self.find_state(limit_id, window)

    def find_state(self, limit_id: str, window: str) -> LimitState:
        """Return a limit in a session or on a day.

        :raises NotFound: if there is no such limit.
        """
        found = self._ledger.find_state(limit_id, window)
        if found is None:
            raise NotFound(_NO_LIMIT)
        return found

    def _is_current(self, each: Raise) -> bool:
        """Return whether a raise may still count: it is for a session, or for today or a later day."""
        try:
            return date.fromisoformat(each.window) >= self.today()
        except ValueError:
            return True

    def _find(self, limit_id: str) -> SpendLimit:
        self.gate.look()
        limit = next((each.limit for each in self._ledger.rules if each.name == limit_id), None)
        if limit is None:
            raise NotFound(_NO_LIMIT)
        return limit

    async def _change(
        self, change: Callable[[OwnLimits], OwnLimits], actor: Actor, what: str, limit: SpendLimit, **more: JSON
    ) -> None:
        async def work() -> None:
            self.gate.look()
            own = self.gate.own
            if own is None:
                raise Conflict(_UNREAD)
            with self._file.changing(change(own)) as candidate:
                await self._trust.trust([(TrustKind.CONFIG, NAME, candidate.digest)], actor)
            self.gate.look()
            await self._recorder.record_change(actor, what, limit, **more)

        await self._lock.run(lambda: Deferred.fromCoroutine(work()))


class SharedSpending(Protocol):
    """Stores the use of models at all daemons on a database."""

    async def share(self, held: HeldUse, day: date) -> SharedUse:
        """Write what was recorded and what requests in progress reserve, and read both of all daemons.

        :param held: what those at this daemon reserve.
        :param day: the day from which on totals are read.
        :raises StoreUnavailable: if the database cannot be used.
        """


@frozen
class SpendSharing:
    """Exchanges with other daemons what of the limits is used and reserved."""

    _ledger: Ledger
    _spending: SharedSpending

    async def exchange(self) -> None:
        """Write what this daemon uses and reserves, and count what the others do.

        If the database cannot be used, this daemon admits requests until its share of what was left is reserved.
        """
        ledger = self._ledger
        try:
            shared = await self._spending.share(ledger.list_held(), ledger.today - timedelta(days=1))
        except StoreUnavailable as error:
            _log.warn("what other daemons used of limits on spending is not known: {why}", why=error.message)
        else:
            ledger.merge(shared)


async def start_spending(core: Core) -> RunningSpending | None:
    """Load the stored use, and check the limits before each request. If the gateway is off, return None.

    :raises StoreUnavailable: if the stored use cannot be read.
    """
    gateway = core.find(RunningGateway)
    if gateway is None:
        return None
    process, store = core.process, core.store
    clock = cast(IReactorTime, process.reactor)
    recorder = SpendRecorder(store.audit, store.spending, clock, process.ids)
    settings = read_settings(gateway)
    ledger = Ledger(clock.seconds, local_day, settings.find_price, recorder.tell)
    file = cast(SpendingFile, core.files[SpendingFile])
    gate = SpendGate(
        settings,
        file,
        ledger,
        RunawayDetector(settings.runaway, clock.seconds, recorder.tell_runaway),
        clock.seconds,
        gateway.read_usage,
        lambda: core.vault.ever_unlocked() or core.vault.state() is VaultState.MISSING,
        tuple(each.name for each in gateway.settings.providers),
    )
    await store.spending.prune(ledger.today)
    ledger.load(await store.spending.since(date.min))
    gate.open()
    gateway.guard_spending(gate)

    def tick() -> None:
        gate.look()
        for key, spent in gate.take_unwritten():
            store.spending.note(key, spent)

    process.life.at_end(recorder.stop)
    process.life.at_end(tick)
    if store.shared is None:
        process.life.repeat(clock, _TICK_SECONDS, tick)
    else:
        sharing = SpendSharing(ledger, store.spending)
        await sharing.exchange()

        async def tick_shared() -> None:
            tick()
            await sharing.exchange()

        process.life.repeat(clock, _TICK_SECONDS, tick_shared, to_its_end=True)
    return RunningSpending(gate, ledger, file, core.runner.trust, recorder)


def read_settings(gateway: RunningGateway) -> SpendSettings:
    """Return the settings of this feature, which are keys of the gateway's settings."""
    default = SpendSettings()
    return SpendSettings(
        gateway.find_setting("limits", default.limits),
        gateway.find_setting("prices", default.prices),
        gateway.find_setting("runaway", default.runaway),
    )
