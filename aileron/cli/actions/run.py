"""C{aileron action run}: runs an action from the command line, through the same route as an agent."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from aileron.base.attachments import set_apart
from aileron.base.converter import from_json
from aileron.base.json import JSON, loads_strict
from aileron.base.text import visible
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.approvals.deciding import settling
from aileron.cli.approvals.review import show_requests
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import PENDING, CommandError
from aileron.cli.output import block, in_words, note, progress, say, say_json
from aileron.cli.session import OperatorCommand, as_session, reading_command
from aileron.model.reviews import Review
from aileron.model.runs import Call

from .inputs import tell_missing_of

if TYPE_CHECKING:
    from aileron.client import Daemon, DaemonAnswer

_LIST = "List the actions: aileron action list"
_WAITS = 202
_PENDING = "pending_approval"
_BOOLEANS = {"true": True, "false": False}
_WAITING = {
    "approved": "{name} is approved and has not started.",
    "awaiting_credential": "{name} is approved. It starts when you renew its credential; see aileron credential list",
    "awaiting_vault": "{name} is approved. It starts when the vault is unlocked: aileron vault unlock",
}


@click.command("run")
@click.argument("name", shell_complete=_completion.actions)
@click.option("--arg", "pairs", multiple=True, metavar="K=V", help="One argument, as text; can be repeated.")
@click.option("--args", "whole", metavar="JSON", help="All arguments as one JSON object.")
@click.option("--wait", type=click.FloatRange(0, 3600), metavar="S", help="Seconds to wait for a decision.")
@_options.as_json
@click.pass_context
@pass_cli
def run_action(
    cli: CliContext,
    context: click.Context,
    name: str,
    pairs: tuple[str, ...],
    whole: str | None,
    wait: float | None,
    as_json: bool,
) -> None:
    """Run an action and print its result. The exit code is 75 if it is pending approval."""
    if pairs and whole is not None:
        raise click.UsageError("Use either --arg or --args, not both.")
    given = read_object(whole) if whole is not None else None

    async def ask(daemon: Daemon) -> DaemonAnswer:
        action = await _action(daemon, name)
        arguments = given if given is not None else read_complete(pairs, action["input_schema"])
        if not wait or as_json:
            return await daemon.run(name, arguments, wait_seconds=wait)
        return await _ask_and_wait(daemon, name, arguments, wait)

    with progress(f"Waiting for the result of {name}"), _for_person(name):
        answer = as_session(cli, ask)
    _tell(name, answer.body, as_json)
    if answer.status == _WAITS:
        context.exit(PENDING)


async def _ask_and_wait(daemon: Daemon, name: str, arguments: Mapping[str, JSON], wait: float) -> DaemonAnswer:
    """Run an action and return its answer. If the run needs an approval, print that first.

    :param wait: the seconds to wait for the result. If there is none by then, the answer has status 202.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    key = Call.mint_key(secrets.token_urlsafe(24))
    asked = await daemon.run(name, arguments, key, 0)
    if asked.status != _WAITS:
        return asked
    if asked.body.get("status") == _PENDING:
        note("{name} needs your approval; waiting up to {seconds} s for it.", name=name, seconds=f"{wait:g}")
        note("  To decide, run in another terminal: aileron approve {id}", id=asked.body.get("approval_id"))
    return await daemon.run(name, arguments, key, wait)


@contextmanager
def _for_person(name: str) -> Iterator[None]:
    """Replace errors worded for an agent by errors for a person, since this command runs actions as an agent does.

    :raises CommandError: in place of an unknown outcome or a denial.
    :raises DaemonFault: any other error, unchanged.
    """
    from aileron.client import DaemonFault

    try:
        yield
    except DaemonFault as fault:
        said, details = fault.fault, fault.fault.details
        reason = f" Reason: {visible(str(details['reason']))}" if details.get("reason") else ""
        run_id = fault.run_id or details.get("run_id")
        if said.kind == "outcome_unknown" and run_id:
            cause = details.get("cause")
            why = f" {visible(str(cause.get('message')))}" if isinstance(cause, Mapping) else ""
            hint = f"Check the service, then run: {settling(str(run_id))}"
            raise CommandError(f"The outcome of {visible(name)} is unknown.{why}", hint) from None
        if said.kind == "approval_denied" and run_id:
            hint = f"To let it be requested again: aileron approval allow-retry {run_id}"
            raise CommandError(f"You denied this; nothing was sent.{reason}", hint) from None
        raise


async def _action(daemon: Daemon, name: str) -> Mapping[str, Any]:
    from aileron.client import DaemonFault

    try:
        return await daemon.action(name)
    except DaemonFault as fault:
        if fault.fault.kind != "not_found":
            raise
        raise CommandError(f"There is no action {visible(name)}. Nothing was sent.", _LIST) from None


@click.command("try")
@click.argument("name", shell_complete=_completion.actions)
@click.option("--args", "whole", metavar="JSON", default="{}", help="All arguments as one JSON object.")
@reading_command
def try_action(command: OperatorCommand, /, name: str, whole: str) -> None:
    """Show what an action would send, trusted or not. Nothing is sent or stored."""
    from aileron.client import DaemonFault

    arguments = read_object(whole)
    try:
        found = command.read(lambda operator: operator.post("actions", name, "dry-run", body={"args": arguments}))
    except DaemonFault as fault:
        if fault.fault.kind == "invalid_request":
            problems = fault.fault.details.get("problems")
            pointers = {str(each.get("pointer")) for each in problems} if isinstance(problems, (list, tuple)) else set()
            tell_missing_of(command.cli, name, {each.removeprefix("/args/") for each in pointers} - {*arguments})
        raise
    command.show(found, lambda _: show_requests(from_json(Review, found["review"])))


def read_pairs(pairs: Sequence[str], schema: Mapping[str, Any]) -> dict[str, JSON]:
    """Read arguments, of the types that the action declares; some may be missing.

    :param pairs: C{name=text} each.
    :param schema: the action's.
    :raises click.UsageError: if a pair is malformed, unknown or given twice, or its text is no value of its type.
    """
    properties = schema.get("properties", {})
    found: dict[str, JSON] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in properties:
            takes = ", ".join(properties) or "none"
            wrong = f"this action has no argument {name!r}" if equals else "expected NAME=TEXT"
            raise click.UsageError(f"--arg {pair!r}: {wrong}. Arguments of this action: {takes}.")
        if name in found:
            raise click.UsageError(f"--arg {name} is given twice.")
        found[name] = _value(name, text, str(properties[name].get("type")))
    return found


def read_complete(pairs: Sequence[str], schema: Mapping[str, Any]) -> dict[str, JSON]:
    """Parse the arguments of a call. Every argument that the action requires must be given.

    :raises click.UsageError: if a pair is not valid, see L{read_pairs}, or a required argument is missing.
    """
    found = read_pairs(pairs, schema)
    missing = [f"--arg {name}=…" for name in schema.get("required", ()) if name not in found]
    if missing:
        raise click.UsageError(f"Not all arguments are given. Add: {' '.join(missing)}")
    return found


def _value(name: str, text: str, kind: str) -> JSON:
    if kind == "string":
        return text
    try:
        value = _BOOLEANS[text] if kind == "boolean" else loads_strict(text.encode())
    except (KeyError, ValueError):
        raise click.UsageError(f"--arg {name}: expected a value of type {kind}, as JSON.") from None
    return value


def read_object(text: str) -> Mapping[str, JSON]:
    """Parse arguments given as one JSON object.

    :raises click.UsageError: if the text is not a JSON object.
    """
    try:
        value = loads_strict(text.encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise click.UsageError(f"--args: {str(error).removeprefix('the body is ')}.") from None
    if not isinstance(value, Mapping):
        raise click.UsageError("--args: expected a JSON object.")
    return value


def _tell_waiting(name: str, body: Mapping[str, Any]) -> None:
    """Print what the run waits for, in words for a person. The daemon's text is written for a model."""
    status, approval_id = body.get("status"), body.get("approval_id")
    if status == "pending_approval":
        say("{name} is waiting for your approval. Nothing was sent yet.", name=name)
        say("  {url}", url=body.get("review_url"))
        say("  To review it: aileron approve {id}", id=approval_id)
        say("  In the browser: aileron open approval {id}", id=approval_id)
        return
    say(_WAITING.get(str(status), "{name} has not finished."), name=name)
    say("  To see its result: aileron run show {id}", id=body.get("run_id"))


def _tell(name: str, body: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(body)
        return
    if "result" not in body:
        _tell_waiting(name, body)
        return
    note("Completed (run {run}).", run=body.get("run_id"))
    result = body["result"]
    output, attachments = set_apart(result.get("output") if isinstance(result, Mapping) else result)
    text = in_words(output)
    if "\n" in text:
        block(text)
    else:
        say("{text}", text=text)
    if attachments:
        note("To save the attachments: aileron run save {run} DIRECTORY", run=body.get("run_id"))
