"""C{aileron grant}: standing grants, and the options for a grant created with an approval."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click
from attrs import frozen

from aileron.base.converter import to_json
from aileron.base.json import JSON, loads_strict, timestamp
from aileron.cli import options as _options
from aileron.cli.ids import id_argument
from aileron.cli.output import heading, say, time_at, value, values, when
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.cli.things import GRANT
from aileron.model.authority import Predicate, PredicateKind

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_FOR = re.compile(r"([1-9][0-9]{0,5})([smhd])").fullmatch
_BOUND = re.compile(r"-?[0-9.]*").fullmatch
_ALLOW = re.compile(r"([^=]+)=([a-z-]+)(?::(.*))?", re.DOTALL).fullmatch
_AHEAD = re.compile(r"\+([0-9]{1,6})([smhd])")


def options(command: F) -> F:
    """Add C{--grant} and the options that describe a grant to a click command."""
    for option in (
        click.option("--grant", is_flag=True, help="Also allow similar calls without asking you."),
        click.option("--uses", type=click.IntRange(1, 1000), help="With --grant: number of calls.  [default: 1]"),
        click.option("--for", "lasting", metavar="8h", help="With --grant: how long (s, m, h, d).  [default: 1h]"),
        click.option(
            "--session/--all-sessions", default=None, help="With --grant: calls of this session (default) or of all."
        ),
        click.option(
            "--allow",
            "allowed",
            multiple=True,
            metavar="NAME=KIND:VALUE",
            help="With --grant: allowed values of an argument, such as to=domain:example.com, channel=one-of:#a,#b,"
            " title=pattern:v[0-9]+, amount=range:1..50, note=any. All other arguments must be equal.",
        ),
    ):
        command = option(command)
    return command


@frozen
class GrantRequest:
    """The options of a grant: the calls that the person wants to allow.

    :ivar allowed: the predicates as typed: C{name=kind:value}.
    """

    uses: int
    lasting: timedelta
    session: bool
    allowed: tuple[str, ...] = ()

    def of(self, arguments: Mapping[str, JSON], now: datetime) -> dict[str, JSON]:
        """Return the request in the daemon's format.

        :param arguments: the call's arguments, which determine the type of each value.
        :raises click.UsageError: if a predicate is malformed.
        """
        predicates = [to_json(_predicate(text, arguments)) for text in self.allowed]
        until = timestamp(now + self.lasting)
        return {"predicates": predicates, "uses": self.uses, "not_after": until, "session": self.session}


def read_grant_request(
    *, grant: bool, uses: int | None, lasting: str | None, session: bool | None, allowed: Sequence[str]
) -> GrantRequest | None:
    """Parse the options of L{options}, or return None if no grant is requested.

    :raises click.UsageError: if the options contradict each other.
    """
    if not grant:
        if uses or lasting or session is not None or allowed:
            raise click.UsageError("--uses, --for, --session, --all-sessions and --allow require --grant.")
        return None
    return GrantRequest(uses or 1, _duration(lasting or "1h"), session is not False, tuple(allowed))


def show_grant_request(asked: Mapping[str, Any], arguments: Mapping[str, JSON]) -> None:
    """Print what the grant will allow, before it is created."""
    heading("Also allowed, without asking you")
    whose = "calls of this session" if asked["session"] else "calls of ALL sessions"
    say(
        "  up to {uses} more {whose}, until {until}, with",
        uses=asked["uses"],
        whose=whose,
        until=when(asked["not_after"]),
    )
    show_allowed(asked["predicates"], arguments)


def show_allowed(predicates: Sequence[Mapping[str, Any]], arguments: Mapping[str, JSON]) -> None:
    """Print which values a grant allows for each argument.

    :param predicates: the rules of the grant. An argument without a rule must keep its value.
    :param arguments: the arguments of the call for which the grant is created.
    """
    for each in predicates:
        said = Predicate(each["argument"], PredicateKind(each["kind"]), each.get("given")).in_words()
        say("    {name}: {said}", name=each["argument"], said=said)
    named = {each["argument"] for each in predicates}
    for name, given in arguments.items():
        if name not in named:
            value(f"{name}: exactly", given, "    ")
    say("    and no other arguments")


def _duration(text: str) -> timedelta:
    match = _FOR(text)
    if match is None:
        raise click.UsageError(f"{text!r} is not a duration such as 30m, 8h or 7d.")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _predicate(text: str, arguments: Mapping[str, JSON]) -> Predicate:
    match = _ALLOW(text)
    kinds = {kind.value.replace("_", "-"): kind for kind in PredicateKind}
    if match is None or match[2] not in kinds:
        raise click.UsageError(f"{text!r} is not NAME=KIND:VALUE with a kind of {', '.join(kinds)}.")
    name, kind, rest = match[1], kinds[match[2]], match[3]
    if (rest is None) != (kind is PredicateKind.ANY):
        raise click.UsageError(f"{text!r}: any takes no value, every other kind requires one.")
    return Predicate(name, kind, None if rest is None else _read_given(kind, rest, arguments.get(name)))


def _read_given(kind: PredicateKind, text: str, like: JSON) -> JSON:
    if kind is PredicateKind.PATTERN:
        return text
    if kind is PredicateKind.RANGE:
        return _bounds(text)
    if kind is PredicateKind.DOMAIN:
        return [name.strip() for name in text.split(",")]
    if kind is PredicateKind.EQUALS:
        return _value(text, like)
    return _read(text) if text.startswith("[") else [_value(each, like) for each in text.split(",")]


def _bounds(text: str) -> JSON:
    minimum, dots, maximum = text.rpartition("..")
    if not (dots and _BOUND(minimum) and _BOUND(maximum)):
        raise click.UsageError(f"{text!r} is not a range such as 1..50, 1.. or ..50.")
    return {name: _read(bound) for name, bound in (("minimum", minimum), ("maximum", maximum)) if bound}


def _value(text: str, like: JSON) -> JSON:
    """Convert the text that was typed for an argument: unchanged if C{like} is a text or null, else parsed as JSON.

    :param like: the call's value for the same argument.
    """
    return text if like is None or isinstance(like, str) else _read(text)


def _read(text: str) -> JSON:
    try:
        return loads_strict(text.encode("utf-8", "surrogateescape"))
    except ValueError:
        raise click.UsageError(f"{text!r} is not valid JSON.") from None


def moment_of(text: str, now: datetime) -> datetime:
    """Return the time that C{text} names: C{+2h}, or RFC 3339, without an offset in the time zone of this machine.

    When daylight saving time begins or ends, a skipped or repeated local time can mean two times. The later one is
    returned, so that a run never starts an hour early.

    :raises click.BadParameter: if C{text} is neither.
    """
    ahead = _AHEAD.fullmatch(text)
    if ahead is not None:
        return now + timedelta(**{_UNITS[ahead[2]]: int(ahead[1])})
    try:
        named = datetime.fromisoformat(text)
        return max(named.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is not a time such as +2h or 2026-03-01T09:00.") from None


@click.group()
def grant() -> None:
    """List and revoke grants. Create one with `aileron approve ID --grant`."""


@grant.command("list")
@_options.exact_times
@reading_command
def list_grants(command: OperatorCommand, /) -> None:
    """List grants, oldest first."""
    command.list(
        command.get("grants"),
        {"ID": "id", "ACTION": "action", "STATE": _state, "LEFT": _left, "UNTIL": time_at("not_after"), "FOR": _for},
        "No grants.",
    )


@grant.command("show")
@id_argument("grant_id", GRANT)
@_options.exact_times
@reading_command
def show_grant(command: OperatorCommand, /, grant_id: str) -> None:
    """Show one grant: what it allows, and whether it is active."""
    command.show(command.get("grants", grant_id), _show)


@grant.command("revoke")
@id_argument("grant_id", GRANT)
@operator_command
def revoke_grant(command: OperatorCommand, /, grant_id: str) -> None:
    """Revoke a grant: no further run starts by it. Revoking it again changes nothing."""
    found = command.remove("grants", grant_id)
    command.say(found, "{id} is {state}. Such calls need your approval again.", id=found["id"], state=_state(found))


def _show(found: Mapping[str, Any]) -> None:
    heading("{action}", action=found["action"])
    if found["suspended"]:
        say("  Suspended, allows nothing: {why}", why=found["suspended"])
    values(
        {
            "grant": found["id"],
            "state": _state(found),
            "left": _left(found),
            "until": when(found["not_after"]),
            "for": _for(found),
            "created": when(found["made_at"]),
            "created with": f"run {found['run_id']}",
            "last used": when(found["used_at"]) if found["used_at"] else "never",
        },
        "  ",
    )
    heading("Allows calls with")
    show_allowed(found["predicates"], found["exact"])
    heading("Valid only with")
    values(found["bound"], "  ")


def _left(item: Mapping[str, Any]) -> str:
    return f"{item['left']} of {item['uses']}"


def _state(item: Mapping[str, Any]) -> str:
    return "suspended" if item["suspended"] else str(item["state"]).replace("_", " ")


def _for(item: Mapping[str, Any]) -> str:
    return "all sessions" if item["session_id"] is None else f"session {item['session_id']}"
