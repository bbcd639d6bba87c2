"""The commands C{aileron gateway limit} and C{aileron gateway usage}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.errors import CommandError
from aileron.cli.output import Columns, note
from aileron.cli.session import OperatorCommand, operator_command, reading_command

from .settings import MODEL, PROVIDER, read_dollars
from .values import MOST, Per, Unit, write_amount

if TYPE_CHECKING:
    from aileron.client import Operator

_PATH = ("gateway", "limits")
_NOTHING = "No limits on spending. Set one: aileron gateway limit set --per day --tokens 5000000"
_LIST = "List them: aileron gateway limit list"
_COUNT = click.IntRange(1, MOST)
_UNREADABLE = "spending.toml is not as you trusted it: requests to models are refused. Review it: aileron config trust"


def _read_money(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    found = read_dollars(text.removeprefix("$"))
    if found is None:
        raise click.BadParameter("specify an amount in US dollars, such as 20 or 0.50.")
    return found


_TOKENS = click.option("--tokens", type=_COUNT, help="Tokens, input and output together.")
_REQUESTS = click.option("--requests", type=_COUNT, help="Requests.")
_MONEY = click.option("--money", metavar="DOLLARS", callback=_read_money, help="US dollars, by gateway.prices.")


@click.group("limit")
def limit() -> None:
    """Limit what agents use of language models."""


@limit.command("list")
@_options.exact_times
@reading_command
def list_limits(command: OperatorCommand, /) -> None:
    """List the limits, and what was used of each today or in a session."""
    _list(command, command.get(*_PATH))


@limit.command("set")
@click.option("--per", type=click.Choice([each.value for each in Per]), default=Per.DAY.value, help="Default: day.")
@_TOKENS
@_REQUESTS
@_MONEY
@click.option("--provider", help="Only requests to this provider.")
@click.option("--model", help="Only requests to this model; may end in an asterisk.")
@operator_command
def set_limit(command: OperatorCommand, /, per: str, provider: str | None, model: str | None, **units: Any) -> None:
    """Set a limit. It takes the place of one that limits the same."""
    unit, most = _choose(units)
    if unit is Unit.REQUESTS and per == Per.REQUEST:
        raise click.UsageError("The requests of one request cannot be limited. Use --tokens or --money.")
    if provider is not None and not PROVIDER.fullmatch(provider):
        raise click.UsageError("--provider must be the name of a provider, such as openai.")
    if model is not None and not MODEL.fullmatch(model):
        raise click.UsageError("--model must be the name of a model, which may end in *.")
    body: dict[str, JSON] = {"unit": unit.value, "per": per, "most": most, "provider": provider, "model": model}
    _list(command, command.post(*_PATH, body=body))


@limit.command("remove")
@click.argument("id")
@operator_command
def remove_limit(command: OperatorCommand, /, id: str) -> None:  # noqa: A002 - the argument's name
    """Remove a limit that was set by a command."""

    async def look(operator: Operator) -> None:
        _find(await operator.get(*_PATH), id, None)

    _list(command, command.ask(lambda operator: operator.delete(*_PATH, id), look))


@limit.command("raise")
@click.argument("id")
@click.option("--by", help="How much more, in the limit's unit; default: as much again.")
@click.option("--session", help="The session in which more is allowed.")
@operator_command
def raise_limit(command: OperatorCommand, /, id: str, by: str | None, session: str | None) -> None:  # noqa: A002
    """Allow more of a limit today, or in one session. The agent can go on at once."""

    async def look(operator: Operator) -> None:
        _read_amount(_find(await operator.get(*_PATH), id, session), by)

    async def work(operator: Operator) -> Mapping[str, Any]:
        found = _find(await operator.get(*_PATH), id, session)
        body: dict[str, JSON] = {
            "window": session or found["window"],
            "by": _read_amount(found, by),
            "most": found["most"],
        }
        return await operator.post(*_PATH, id, "raise", body=body)

    answer = command.ask(work, look)
    unit = Unit(answer["unit"])
    command.say(
        answer,
        "{used} of {most} used. The agent can go on.",
        used=write_amount(unit, answer["used"]),
        most=write_amount(unit, answer["most"]),
    )


@click.command("usage")
@click.option("--day", metavar="YYYY-MM-DD", help="Another day than today.")
@reading_command
def usage(command: OperatorCommand, /, day: str | None) -> None:
    """Show what agents used of language models today, by session, provider and model."""
    answer = command.get("gateway", "usage", query={"day": day})
    command.list(answer, _USED, f"No LLM requests on {answer['day']}.")
    if not command.as_json and answer["items"]:
        note("{line}", line=_describe_total(answer["total"]))


def _choose(units: Mapping[str, Any]) -> tuple[Unit, int]:
    given = [(unit, units[unit.value]) for unit in Unit if units[unit.value] is not None]
    if len(given) != 1:
        raise click.UsageError("Specify one of: --tokens N, --requests N, --money DOLLARS.")
    return given[0]


def _read_amount(item: Mapping[str, Any], by: str | None) -> int:
    """Return how much is added: C{by} in the limit's unit, or as much as the limit.

    :raises CommandError: if C{by} is no such amount.
    """
    if by is None:
        return int(item["limit"])
    if item["unit"] == Unit.MONEY:
        found = read_dollars(by.removeprefix("$"))
    else:
        found = int(by) if by.isascii() and by.isdigit() and 0 < len(by) < 16 else None
    if not found:
        raise CommandError(f"{by} is no amount of {item['unit']}. Nothing was changed.", "")
    return found


def _find(answer: Mapping[str, Any], wanted: str, session: str | None) -> Mapping[str, Any]:
    """Return the limit with an ID, in a session if one is given.

    :raises CommandError: if there is none, or the session must be specified.
    """
    found: Sequence[Mapping[str, Any]] = [item for item in answer["items"] if item["id"] == wanted]
    if not found:
        raise CommandError(f"There is no limit {wanted}. Nothing was changed.", _LIST)
    if session is not None:
        if found[0]["per"] != Per.SESSION:
            raise CommandError(f"The limit {wanted} is not for sessions. Nothing was changed.", _LIST)
        same = {**found[0], "window": session, "most": found[0]["limit"]}
        return next((item for item in found if item["window"] == session), same)
    if len(found) > 1:
        raise CommandError(f"{len(found)} sessions use the limit {wanted}. Specify --session.", _LIST)
    return found[0]


def _list(command: OperatorCommand, answer: Mapping[str, Any]) -> None:
    command.list(answer, _COLUMNS, _NOTHING)
    if not command.as_json and not answer["readable"]:
        note(_UNREADABLE)


def _amount(name: str) -> Any:
    return lambda item: write_amount(Unit(item["unit"]), item[name])


def _cost(item: Mapping[str, Any]) -> str:
    known = item["cost_microdollars"] or not item["unpriced_requests"]
    cost = write_amount(Unit.MONEY, item["cost_microdollars"]) if known else "unknown"
    return f"{cost} ({item['unpriced_requests']} without a price)" if item["unpriced_requests"] else cost


def _describe_total(total: Mapping[str, Any]) -> str:
    tokens = total["input_tokens"] + total["output_tokens"]
    estimated = f", {total['estimated_requests']:,} of them estimated" if total["estimated_requests"] else ""
    return f"Total: {total['requests']:,} requests{estimated}, {tokens:,} tokens, {_cost(total)}. Costs are estimates."


_COLUMNS: Columns = {
    "ID": "id",
    "LIMIT": _amount("most"),
    "PER": "per",
    "PROVIDER": lambda item: item["provider"] or "(all)",
    "MODEL": lambda item: item["model"] or "(all)",
    "WHERE": "window",
    "USED": lambda item: None if item["per"] == Per.REQUEST else write_amount(Unit(item["unit"]), item["used"]),
    "STATE": lambda item: "reached" if item["reached"] else "active",
    "SET BY": lambda item: "config.yaml" if item["source"] == "config" else "command",
}
_USED: Columns = {
    "AGENT": "agent",
    "SESSION": "session_id",
    "PROVIDER": "provider",
    "MODEL": "model",
    "REQUESTS": "requests",
    "INPUT": "input_tokens",
    "OUTPUT": "output_tokens",
    "COST (ESTIMATE)": _cost,
}
