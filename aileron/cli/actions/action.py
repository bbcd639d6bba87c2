"""C{aileron action}: the actions that agents can call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aileron.base.text import duration
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError, place_of
from aileron.cli.output import Columns, block, heading, in_words, listed, note, say, say_json, table_of, values
from aileron.cli.session import OperatorCommand, as_session, plain_command, reading_command

from .files import add, check, edit, new, remove
from .run import run_action, try_action
from .trusting import distrust_command, trust_command

if TYPE_CHECKING:
    from aileron.client import Operator


@click.group()
def action() -> None:
    """List, add, trust and run actions."""


action.add_command(add)
action.add_command(check)
action.add_command(edit)
action.add_command(new)
action.add_command(remove)
action.add_command(trust_command("action"))
action.add_command(distrust_command("action"))
action.add_command(run_action)
action.add_command(try_action)


@action.command("list")
@_options.as_json
@pass_cli
def list_actions(cli: CliContext, as_json: bool) -> None:
    """List actions, and files with errors."""
    answer = as_session(cli, lambda daemon: daemon.actions())
    columns: Columns = {"NAME": "name", "VERSION": "version", "APPROVAL": _gate, "STATE": _on, "TOOL": "tool_name"}
    listed(as_json, answer, columns, "No actions yet. Add one: aileron action add FILE")
    if not as_json:
        _tell_load_errors(answer)


@action.command("show")
@click.argument("name", shell_complete=_completion.actions)
@click.option("--schema", is_flag=True, help="Also show the JSON Schema of its arguments.")
@reading_command
def show_action(command: OperatorCommand, name: str, schema: bool) -> None:
    """Show one action: arguments, connectors, and the description for the model; or why it is not offered."""
    item = command.read(lambda operator: _find_offered(operator, name))
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
    heading("Description for the model")
    block(item["description"])
    if schema:
        heading("Schema")
        block(in_words(item["input_schema"]))


def _add_switch(called: str, about: str, *, enabled: bool) -> None:
    @action.command(called, help=about)
    @click.argument("name", shell_complete=_completion.actions)
    @plain_command
    def switch(command: OperatorCommand, name: str) -> None:
        async def look(operator: Operator) -> None:
            if name not in {each["name"] for each in (await operator.get("actions"))["items"]}:
                raise CommandError(f"There is no action {name}. Nothing was changed.", "See: aileron action list")

        command.ask(lambda operator: operator.patch("actions", name, body={"enabled": enabled}), look)
        say("{name} is {called}d.", name=name, called=called)


_add_switch("enable", "Enable an action.", enabled=True)
_add_switch(
    "disable", "Disable an action: agents no longer see it, and its pending requests do not run.", enabled=False
)


async def _find_offered(operator: Operator, name: str) -> Mapping[str, Any]:
    """Return an action that is offered to agents.

    :raises CommandError: if the action's file exists, but is not trusted or did not load.
    :raises DaemonFault: if there is no such file, or the daemon refuses.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    from aileron.client import DaemonFault

    try:
        return await operator.action(name)
    except DaemonFault as fault:
        if fault.fault.kind != "not_found":
            raise
        errors = (await operator.get("actions"))["load_errors"]
        found = next((each for each in errors if Path(each["file"]).stem == name), None)
        if found is None:
            raise
    if found["kind"] == "untrusted":
        raise CommandError(
            f"{name} is not offered: {found['message']}", f"Review and trust it: aileron action trust {name}"
        )
    raise CommandError(
        f"{name} is not offered: {place_of(found)}: {found['message']}", f"Fix it: aileron action edit {name}"
    )


def _show_before(preview: Mapping[str, Any] | None) -> dict[str, str]:
    if preview is None:
        return {}
    shows = ", ".join(preview["shows"])
    return {"preview": f"{shows}, by {preview['operation']} of {preview['connector']}"}


def _gate(item: Mapping[str, Any]) -> str:
    return "required" if item["gated"] else "not required"


def _rules(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules in the action's file, such as its limits, for display: the text of each by its label."""
    rules: dict[str, Any] = {}
    if item.get("undo_seconds"):
        rules["undo window"] = duration(item["undo_seconds"])
    if item.get("undone_by"):
        rules["undone by"] = item["undone_by"]
    if item["gated"] and "cool_down_seconds" in item:
        rules["refused after a denial for"] = duration(item["cool_down_seconds"])
    if item.get("on_cancel") == "withdraw":
        rules["when the agent cancels its call"] = "withdrawn, if still pending"
    if item.get("on_repeat") == "replace":
        rules["when an identical request arrives"] = "the older one is cancelled, if still pending"
    if item.get("limits"):
        rules["limits"] = "; ".join(map(_limit, item["limits"]))
    return {**_approvers(item), **rules}


def _approvers(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rule about the people who may approve, for display: the text of each part by its label."""
    rules: dict[str, Any] = {}
    if item.get("by"):
        rules["approved by"] = ", ".join(item["by"])
    if item.get("count"):
        rules["approvals needed"] = str(item["count"])
    if item.get("not_requester"):
        rules["not approved by"] = "the requester"
    return rules


def _limit(limit: Mapping[str, Any]) -> str:
    window = "an hour" if limit["seconds"] == 3600 else "a day"
    each = f" for each value of {limit['argument']}" if limit["argument"] else ""
    return f"{limit['most']} {window}{each}{' in each session' if limit['per_session'] else ''}"


def _on(item: Mapping[str, Any]) -> str:
    return "enabled" if item["enabled"] else "disabled"


def _show_arguments(schema: Mapping[str, Any], asks: Collection[str]) -> None:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if not properties:
        return
    heading("Arguments")
    rows = (
        {**about, "name": name, "needed": "required" if name in required else "optional"}
        for name, about in properties.items()
    )
    table_of({"NAME": "name", "TYPE": "type", "": "needed", "DESCRIPTION": "description"}, rows)
    if asks:
        say("The agent may ask you for these in a form, if its client supports that: {names}", names=", ".join(asks))


def _tell_load_errors(answer: Mapping[str, Any]) -> None:
    for error in answer.get("load_errors", ()):
        what = "Not trusted" if error["kind"] == "untrusted" else "Error"
        note("{what}: {place}: {message}", what=what, place=place_of(error), message=error["message"])
