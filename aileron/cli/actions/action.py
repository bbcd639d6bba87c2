"""C{aileron action}: what agents can ask for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import _completion, _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import CommandError
from aileron.cli._output import block, heading, in_words, listed, note, say, say_json, table, values
from aileron.cli._session import OperatorCommand, as_operator, as_session, operator_command
from aileron.cli.actions.files import add, check, edit, new
from aileron.cli.actions.run import run_action
from aileron.cli.actions.trusting import distrust_command, trust_command

if TYPE_CHECKING:
    from aileron.client import Operator


@click.group()
def action() -> None:
    """Look at, add, trust and run actions."""


action.add_command(add)
action.add_command(check)
action.add_command(edit)
action.add_command(new)
action.add_command(trust_command("action"))
action.add_command(distrust_command("action"))
action.add_command(run_action)


@action.command("list")
@_options.as_json
@pass_cli
def list_actions(cli: CliContext, as_json: bool) -> None:
    """List the actions, and what could not be loaded and why."""
    answer = as_session(cli, lambda daemon: daemon.actions())
    rows = ((item["name"], item["version"], _gate(item), _on(item), item["tool_name"]) for item in answer["items"])
    listed(as_json, answer, ("NAME", "VERSION", "APPROVAL", "STATE", "TOOL"), rows, "There are no actions yet.")
    if not as_json:
        _tell_load_errors(answer)


@action.command("show")
@click.argument("name", shell_complete=_completion.actions)
@click.option("--schema", is_flag=True, help="Also the schema of its arguments, as the model is given it.")
@operator_command
def show_action(command: OperatorCommand, name: str, schema: bool) -> None:
    """Show one action: its arguments, its connectors, and the words that the model reads; or why it is not offered."""
    item = command.ask(lambda operator: _find_offered(operator, name))
    if command.as_json:
        say_json(item)
        return
    heading("{name} {version}", name=item["name"], version=item["version"])
    values(
        {
            "approval": _gate(item),
            "state": _on(item),
            "tool": item["tool_name"],
            "source": item["source"],
            "digest": item["digest"],
            **_rules(item),
            "connectors": ", ".join(f"{pin['name']} {pin['version']}" for pin in item["connectors"]),
            **_show_before(item.get("preview")),
        },
        "  ",
    )
    _show_arguments(item["input_schema"], item.get("asks", ()))
    heading("What the model reads")
    block(item["description"])
    if schema:
        heading("By which schema")
        block(in_words(item["input_schema"]))


@action.command("enable")
@click.argument("name", shell_complete=_completion.actions)
@_options.passphrase_fd
@pass_cli
def enable(cli: CliContext, name: str, passphrase_fd: int | None) -> None:
    """Switch an action on."""
    as_operator(cli, passphrase_fd, lambda operator: operator.set_enabled(name, True))
    say("{name} is on.", name=name)


@action.command("disable")
@click.argument("name", shell_complete=_completion.actions)
@_options.passphrase_fd
@pass_cli
def disable(cli: CliContext, name: str, passphrase_fd: int | None) -> None:
    """Switch an action off: agents no longer see it, and what waits of it does not run."""
    as_operator(cli, passphrase_fd, lambda operator: operator.set_enabled(name, False))
    say("{name} is off.", name=name)


async def _find_offered(operator: Operator, name: str) -> Mapping[str, Any]:
    """Return an offered action, or say why its file is not offered.

    :raises CommandError: its file exists, but is not trusted or did not load.
    :raises DaemonFault: there is no such file, or the daemon refuses.
    """
    from aileron.client import DaemonFault

    try:
        return await operator.action(name)
    except DaemonFault as fault:
        if fault.fault.kind != "not_found":
            raise
        errors = (await operator.actions())["load_errors"]
        found = next((each for each in errors if Path(each["file"]).stem == name), None)
        if found is None:
            raise
    if found["kind"] == "untrusted":
        raise CommandError(
            f"{name} is not offered: {found['message']}", f"Read it, and trust it: aileron action trust {name}"
        )
    raise CommandError(
        f"{name} is not offered: {_place(found)}: {found['message']}", f"Mend it: aileron action edit {name}"
    )


def _show_before(preview: Mapping[str, Any] | None) -> dict[str, str]:
    if preview is None:
        return {}
    shows = ", ".join(preview["shows"])
    return {"you are shown": f"{shows}, by {preview['operation']} of {preview['connector']}"}


def _gate(item: Mapping[str, Any]) -> str:
    return "asked" if item["gated"] else "not asked"


def _rules(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what its file says of taking back, of asking again, and of how often."""
    rules: dict[str, Any] = {}
    if item.get("undo_seconds"):
        rules["can be taken back for"] = f"{item['undo_seconds']:g} s"
    if item["gated"] and "cool_down_seconds" in item:
        rules["once denied, refused for"] = f"{item['cool_down_seconds']:g} s"
    if item.get("on_cancel") == "withdraw":
        rules["once the agent cancels its call"] = "taken back, if it still waits for you"
    if item.get("limits"):
        rules["limits"] = "; ".join(map(_limit, item["limits"]))
    return rules


def _limit(limit: Mapping[str, Any]) -> str:
    window = "an hour" if limit["seconds"] == 3600 else "a day"
    each = f" for each value of {limit['argument']}" if limit["argument"] else ""
    return f"{limit['most']} {window}{each}{' in each session' if limit['per_session'] else ''}"


def _on(item: Mapping[str, Any]) -> str:
    return "on" if item["enabled"] else "off"


def _show_arguments(schema: Mapping[str, Any], asks: Collection[str]) -> None:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if not properties:
        return
    heading("Arguments")
    rows = (
        (name, about.get("type"), "required" if name in required else "optional", about.get("description"))
        for name, about in properties.items()
    )
    table(("NAME", "TYPE", "", "MEANING"), rows)
    if asks:
        say("Where its client can show you a form, the agent may leave to you: {names}", names=", ".join(asks))


def _tell_load_errors(answer: Mapping[str, Any]) -> None:
    for error in answer.get("load_errors", ()):
        place = _place(error)
        what = "not trusted" if error["kind"] == "untrusted" else "did not load"
        note("{what}: {place}: {message}", what=what, place=place, message=error["message"])


def _place(error: Mapping[str, Any]) -> str:
    return f"{error['file']}:{error['line']}" if error.get("line") else str(error["file"])
