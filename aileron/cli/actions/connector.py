"""C{aileron connector}: the connectors of the daemon."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aileron.base.load_error import LoadError
from aileron.cli import completion as _completion
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import FAILED, CommandError
from aileron.cli.output import Columns, block, heading, note, say, table_of, values
from aileron.cli.session import OperatorCommand, reading_command

from .copying import Sort, add_command, check_command, tell_fault
from .inputs import tell_missing
from .own_files import edit_command, remove_command
from .run import read_object
from .trusting import distrust_command, trust_command

if TYPE_CHECKING:
    from aileron.client import Operator


@click.group()
def connector() -> None:
    """List, add and trust connectors."""


def _faults(path: Path) -> Sequence[LoadError]:
    from aileron.connectors import KindTable
    from aileron.connectors import check as faults_of

    context = click.get_current_context(silent=True)
    cli = None if context is None else context.find_object(CliContext)
    kinds = KindTable() if cli is None else cli.kinds
    return faults_of(path, lambda text: note("{text}", text=text), kinds)


CONNECTORS = Sort("connector", ".toml", lambda home: home.connectors, _faults)
connector.add_command(add_command(CONNECTORS))
connector.add_command(check_command(CONNECTORS))
connector.add_command(edit_command(CONNECTORS))
connector.add_command(remove_command(CONNECTORS))
connector.add_command(trust_command("connector"))
connector.add_command(distrust_command("connector"))


def _find(cli: CliContext, target: str) -> str:
    """Return the path or the full name of the connector that the person names by C{target}.

    A short name stands for a file of the home, or else for a built-in connector. Other text is returned unchanged.
    """
    own = cli.home.connectors / f"{target}.toml"
    if "/" not in target and own.is_file():
        return str(own)
    return f"builtin://{target}" if target.isidentifier() else target


@connector.command("test")
@click.argument("targets", nargs=-1, required=True, metavar="FILE|NAME...", shell_complete=_completion.all_connectors)
@pass_cli
@click.pass_context
def test_connector(context: click.Context, cli: CliContext, targets: tuple[str, ...]) -> None:
    """Replay recorded answers of a service: what the connector sends, and makes of each. Needs no daemon or network.

    The answers of tracker.toml are in tracker.fixtures.toml, beside it.
    """
    from aileron.connectors import replay

    failed = False
    for target in (_find(cli, each) for each in targets):
        replayed = replay(target, cli.home.connectors, cli.kinds)
        if replayed is None:
            raise CommandError(f"There is no valid connector {target}.", "List connectors: aileron connector list")
        for fault in replayed.problems:
            say("{fault}", fault=tell_fault(fault))
        if not replayed.problems:
            count = sum(outcome != "reconcile" for seen in replayed.seen.values() for outcome in seen)
            say("{target}: OK, {count} recorded answers", target=target, count=count)
        bare = [name for name, seen in replayed.seen.items() if not seen]
        if bare:
            note("Without a recorded answer: {names}", names=", ".join(bare))
        failed = failed or bool(replayed.problems)
    if failed:
        context.exit(FAILED)


@connector.command("try")
@click.argument("target", metavar="FILE|NAME", shell_complete=_completion.all_connectors)
@click.argument("operation")
@click.option("--arg", "pairs", multiple=True, metavar="K=V", help="One input, as text; can be repeated.")
@click.option("--args", "whole", metavar="JSON", default="{}", help="The inputs as one JSON object.")
@click.option("--base-url", metavar="URL", help="Base URL, if the connector has none of its own.")
@pass_cli
def try_operation(
    cli: CliContext, target: str, operation: str, pairs: tuple[str, ...], whole: str, base_url: str | None
) -> None:
    """Show the request that an operation of a connector would send. Nothing is sent. Needs no daemon or network."""
    from aileron.connectors import NotTried, build_request

    inputs = dict(read_object(whole))
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--arg {pair!r}: expected NAME=TEXT.")
        inputs[name] = text
    try:
        tried = build_request(_find(cli, target), cli.home.connectors, operation, inputs, base_url, cli.kinds)
    except NotTried as error:
        if error.missing:
            note("Inputs that were not given:")
            tell_missing(cli, error.connector, operation, error.missing)
        raise CommandError(str(error)) from None
    request = tried.request
    heading("{method} {url}", method=request.method, url=request.url)
    values(dict(request.headers), "  ")
    if tried.credential is not None:
        values({"credential": f"{tried.credential}, added by the daemon"}, "  ")
    if request.body:
        block(request.body.decode("utf-8", "replace"), "  ")
    if tried.missing:
        note("Inputs that were not given, and are left out of the request:")
        tell_missing(cli, request.connector, operation, tried.missing)


@connector.command("copy")
@click.argument("name", metavar="builtin://NAME")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def copy_connector(name: str, file: Path) -> None:
    """Copy a connector that comes with Aileron into FILE, as one of your own that you can change. Needs no daemon."""
    text = _read_builtin(name)
    if text is None:
        raise CommandError(f"No connector {name} comes with Aileron.", "List connectors: aileron connector list")
    own = f"local://me/{file.stem}"
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text.replace(f'name = "{name}"', f'name = "{own}"', 1))
    except FileExistsError:
        raise CommandError(f"{file} already exists; nothing was written.", "Choose another name.") from None
    say("{file} is written, as the connector {own}. Change it, then: aileron connector add {file}", file=file, own=own)


def _read_builtin(name: str) -> str | None:
    """Return the text of a built-in connector's file, or None if no such file has this name."""
    for file in files("aileron").joinpath("connectors", "builtin").iterdir():
        text = file.read_text("utf-8") if file.name.endswith(".toml") else ""
        if f'name = "{name}"' in text.splitlines():
            return text
    return None


@connector.command("schema")
@pass_cli
def print_schema(cli: CliContext) -> None:
    """Print the JSON Schema of connector files, for editors and other tools."""
    from aileron.connectors import make_schema

    click.echo(json.dumps(make_schema(cli.kinds), indent=1, ensure_ascii=False))


@connector.command("list")
@reading_command
def list_connectors(command: OperatorCommand) -> None:
    """List connectors, their hosts, and files with errors."""
    answer, states = command.read(_with_states)
    columns: Columns = {
        "NAME": "name",
        "VERSION": "version",
        "STATE": lambda item: (
            states.get(item["name"]) or ("built in" if item["name"].startswith("builtin://") else "plugin")
        ),
        "HOSTS": lambda item: ", ".join(item["hosts"]),
        "CREDENTIAL": lambda item: (item.get("credential") or {}).get("kind"),
        "OPERATIONS": _count,
    }
    command.list(answer, columns, "No connectors.")
    if not command.as_json:
        for problem in answer.get("problems", ()):
            note("Error: {file}: {message}", file=problem["file"], message=problem["message"])
        if not {"new", "changed"}.isdisjoint(states.values()):
            note("New and changed connectors are not active until you trust them: aileron connector trust")


def _count(item: Mapping[str, Any]) -> str:
    """Return the number of operations, because a built-in connector has too many for a cell."""
    reads = sum(each["effect"] == "read" for each in item["operations"])
    return f"{reads} read, {len(item['operations']) - reads} write"


@connector.command("show")
@click.argument("name", shell_complete=_completion.all_connectors)
@reading_command
def show_connector(command: OperatorCommand, name: str) -> None:
    """Show one connector: its hosts, credential and operations."""
    answer, states = command.read(_with_states)
    found = next((item for item in answer["items"] if item["name"] == name), None)
    if found is None:
        raise CommandError(
            f"There is no connector {name}, or its file has errors.", "List connectors: aileron connector list"
        )
    command.show(found, lambda _: show_one(found, states.get(name)))


async def _with_states(operator: Operator) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return all connectors, and the trust state of each connector file.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    items = (await operator.get("trust"))["items"]
    return await operator.get("connectors"), {
        item["name"]: item["state"] for item in items if item["kind"] == "connector"
    }


def show_one(found: Mapping[str, Any], state: str | None) -> None:
    """Print one connector as the daemon describes it.

    :param state: how its file compares with the trusted one, or None for a built-in connector.
    """
    heading("{name} {version}", name=found["name"], version=found["version"])
    address = f"{found['base_url']}{' (a binding can set another)' if found['bindable'] else ''}"
    if template := found.get("template"):
        names = ", ".join(each["name"] for each in template["variables"])
        address = f"{template['text']} (a binding sets {names})"
    values(
        {
            "state": state or "built in, or from a plugin",
            "content": found["content_hash"],
            "address": address,
            "hosts": ", ".join(found["hosts"]),
            "credential": _credential(found.get("credential")),
        },
        "  ",
    )
    heading("Operations")
    table_of(_OPERATION, found["operations"])
    pinned = {each["name"]: each["pin"] for each in found["operations"] if each.get("pin")}
    if pinned:
        heading("Pinned to the tool as it was reviewed")
        values(pinned, "  ")


def _credential(need: Mapping[str, Any] | None) -> str:
    if need is None:
        return "none"
    settings = need.get("settings", {})
    places = {
        "api": f"requests to {settings.get('api')}, which Aileron adds it to: the server cannot read it",
        "variable": f"the environment variable {settings.get('variable')}: the program and what it starts can read it",
        "stdin": "the program's standard input",
        "query": f"the query parameter {settings.get('query')}",
        "path": f"the path, as {settings.get('path')}",
    }
    place = next((words for name, words in places.items() if name in settings), need["header"])
    return f"{need['kind']}, in {place}"


def _describe_repeating(operation: Mapping[str, Any]) -> str:
    found = "no, but can be looked up" if operation["reconcilable"] else "no"
    return "yes" if operation["idempotent"] else found


_OPERATION: Columns = {
    "OPERATION": "name",
    "EFFECT": "effect",
    "IDEMPOTENT": _describe_repeating,
    "TIMEOUT (S)": lambda operation: f"{operation['timeout_seconds']:g}",
    "DESCRIPTION": lambda operation: operation["description"] or None,
}
