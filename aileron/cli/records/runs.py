"""C{aileron run}: runs and their outcomes."""

from __future__ import annotations

import mimetypes
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from aileron.base.attachments import Attachment, set_apart
from aileron.base.json import JSON
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.approvals.deciding import settling
from aileron.cli.approvals.review import show_edits
from aileron.cli.errors import CommandError
from aileron.cli.ids import id_argument, id_option
from aileron.cli.output import Columns, block, heading, in_words, say, table_of, time_at, values, when
from aileron.cli.session import OperatorCommand, operator_command, plain_command, reading_command, refuse_paused
from aileron.cli.things import COMPLETED_RUN, NOT_STARTED, RUN, SESSION, UNKNOWN_RUN, UNSTARTED_RUN
from aileron.model.runs import RunState

if TYPE_CHECKING:
    from aileron.client import Operator

_UNKNOWN = frozenset((RunState.UNKNOWN,))

_FOUND: Mapping[bool | None, str] = {
    True: "It happened: the service found it by its key.",
    False: "It did not happen.",
    None: "It was not found. That does not prove that it did not happen.",
}


@click.group("run")
def runs() -> None:
    """List runs, cancel those that have not started, and settle unknown outcomes."""


@runs.command("list")
@click.option("--state", help="Only this state, such as unknown or completed.", shell_complete=_completion.states)
@click.option("--action", help="Only this action.", shell_complete=_completion.actions)
@id_option("--session", SESSION, "Only this session.")
@click.option("--gated/--ungated", default=None, help="Only runs that need approval, or only others.")
@_options.paged
@_options.exact_times
@reading_command
def list_runs(command: OperatorCommand, /, **filters: str | int | bool | None) -> None:
    """List runs, newest first."""
    unknown = set(str(filters["state"] or "").split(",")) - {"", *RunState}
    if unknown:
        raise click.UsageError(f"--state {', '.join(sorted(unknown))}: use {', '.join(RunState)}.")
    command.list(
        command.get("runs", query=_options.filter_query(**filters)),
        {"ID": "id", "ACTION": "action", "STATE": _describe_state, "REQUESTED": time_at("received_at")},
        "No runs.",
    )


@runs.command("show")
@id_argument("run_id", RUN)
@_options.exact_times
@reading_command
def show_run(command: OperatorCommand, run_id: str) -> None:
    """Show one run: arguments, attempts, and result or failure."""
    command.show(command.get("runs", run_id), _show_run)


@runs.command("settle")
@id_argument("run_id", UNKNOWN_RUN)
@click.option("--happened", "outcome", flag_value="happened", help="You checked: it happened.")
@click.option("--did-not-happen", "outcome", flag_value="did_not_happen", help="You checked: it did not happen.")
@click.option("--run-again", "outcome", flag_value="run_again", help="Request it again, for your approval.")
@click.option("--note", default="", help="How you know; saved in the audit log.")
@operator_command
def settle(command: OperatorCommand, run_id: str, outcome: str | None, note: str) -> None:
    """Record the outcome of a run whose outcome is unknown, or request it again."""
    if outcome is None:
        raise click.UsageError("Specify the outcome: --happened or --did-not-happen; or --run-again.")
    if outcome == "run_again":
        refuse_paused(command.cli, "requested")
    body: dict[str, JSON] = {"outcome": outcome, "note": note}
    run = command.ask(lambda operator: operator.post("runs", run_id, "resolve", body=body), _look(run_id, _UNKNOWN))
    if outcome == "run_again":
        words = "Requested again as {id}. It may happen twice if you approve it: aileron approve {id}"
        command.say(run, words, id=run["id"])
    else:
        command.say(run, "The run is now {state}.", state=run["state"])


@runs.command("reconcile")
@id_argument("run_id", UNKNOWN_RUN)
@operator_command
def reconcile(command: OperatorCommand, run_id: str) -> None:
    """Ask the service whether a run with unknown outcome happened, if its connector supports that."""
    from aileron.client import DaemonFault

    try:
        found = command.ask(lambda operator: operator.post("runs", run_id, "reconcile"), _look(run_id, _UNKNOWN))
    except DaemonFault as error:
        if error.fault.kind != "capability_denied":
            raise
        hint = f"Check it yourself and record the outcome: {settling(run_id)}"
        raise CommandError(f"{error.message} Nothing was sent.", hint) from None
    command.show(found, _show_lookup)


def _show_lookup(found: Mapping[str, Any]) -> None:
    say(_FOUND[found["happened"]])
    _show_failure(found)
    say("The run is {state}.", state=found["run"]["state"])


@runs.command("undo")
@id_argument("run_id", COMPLETED_RUN)
@operator_command
def undo(command: OperatorCommand, run_id: str) -> None:
    """Request what undoes a completed run, if its action says how. You approve it like any other run."""
    refuse_paused(command.cli, "requested")
    run = command.ask(
        lambda operator: operator.post("runs", run_id, "undo"), _look(run_id, frozenset((RunState.COMPLETED,)))
    )
    command.say(run, "Requested as {id}. Review it: aileron approval show {id}", id=run["id"])


@runs.command("cancel")
@id_argument("run_id", UNSTARTED_RUN)
@click.option("--reason", help="Reason; shown to the agent.")
@operator_command
def cancel(command: OperatorCommand, run_id: str, reason: str | None) -> None:
    """Cancel a run that has not started, approved or not. Nothing is sent."""
    answer = command.ask(lambda operator: operator.withdraw(run_id, reason), _look(run_id, NOT_STARTED))
    command.say(answer, "Cancelled; nothing was sent.")


def _look(run_id: str, states: Collection[str]) -> Callable[[Operator], Awaitable[object]]:
    """Return a check that the run exists and is in one of the states. Otherwise the check raises L{CommandError}."""

    async def look(operator: Operator) -> None:
        state = (await operator.get("runs", run_id))["state"]
        if state not in states:
            raise CommandError(f"The run is {state}. Nothing was changed.", f"See it: aileron run show {run_id}")

    return look


@runs.command("save")
@id_argument("run_id", RUN, required=True)
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@plain_command
def save(command: OperatorCommand, run_id: str, directory: Path) -> None:
    """Save the attachments of a run's results in a directory, each to a new file. Existing files are not changed."""
    run = command.get("runs", run_id)
    _, attachments = _set_apart(run)
    if not attachments:
        say("Nothing is attached to it.")
        return
    for path in saved(attachments, directory, run["id"]):
        say("{path}", path=str(path))


def _show_run(run: Mapping[str, Any]) -> None:
    heading("{action} {version}", action=run["action"], version=run["action_version"])
    values(
        {
            "state": run["state"],
            "run": run["id"],
            "session": run.get("session_id") or "none (requested by you)",
            **({"account": run["owner"]["name"]} if run.get("owner") else {}),
            "requested": when(run["received_at"]),
            "last changed": when(run["changed_at"]),
            "approval": "required" if run["gated"] else "not required",
            **({"repeats": run["parent_id"]} if run.get("parent_id") else {}),
            **({"run again as": again} if (again := _find_repetition(run)) else {}),
            **({"undoes": run["undoes"]} if run.get("undoes") else {}),
            **({"reason": run["reason"]} if run.get("reason") else {}),
            **({"audit record": run["audit_id"]} if run.get("audit_id") else {}),
        },
        "  ",
    )
    heading("Arguments")
    values(run["arguments"], "  ")
    show_edits(run)
    if run.get("failure"):
        heading("Failure")
        _show_failure(run)
    if run.get("result") is not None:
        heading("Result")
        block(in_words(_set_apart(run)[0]), "  ")
    if _set_apart(run)[1]:
        say("To save the attachments: aileron run save {id} DIRECTORY", id=run["id"])
    _show_attempts(run)
    if run["state"] == "unknown" and not _find_repetition(run, "superseded_by"):
        _show_unknown(run)


def _find_repetition(run: Mapping[str, Any], name: str = "run_again") -> str | None:
    """Return the ID of the run that repeats this one, or None if there is none.

    :param name: C{superseded_by} for a repetition that was approved.
    """
    found: str | None = ((run.get("failure") or {}).get("details") or {}).get(name)
    return found


def _describe_state(run: Mapping[str, Any]) -> str:
    return "run again" if _find_repetition(run, "superseded_by") else str(run["state"])


def _show_unknown(run: Mapping[str, Any]) -> None:
    if run.get("reconcilable", True):
        say("Outcome unknown: it may have happened. To ask the service: aileron run reconcile {id}", id=run["id"])
        say("Or check it yourself and record the outcome: {settle}", settle=settling(run["id"]))
    else:
        say("Outcome unknown: it may have happened. Aileron cannot look up the outcome of this run.")
        say("Check it yourself and record the outcome: {settle}", settle=settling(run["id"]))


def _show_failure(answer: Mapping[str, Any]) -> None:
    failure = answer.get("failure")
    if failure:
        say("  {kind}: {message}", kind=failure["class"], message=failure["message"])


def _set_apart(run: Mapping[str, Any]) -> tuple[JSON, tuple[Attachment, ...]]:
    """Return a run's result without attachments, and each distinct attachment of the result and its steps once."""
    told, attachments = set_apart([run.get("result"), *(step["output"] for step in run.get("steps") or ())])
    return cast("list[JSON]", told)[0], attachments


def _show_attempts(run: Mapping[str, Any]) -> None:
    if not run.get("attempts"):
        return
    heading("Attempts")
    columns: Columns = {
        "STEP": "step",
        "NO": "number",
        "STATE": "state",
        "STARTED": time_at("started_at"),
        "FAILURE": lambda each: (each.get("failure") or {}).get("message"),
    }
    table_of(columns, run["attempts"])
    for each in run["attempts"]:
        if each.get("answer") is not None:
            kind = f" ({each['answer_type']})" if each.get("answer_type") else ""
            heading("Response to {step}, attempt {number}{kind}", step=each["step"], number=each["number"], kind=kind)
            block(each["answer"], "  ")


def saved(attachments: Sequence[Attachment], directory: Path, name: str) -> Iterator[Path]:
    """Write each attachment to a new file, such as C{NAME-1.png}, and yield its path.

    :param directory: created if it does not exist.
    :raises OSError: if a file of that name exists, which is not changed, or writing fails.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for number, attachment in enumerate(attachments, 1):
        path = directory / f"{name}-{number}{mimetypes.guess_extension(attachment.media_type) or ''}"
        with path.open("xb") as file:
            file.write(attachment.content)
        yield path
