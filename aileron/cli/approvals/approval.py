"""C{aileron approval}: the agents' requests and your decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from aileron.base.json import timestamp, utc
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli._tree import hide
from aileron.cli.errors import CommandError
from aileron.cli.ids import id_argument, id_option, was_chosen
from aileron.cli.output import Columns, time_at, when
from aileron.cli.records.runs import cancel
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.cli.things import APPROVAL, DENIED_RUN, SESSION
from aileron.model.runs import RunState

from . import grant as granting
from .deciding import DecisionRequest, check_requests, decide_each, deny_with_sessions, read_approval
from .edit import edit
from .grant import moment_of
from .identical import count_members, decide_together, join_identical
from .review import show_review
from .rows import describe, find_mark, list_warnings
from .watch import watch

if TYPE_CHECKING:
    from aileron.client import Operator

_IDENTICAL = click.option("--identical", is_flag=True, help="Decide all identical pending requests together.")
_REASON = click.option("--reason", help="Reason; saved in the audit log and shown to the agent.")
_DIGEST = click.option("--digest", help="Decide only if the request has this digest.")
_WAIT = click.option(
    "--wait", type=click.FloatRange(0, 3600), default=10.0, show_default=True, help="Seconds to wait for the outcome."
)


@click.group()
def approval() -> None:
    """List, approve and deny requests of agents."""


@approval.command("list")
@click.option(
    "--state", help="Another state than pending_approval, such as completed.", shell_complete=_completion.states
)
@id_option("--session", SESSION, "Only this session.")
@_options.paged
@_options.exact_times
@reading_command
def list_approvals(command: OperatorCommand, /, **filters: str | int | None) -> None:
    """List pending approvals, oldest first, each with what to check before you approve."""
    columns: Columns = {
        "ID": "id",
        "REQUEST": describe,
        **({"STATE": lambda item: item["run"]["state"]} if filters["state"] else {}),
        "REQUESTED": time_at("requested_at"),
    }
    answer = command.get("action-approvals", query=_options.filter_query(**filters))
    if any(map(list_warnings, answer.get("items", ()))):
        columns = {**columns, "CHECK": lambda item: " ".join(filter(None, (find_mark(item), list_warnings(item))))}
    if any(item.get("stale") for item in answer.get("items", ())):
        columns = {**columns, "NOTE": lambda item: item.get("stale") or ""}
    if any(item.get("progress") for item in answer.get("items", ())):
        columns = {**columns, "APPROVALS": lambda item: item.get("progress") or ""}
    if not command.as_json:
        answer = {**answer, "items": (rows := join_identical(answer.get("items", ())))}
        if any(row["others"] for row in rows):
            columns = {**columns, "IDENTICAL": count_members}
    command.list(answer, columns, "No pending approvals.")


@approval.command("show")
@id_argument("approval_id", APPROVAL)
@click.option("--raw", is_flag=True, help="List every argument by its name, also those of a message, mail or issue.")
@_options.exact_times
@reading_command
def show_approval(command: OperatorCommand, /, approval_id: str, raw: bool) -> None:
    """Show one request in full: who made it, its arguments, and the HTTP requests to be sent."""
    found, session = command.read(lambda operator: read_approval(operator, approval_id))
    command.show({**found, "session": session}, lambda _: show_review(found, session, raw=raw))


@approval.command("approve")
@id_argument("approval_ids", APPROVAL, many=True)
@click.option("--yes", is_flag=True, help="Approve what is shown, without asking.")
@_DIGEST
@_REASON
@click.option(
    "--not-before", metavar="WHEN", help="Start no earlier than 2026-03-01T09:00 or +2h; at most 30 days ahead."
)
@_WAIT
@click.option("--force", "forced", is_flag=True, help="Approve alone although others must approve; needs --reason.")
@granting.options
@_IDENTICAL
@operator_command
def approve(command: OperatorCommand, /, approval_ids: tuple[str, ...], yes: bool, identical: bool, **how: Any) -> None:
    """Show each request in full, ask, and approve exactly what was shown. With --grant also allow similar calls."""
    as_json = command.as_json
    if how["forced"] and not (how["reason"] or "").strip():
        raise click.UsageError("--force needs --reason, which is recorded.")
    if identical:
        options = {
            "--force": how["forced"],
            "--yes": yes,
            "--json": as_json,
            "--digest": how["digest"],
            "--grant": how["grant"],
        }
        _refuse_identical(approval_ids, options)
    if as_json and not yes:
        raise click.UsageError("--json shows nothing for review: add --yes, and preferably --digest.")
    if yes and was_chosen() and how["digest"] is None:
        raise click.UsageError(
            "--yes needs a whole ID, or --digest: which request is the newest, the only one, or fits a part can change."
        )
    _refuse_many(approval_ids, {"--json": as_json, "--digest": how["digest"], "--grant": how["grant"]})
    granted = {name: how.pop(name) for name in ("grant", "uses", "lasting", "session", "allowed")}
    begins = how.pop("not_before")
    not_before = None if begins is None else timestamp(moment_of(begins, utc(command.cli.wall())))
    grant_request = granting.read_grant_request(**granted)
    requests = [
        DecisionRequest(
            each, approved=True, sure=yes, as_json=as_json, grant_request=grant_request, not_before=not_before, **how
        )
        for each in dict.fromkeys(approval_ids)
    ]
    work = decide_together if identical else decide_each
    command.ask(
        lambda operator: work(command.cli, operator, requests),
        lambda operator: check_requests(command.cli, operator, requests),
    )


@approval.command("deny")
@id_argument("approval_ids", APPROVAL, many=True)
@_DIGEST
@_REASON
@click.option(
    "--end-session", is_flag=True, help="Also end the session that made the request, and deny its other requests."
)
@_IDENTICAL
@operator_command
def deny(
    command: OperatorCommand, /, approval_ids: tuple[str, ...], end_session: bool, identical: bool, **how: Any
) -> None:
    """Deny one or more requests. Nothing is sent."""
    if identical:
        options = {"--json": command.as_json, "--digest": how["digest"], "--end-session": end_session}
        _refuse_identical(approval_ids, options)
    if command.as_json and end_session:
        raise click.UsageError("--json reports a single denial: remove --end-session.")
    _refuse_many(approval_ids, {"--json": command.as_json, "--digest": how["digest"]})
    requests = [
        DecisionRequest(each, approved=False, sure=True, as_json=command.as_json, **how)
        for each in dict.fromkeys(approval_ids)
    ]
    work = deny_with_sessions if end_session else decide_together if identical else decide_each
    command.ask(
        lambda operator: work(command.cli, operator, requests),
        lambda operator: check_requests(command.cli, operator, requests),
    )


approval.add_command(edit)
approval.add_command(watch)


approval.add_command(cancel)


@approval.command("allow-retry")
@id_argument("approval_id", DENIED_RUN)
@operator_command
def allow_retry(command: OperatorCommand, /, approval_id: str) -> None:
    """Allow agents to repeat a request that you denied, at once."""

    async def refuse_others(operator: Operator) -> None:
        state = (await operator.get("action-approvals", approval_id))["run"]["state"]
        if state != RunState.DENIED:
            raise CommandError(f"The run is {state}, so there is no denial to lift. Nothing was changed.")

    answer = command.ask(lambda operator: operator.post("action-approvals", approval_id, "forgive"), refuse_others)
    command.say(answer, "Agents can request it again.")


hide(approval, allow_retry, "forgive")


@approval.command("snooze")
@id_argument("approval_id", APPROVAL)
@click.option(
    "--until",
    metavar="WHEN",
    default="+1h",
    show_default=True,
    help="Hide it until this time, at most 30 days ahead: RFC 3339, or +30m, +2h, +1d.",
)
@click.option("--end", is_flag=True, help="Show it again now.")
@operator_command
def snooze(command: OperatorCommand, /, approval_id: str, until: str, end: bool) -> None:
    """Hide a request in the inbox until a time. It still expires."""
    moment = None if end else timestamp(moment_of(until, utc(command.cli.wall())))

    async def refuse_others(operator: Operator) -> None:
        state = (await operator.get("action-approvals", approval_id))["run"]["state"]
        if state != RunState.PENDING:
            raise CommandError(f"The run is {state}. Only a pending request can be snoozed. Nothing was changed.")

    answer = command.ask(
        lambda operator: operator.post("action-approvals", approval_id, "snooze", body={"until": moment}), refuse_others
    )
    command.say(answer, "Shown in the inbox again." if moment is None else f"Hidden in the inbox until {when(moment)}.")


def _refuse_identical(approval_ids: tuple[str, ...], options: Mapping[str, object]) -> None:
    """Refuse C{--identical} with several approvals, or with an option that applies to one request only.

    :raises click.UsageError: if there are several approvals, or such an option.
    """
    _refuse_many(approval_ids, {"--identical": True})
    named = [name for name, given in options.items() if given]
    if named:
        raise click.UsageError(f"--identical shows what it decides, and asks: remove {named[0]}.")


def _refuse_many(approval_ids: tuple[str, ...], options: Mapping[str, object]) -> None:
    """Refuse several approvals with an option that applies to one only.

    :raises click.UsageError: if there are several approvals and such an option.
    """
    named = [name for name, given in options.items() if given]
    if len(approval_ids) > 1 and named:
        raise click.UsageError(f"{named[0]} works with a single ID.")
