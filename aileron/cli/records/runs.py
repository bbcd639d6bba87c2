"""C{aileron runs}: what was asked for, and what became of it."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click

from aileron.cli import _completion, _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._output import block, heading, in_words, say, table, values
from aileron.cli._session import OperatorCommand, as_operator, operator_command
from aileron.cli.approvals.review import show_edits
from aileron.values import JSON, Attachment, set_apart

_FOUND: Mapping[bool | None, str] = {
    True: "It happened: it was found by its key.",
    False: "It did not happen.",
    None: "It was not found, which proves nothing yet.",
}


@click.group()
def runs() -> None:
    """See every run, take back what has not begun, settle the unknown ones."""


@runs.command("list")
@click.option("--state", help="Such as unknown or completed.", shell_complete=_completion.states)
@click.option("--action", help="Of this action only.", shell_complete=_completion.actions)
@click.option("--session", help="Of this session only.")
@click.option("--gated/--ungated", default=None, help="Only those that needed approval, or only others.")
@_options.paged
@operator_command
def list_runs(command: OperatorCommand, /, **filters: str | int | bool | None) -> None:
    """List runs, newest first."""
    command.list(
        lambda operator: operator.runs(_options.filter_query(**filters)),
        ("ID", "ACTION", "STATE", "RECEIVED AT", "SESSION"),
        lambda item: (item["id"], item["action"], item["state"], item["received_at"], item.get("session_id")),
        "There are no runs.",
    )


@runs.command("show")
@click.argument("run_id", metavar="ID")
@operator_command
def show_run(command: OperatorCommand, run_id: str) -> None:
    """Show one run: its arguments, its attempts, its result or why it failed."""
    command.show(command.ask(lambda operator: operator.run(run_id)), _show_run)


@runs.command("settle")
@click.argument("run_id", metavar="ID")
@click.option("--happened", "outcome", flag_value="happened", help="You found out that it did.")
@click.option("--did-not-happen", "outcome", flag_value="did_not_happen", help="You found out that it did not.")
@click.option("--run-again", "outcome", flag_value="run_again", help="Put it up for your decision once more.")
@click.option("--note", default="", help="How you know; it goes on record.")
@operator_command
def settle(command: OperatorCommand, run_id: str, outcome: str | None, note: str) -> None:
    """Say what became of a run whose outcome is unknown, or have it done again."""
    if outcome is None:
        raise click.UsageError("Say what you found out: --happened or --did-not-happen; or --run-again.")
    run = command.ask(lambda operator: operator.resolve(run_id, outcome, note))
    if outcome == "run_again":
        command.say(run, "It waits for your decision as {id}: aileron approval show {id}", id=run["id"])
    else:
        command.say(run, "The run is {state} now.", state=run["state"])


@runs.command("reconcile")
@click.argument("run_id", metavar="ID")
@operator_command
def reconcile(command: OperatorCommand, run_id: str) -> None:
    """Look whether a run whose outcome is unknown happened, where its connector says how."""
    command.show(command.ask(lambda operator: operator.reconcile_run(run_id)), _show_lookup)


def _show_lookup(found: Mapping[str, Any]) -> None:
    say(_FOUND[found["happened"]])
    _show_failure(found)
    say("The run is {state}.", state=found["run"]["state"])


@runs.command("cancel")
@click.argument("run_id", metavar="ID")
@click.option("--reason", help="Why; the agent is told.")
@operator_command
def cancel(command: OperatorCommand, run_id: str, reason: str | None) -> None:
    """Take a run back that has not begun, approved or not: nothing is sent."""
    answer = command.ask(lambda operator: operator.withdraw(run_id, reason))
    command.say(answer, "Taken back; nothing was sent.")


@runs.command("save")
@click.argument("run_id", metavar="ID")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@_options.passphrase_fd
@pass_cli
def save(cli: CliContext, run_id: str, directory: Path, passphrase_fd: int | None) -> None:
    """Write what is attached to a run's answers into a directory: a file each, none of which is there already."""
    run = as_operator(cli, passphrase_fd, lambda operator: operator.run(run_id))
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
            "session": run.get("session_id") or "none: you",
            "received at": run["received_at"],
            "changed at": run["changed_at"],
            "approval": "asked" if run["gated"] else "not asked",
            **({"does again": run["parent_id"]} if run.get("parent_id") else {}),
            **({"reason": run["reason"]} if run.get("reason") else {}),
            **({"audit record": run["audit_id"]} if run.get("audit_id") else {}),
        },
        "  ",
    )
    heading("Arguments")
    values(run["arguments"], "  ")
    show_edits(run)
    if run.get("failure"):
        heading("Why")
        _show_failure(run)
    if run.get("result") is not None:
        heading("Result")
        block(in_words(_set_apart(run)[0]), "  ")
    if _set_apart(run)[1]:
        say("To have what is attached: aileron runs save {id} DIRECTORY", id=run["id"])
    _show_attempts(run)
    if run["state"] == "unknown":
        say("Nobody knows whether it happened. Have it looked for: aileron runs reconcile {id}", id=run["id"])
        say("Or find out, then say so: aileron runs settle {id} --happened", id=run["id"])


def _show_failure(answer: Mapping[str, Any]) -> None:
    failure = answer.get("failure")
    if failure:
        say("  {kind}: {message}", kind=failure["class"], message=failure["message"])


def _set_apart(run: Mapping[str, Any]) -> tuple[JSON, tuple[Attachment, ...]]:
    """Return a run's result without what is attached; and that, and what is to the answers of its steps, each once."""
    told, attachments = set_apart([run.get("result"), *(step["output"] for step in run.get("steps") or ())])
    return cast("list[JSON]", told)[0], attachments


def _show_attempts(run: Mapping[str, Any]) -> None:
    if not run.get("attempts"):
        return
    heading("Attempts")
    rows = (
        (each["step"], each["number"], each["state"], each["started_at"], (each.get("failure") or {}).get("message"))
        for each in run["attempts"]
    )
    table(("STEP", "NO", "STATE", "STARTED AT", "WHY"), rows)


def saved(attachments: Sequence[Attachment], directory: Path, name: str) -> Iterator[Path]:
    """Write each into a file of its own, C{NAME-1.png} say, and tell its path.

    :param directory: is made where it is not there.
    :raises OSError: there is a file of that name, which stays as it is; or it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for number, attachment in enumerate(attachments, 1):
        path = directory / f"{name}-{number}{mimetypes.guess_extension(attachment.media_type) or ''}"
        with path.open("xb") as file:
            file.write(attachment.content)
        yield path
