"""The commands of C{aileron ask}, which list and answer the agents' own permission prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import options as _options
from aileron.cli.errors import CommandError
from aileron.cli.output import Columns, block, say, say_json, table_of, time_at, values
from aileron.cli.session import OperatorCommand, operator_command, reading_command

if TYPE_CHECKING:
    from aileron.base.json import JSON
    from aileron.client import Operator

_SHOWN = 60
_WAITING = "waiting"
_COLUMNS: Columns = {
    "ID": "id",
    "AGENT": "agent",
    "TOOL": "tool",
    "CALL": lambda item: _shorten(item["text"]),
    "STATE": lambda item: item["state"].replace("_", " "),
    "DIRECTORY": "directory",
    "ASKED": time_at("asked_at"),
}
_TRIED: Columns = {
    "ASKED": time_at("at"),
    "AGENT": "agent",
    "TOOL": "tool",
    "CALL": lambda item: _shorten(item["text"]),
    "DIRECTORY": "directory",
}
_ID = click.argument("asks", metavar="ID...", nargs=-1, required=True)
_LIST = "List them: aileron ask list"


@click.group("ask")
def ask() -> None:
    """Answer the agents' own permission prompts.

    They are the agents' questions whether to run a command or change a file. Approvals of your actions are separate:
    aileron approval.
    """


@ask.command("list")
@click.option("--all", "with_closed", is_flag=True, help="Also those that were answered or closed last.")
@_options.exact_times
@reading_command
def list_asks(command: OperatorCommand, /, with_closed: bool) -> None:
    """List the permission prompts of running agents, oldest first."""
    items = command.get("asks")["items"]
    chosen = [each for each in items if with_closed or each["state"] == _WAITING]
    command.list({"items": chosen}, _COLUMNS, "No agent is waiting for an answer.")


@ask.command("show")
@click.argument("ask_id", metavar="ID")
@reading_command
def show_ask(command: OperatorCommand, /, ask_id: str) -> None:
    """Show a permission prompt in full."""
    command.show(_find(command.get("asks")["items"], ask_id), _show)


@ask.command()
@_ID
@click.option(
    "--session",
    "rule",
    metavar="RULE",
    help="Also allow the calls of the session that match RULE, such as 'Bash(npm test)'.",
)
@operator_command
def allow(command: OperatorCommand, /, asks: tuple[str, ...], rule: str | None) -> None:
    """Allow each ID from the list, once."""
    body: dict[str, JSON] = {"answer": "once"} if rule is None else {"answer": "session", "pattern": rule}
    more = "" if rule is None else " The session's calls that match {pattern} are allowed from now on."
    _answer_all(command, asks, body, f"Allowed {{tool}} of {{agent}}.{more}")


@ask.command()
@_ID
@click.option("--reason", help="What the agent's model is told.")
@operator_command
def deny(command: OperatorCommand, /, asks: tuple[str, ...], reason: str | None) -> None:
    """Deny each ID from the list."""
    body: dict[str, JSON] = {"answer": "deny", **({} if reason is None else {"reason": reason})}
    _answer_all(command, asks, body, "Denied {tool} of {agent}.")


@ask.command("try-rule")
@click.argument("rule")
@click.option("--deny", "answer", flag_value="deny", help="As a rule that denies.")
@click.option("--ask", "answer", flag_value="ask", help="As a rule that asks.")
@click.option("--project", metavar="DIRECTORY", help="For the sessions of this directory alone.")
@reading_command
def try_rule(command: OperatorCommand, /, rule: str, answer: str | None, project: str | None) -> None:
    """Show which of the last permission prompts RULE would have answered, before it is in config.yaml.

    RULE is a tool, or a tool and a pattern, such as 'Bash(npm test)'.
    """
    query: dict[str, str | int | None] = {"rule": rule, "answer": answer or "allow", "project": project}
    command.show(command.get("asks", "trial", query=query), _show_trial)


def _show_trial(trial: Mapping[str, Any]) -> None:
    answered = trial["answered"]
    say("{rule} would have answered {count} of the last {tried}.", count=len(answered), **trial)
    if trial["unknown"]:
        say("Of {unknown} the audit log has only a part, so they were not compared.", **trial)
    if answered:
        table_of(_TRIED, answered)


def _answer_all(command: OperatorCommand, asks: Sequence[str], body: Mapping[str, JSON], template: str) -> None:
    """Answer the prompts one after another within one login, and print each answer.

    :raises CommandError: if a prompt is not found, or several are.
    :raises VaultLocked: if the daemon's vault is not unlocked.
    :raises WrongPassphrase: if the passphrase is wrong.
    """

    async def work(operator: Operator) -> list[Mapping[str, Any]]:
        done = []
        for each in dict.fromkeys(asks):
            found = _find((await operator.get("asks"))["items"], each)
            done.append(answered := await operator.post("asks", found["id"], "answer", body=body))
            if not command.as_json:
                say(template, **answered)
        return done

    async def look(operator: Operator) -> None:
        items = (await operator.get("asks"))["items"]
        for each in asks:
            _find(items, each)

    done = command.ask(work, look)
    if command.as_json:
        say_json(done[0] if len(done) == 1 else {"items": done})


def _find(items: Sequence[Mapping[str, Any]], wanted: str) -> Mapping[str, Any]:
    """Return the prompt with an ID, or with the only ID that ends so.

    :raises CommandError: if there is none, or more than one.
    """
    found = [each for each in items if each["id"] == wanted] or [each for each in items if each["id"].endswith(wanted)]
    if not found:
        raise CommandError(f"No agent asks {wanted}.", _LIST)
    if len(found) > 1:
        raise CommandError(f"{len(found)} prompts end in {wanted}; use a whole ID.", _LIST)
    return found[0]


def _show(item: Mapping[str, Any]) -> None:
    say("{agent} asks to use {tool}", agent=item["agent"], tool=item["tool"])
    block(item["text"], "  ")
    if item["rest"]:
        block(item["rest"], "  ")
    values({"state": item["state"].replace("_", " "), "directory": item["directory"], "session": item["session_id"]})
    for rule in item["patterns"] if item["state"] == _WAITING else ():
        say("Allow for the session: aileron ask allow {id} --session {rule}", id=item["id"], rule=_quote(rule))


def _quote(text: str) -> str:
    import shlex

    return shlex.quote(text)


def _shorten(text: str) -> str:
    first, _, rest = text.partition("\n")
    return first if len(first) <= _SHOWN and not rest else f"{first[: _SHOWN - 1]}…"
