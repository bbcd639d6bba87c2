"""Caps: how often an action may run in an hour or a day, by the action's file and by the operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve, field

from aileron.base.comparison import normalize_address
from aileron.base.json import JSON, compact, digest_of_bytes
from aileron.model.actions import Action, Cap
from aileron.model.audit import Actor
from aileron.model.authority import LoopLimits, OwnCap
from aileron.model.connectors import READ
from aileron.model.errors import LimitExceeded, NotFound
from aileron.model.interfaces.authority import IOperatorLimits
from aileron.model.runs import Charge

from .call_digests import ArgumentNormalizer
from .plan import Plan
from .runs import RunRepository

MOST_VALUES = 200
"""The maximum number of values of an argument that has a cap for each value. A call with more is refused."""

_HOUR_SECONDS = 3600.0
_WINDOWS = {_HOUR_SECONDS: "an hour", 86_400.0: "a day"}


def _is_unwatched(plan: Plan) -> bool:
    """Return whether the plan writes without an approval, so that no person would stop an agent in a loop."""
    return not plan.action.approval.gated and any(step.effect != READ for step in plan.steps)


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
    """Return the texts by which the distinct values of a normalized argument are counted, or none if it is missing.

    :raises LimitExceeded: if there are more than L{MOST_VALUES}.
    """
    if given is None:
        return ()
    items = [given] if isinstance(given, str | Mapping) or not isinstance(given, Sequence) else given
    values = dict.fromkeys(_write_counted(item) for item in items)
    if len(values) > MOST_VALUES:
        raise LimitExceeded(f"{name} has more than {MOST_VALUES} values, and each of them is limited.")
    return tuple(values)


def _write_counted(value: JSON) -> str:
    """Return the text by which a value is counted. The text of a string never equals that of another type.

    A mail address with a display name is counted as the address alone, so that the name cannot evade a cap.
    """
    return f"text {normalize_address(value)}" if isinstance(value, str) else f"json {compact(value)}"


def _key(counted: Mapping[str, JSON]) -> str:
    """Return an opaque key, so that the table does not reveal the counted value."""
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
    """Computes the counters of a run for the caps of its action and of the operator, and stores the operator's caps."""

    _runs: RunRepository
    _operator_limits: IOperatorLimits
    _normalizer: ArgumentNormalizer
    _usual: Cap | None = field(converter=_usual)  # for agents' ungated writes without an hourly cap

    def charges(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> tuple[Charge, ...]:
        """Return the charges of a run: a counter and its limit for each cap that applies to the run.

        :raises LimitExceeded: if an argument has more values than can be counted.
        """
        action, own = plan.action, self._operator_limits.caps()
        caps = [*action.limits, *(each.cap for each in own if each.action == action.name)]
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
        """Return the normalized values that a cap counts separately, or nothing if it counts none separately.

        :raises LimitExceeded: if the argument has more than L{MOST_VALUES} values.
        """
        name = cap.argument
        if name is None or name not in arguments:
            return ()
        return _values(name, self._normalizer.normalize(action, name, arguments[name]))

    async def refuse_full(self, plan: Plan, arguments: Mapping[str, JSON], session_id: str | None) -> None:
        """Refuse a run that could not begin now because a cap is reached. Nothing is counted before the run begins.

        :raises LimitExceeded: if a cap is reached, or an argument has more values than can be counted.
        """
        found = self.charges(plan, arguments, session_id)
        if found:
            await self._runs.require_room(found)

    def own(self) -> tuple[OwnCap, ...]:
        """Return the operator's own caps."""
        return self._operator_limits.caps()

    async def put(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """Record the operator's caps in the audit log, then store them in the vault. Each replaces a cap of its name.

        :return: the given caps with the time and the actor.
        :raises StoreUnavailable: if the audit log or the vault cannot be written. No cap is changed.
        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered. No cap is changed.
        """
        now = self._runs.now()
        fresh = {each.name: evolve(each, set_at=now, set_by=actor.id) for each in caps}
        for each in fresh.values():
            await self._runs.record(self._runs.event_of_home("cap.set", actor, **_describe(each)))
        kept = {each.name: each for each in self.own()}
        self._operator_limits.keep_caps(tuple({**kept, **fresh}.values()))
        return tuple(fresh.values())

    async def remove(self, which: OwnCap, actor: Actor) -> None:
        """Record the removal of a cap in the audit log, then remove the cap from the vault.

        :raises NotFound: if the operator has no such cap.
        :raises VaultLocked: if the vault is not unlocked. The cap stays.
        :raises BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written. The cap stays.
        """
        if which.name not in {each.name for each in self.own()}:
            raise NotFound("There is no such limit.")
        await self._runs.record(self._runs.event_of_home("cap.removed", actor, **_describe(which)))
        self._operator_limits.keep_caps(tuple(each for each in self.own() if each.name != which.name))


def _describe(own: OwnCap) -> dict[str, JSON]:
    return {
        "action": own.action,
        "argument": own.cap.argument,
        "per_session": own.cap.per_session,
        "most": own.cap.most,
        "seconds": own.cap.seconds,
    }
