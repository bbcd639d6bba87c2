"""Counts runs against the manifest's caps, the operator's own, and one that every ungated write has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from aileron.base.comparison import normalize_address
from aileron.base.json import JSON, compact, digest_of_bytes
from aileron.model.actions import Action, Cap
from aileron.model.audit import Actor
from aileron.model.authority import LoopLimits, OwnCap
from aileron.model.connectors import READ
from aileron.model.errors import LimitExceeded, NotFound
from aileron.model.interfaces.authority import IOperatorLimits
from aileron.model.runs import Charge
from aileron.model.sessions import Session

from .denials import Denials
from .normalization import ArgumentNormalizer
from .pauses import EffectGate
from .plan import Plan
from .runs import RunRepository

MOST_VALUES = 200
"""An argument with more values than these is not counted one by one, but refused where its values are capped."""

_HOUR_SECONDS = 3600.0
_WINDOWS = {_HOUR_SECONDS: "an hour", 86_400.0: "a day"}


def _is_unwatched(plan: Plan) -> bool:
    """Tell whether it changes something and asks nobody, so that nobody would stop an agent in a loop."""
    return not plan.action.approval.required and any(step.effect != READ for step in plan.steps)


def _is_hourly(cap: Cap) -> bool:
    return cap.argument is None and cap.seconds == _HOUR_SECONDS


def _charges(cap: Cap, action: Action | None, values: Sequence[str], session_id: str | None) -> Iterator[Charge]:
    counted: dict[str, JSON] = {"action": None if action is None else action.name, "argument": cap.argument}
    if cap.per_session:
        counted["session"] = session_id
    if cap.argument is None:
        yield Charge(_key(counted), cap.most, cap.seconds, _message(cap, action))
        return
    for value in values:
        yield Charge(_key({**counted, "value": value}), cap.most, cap.seconds, _message(cap, action))


def _values(name: str, given: JSON) -> Sequence[str]:
    """Return each different value of a normalized argument, as it is counted; one that is not given has none."""
    if given is None:
        return ()
    items = [given] if isinstance(given, str | Mapping) or not isinstance(given, Sequence) else given
    values = dict.fromkeys(_write_counted(item) for item in items)
    if len(values) > MOST_VALUES:
        raise LimitExceeded(f"{name} has more than {MOST_VALUES} values, and each of them is limited.")
    return tuple(values)


def _write_counted(value: JSON) -> str:
    """Write a value as it is counted; a text is apart from everything else.

    A capped argument is what something is counted for, so an address with a name counts as the address.
    """
    return f"text {normalize_address(value)}" if isinstance(value, str) else f"json {compact(value)}"


def _key(counted: Mapping[str, JSON]) -> str:
    """Opaque: a value that was counted is not to be read from the table."""
    return digest_of_bytes(compact({"tag": "aileron.cap.v1", **counted}).encode("ascii"))


def _message(cap: Cap, action: Action | None) -> str:
    what = "all actions together" if action is None else action.name
    for_each = f" for each value of {cap.argument}" if cap.argument is not None else ""
    times = "once" if cap.most == 1 else f"{cap.most} times"
    whose = " in each session" if cap.per_session else ""
    return f"The limit for {what} is reached: {times} {_WINDOWS[cap.seconds]}{for_each}{whose}."


def _usual(limits: LoopLimits) -> Cap | None:
    most = limits.writes_an_hour
    return None if most is None else Cap(most, _HOUR_SECONDS, per_session=True)


@define(eq=False)
class Caps:
    """Counts what begins, and keeps the operator's own caps."""

    _runs: RunRepository
    _operator_limits: IOperatorLimits
    _normalizer: ArgumentNormalizer
    _usual: Cap | None = field(converter=_usual)  # of an agent's unwatched writes that have no other hourly limit

    def charges(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> tuple[Charge, ...]:
        """Compute all that a run counts against now, with the most that may be counted there.

        :raises LimitExceeded: an argument has more values than can be counted.
        """
        action, own = plan.action, self._operator_limits.caps()
        caps = [*action.caps, *(each.cap for each in own if each.action == action.name)]
        if (
            session_id is not None
            and self._usual is not None
            and _is_unwatched(plan)
            and not any(map(_is_hourly, caps))
        ):
            caps.append(self._usual)
        found = [
            charge
            for cap in caps
            for charge in _charges(cap, action, self._list_values(cap, action, arguments), session_id)
        ]
        for each in own:
            if each.action is None:
                values = self._list_values(each.cap, action, arguments)
                found.extend(_charges(each.cap, None, values, session_id))
        return tuple(found)

    def _list_values(self, cap: Cap, action: Action, arguments: Mapping[str, JSON]) -> Sequence[str]:
        """Return the values that a cap counts apart, as the connectors normalize them; empty: it counts none apart."""
        name = cap.argument
        if name is None or name not in arguments:
            return ()
        return _values(name, self._normalizer.normalize(action, name, arguments[name]))

    async def refuse_full(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> None:
        """Pass only where a run could begin now: a courtesy to who would be asked; it is charged when it begins.

        :raises LimitExceeded: it could not.
        """
        found = self.charges(plan, arguments, session_id)
        if found:
            await self._runs.table.room(found)

    def own(self) -> tuple[OwnCap, ...]:
        """Return the operator's own caps."""
        return self._operator_limits.caps()

    async def put(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """Set caps, on record first and then in the vault."""
        now = self._runs.events.now()
        fresh = {each.name: evolve(each, set_at=now, set_by=actor.id) for each in caps}
        for each in fresh.values():
            await self._runs.audit.append(self._runs.events.of_home("cap.set", actor, **_describe(each)))
        kept = {each.name: each for each in self.own()}
        self._operator_limits.keep_caps(tuple({**kept, **fresh}.values()))
        return tuple(fresh.values())

    async def remove(self, which: OwnCap, actor: Actor) -> None:
        """Remove a cap, on record first and then in the vault."""
        if which.name not in {each.name for each in self.own()}:
            raise NotFound("There is no such limit.")
        await self._runs.audit.append(self._runs.events.of_home("cap.removed", actor, **_describe(which)))
        self._operator_limits.keep_caps(tuple(each for each in self.own() if each.name != which.name))


def _describe(own: OwnCap) -> dict[str, JSON]:
    return {
        "action": own.action,
        "argument": own.cap.argument,
        "per_session": own.cap.per_session,
        "most": own.cap.most,
        "seconds": own.cap.seconds,
    }


@frozen(eq=False)
class Limits:
    """Admits calls that nothing stops: no pause, no limit, no earlier denial, no loop."""

    effects: EffectGate
    caps: Caps
    denials: Denials

    async def learn(self) -> None:
        """At the start: what an earlier life left.

        :raises StoreUnavailable: it cannot be read.
        """
        await self.effects.pauses.learn()
        await self.denials.learn()

    def admit(self, session: Session | None, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Pass only a call that may be taken; the operator's own is stopped by a pause alone.

        :raises Paused, LimitExceeded, ApprovalDenied: it may not be now.
        """
        self.effects.pauses.refuse(None if session is None else session.id)
        if session is not None:
            self.denials.admit(session, action, arguments)
