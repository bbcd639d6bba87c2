"""Finds files of the home by the name that they declare, to edit, check, trust and remove them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.approvals.edit import ask_again, edit_file
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.output import note, say
from aileron.cli.session import OperatorCommand, operator_command
from aileron.home.paths import Home
from aileron.home.private_files import read_private

from .copying import Sort, note_faults
from .trusting import TrustRequest, confirm, tell, trust_added

if TYPE_CHECKING:
    from aileron.client import Operator

_MAX_BYTES = 1024 * 1024
_COMPLETING = {"action": _completion.actions, "connector": _completion.connectors}


def find_file(home: Home, sort: Sort, name: str) -> Path | None:
    """Return the file in the home that is named C{name} or declares that name, or None if there is none.

    :raises Forbidden, InvalidRequest: if a file of that name cannot be read safely.
    """
    files = sorted(sort.directory(home).glob(f"*{sort.suffix}"))
    called = [path for path in files if path.stem == name and read_private(path, _MAX_BYTES) is not None]
    named = (path for path in files if _completion.name_in(path) == name)
    return next(iter(called), None) or next(named, None)


def require_file(home: Home, sort: Sort, name: str) -> Path:
    """Return the file in the home that declares that name.

    :raises CommandError: if there is none.
    :raises Forbidden, InvalidRequest: if a file of that name cannot be read safely.
    """
    path = find_file(home, sort, name)
    if path is None:
        raise CommandError(
            f"There is no {sort.kind} {name} in {sort.directory(home)}.",
            f"List {sort.kind}s: aileron {sort.kind} list",
        )
    return path


def edit_and_trust(cli: CliContext, sort: Sort, path: Path, passphrase_fd: int | None) -> None:
    """Open a file in the editor until it has no errors, then ask whether to trust it.

    :raises CommandError: if the person aborted, or did not trust it. The file keeps the person's text.
    """
    # No passphrase is read until the editor is closed: it must not inherit from a process that held one.
    edit_file(path, cli.environ)
    while note_faults(sort.faults(path)):
        ask_again(
            cli,
            "The file has errors, so it has no effect. Edit it again?",
            "The file was left as it is, and is not trusted.",
        )
        edit_file(path, cli.environ)
    trusted = trust_added(cli, passphrase_fd, TrustRequest(sort.kind, paths=(path,)))
    if trusted is not None:
        tell(trusted)


def edit_command(sort: Sort) -> click.Command:
    """Return the command C{aileron action edit} or C{aileron connector edit}, by the kind of file."""

    @click.command(
        "edit",
        help=f"Open a {sort.kind} file of your home in your editor, then check it and ask you to trust it.\n\n"
        "The editor is set by VISUAL or EDITOR.",
    )
    @click.argument("name", shell_complete=_COMPLETING[sort.kind])
    @_options.passphrase_fd
    @pass_cli
    def edit(cli: CliContext, name: str, passphrase_fd: int | None) -> None:
        edit_and_trust(cli, sort, require_file(cli.home, sort, name), passphrase_fd)

    return edit


def remove_command(sort: Sort) -> click.Command:
    """Return the command C{aileron action remove} or C{aileron connector remove}, by the kind of file."""

    @click.command("remove", help=f"Delete a {sort.kind} file of your home, and revoke trust in it.")
    @click.argument("name", shell_complete=_COMPLETING[sort.kind])
    @click.option("--yes", is_flag=True, help="Delete it without asking.")
    @operator_command
    def remove(command: OperatorCommand, /, name: str, yes: bool) -> None:
        remove_file(command, sort, name, yes=yes)

    return remove


def remove_file(command: OperatorCommand, sort: Sort, name: str, *, yes: bool) -> None:
    """Delete a file of the home, and revoke trust in it.

    :param yes: whether to skip the question.
    :raises CommandError: if there is no such file, the person declined, or another program changed it meanwhile.
    """
    cli = command.cli
    if command.as_json and not yes:
        raise click.UsageError("--json asks nothing: add --yes.")
    path = require_file(cli.home, sort, name)
    shown = read_private(path, _MAX_BYTES)
    if not yes:
        confirm(cli, f"Delete {path}? [y/N] ", "deleted")
    used = command.ask(lambda operator: _revoke(operator, sort, path))
    if read_private(path, _MAX_BYTES) != shown:
        raise CommandError(f"{path} was changed by another program meanwhile. It was left, and is not trusted.")
    path.unlink()
    command.show({"removed": str(path), "used_by": used}, lambda _: _tell_removed(path, used))


def _tell_removed(path: Path, used: list[str]) -> None:
    say("{path} was deleted, and is not trusted any more.", path=path)
    if used:
        note("These actions need it, and do not work any more: {names}", names=", ".join(used))


async def _revoke(operator: Operator, sort: Sort, path: Path) -> list[str]:
    """Revoke trust in a file, if it has any, and return the names of the actions that depend on it.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    items = (await operator.get("trust"))["items"]
    found = next((each for each in items if each["path"] and Path(each["path"]).parts[-2:] == path.parts[-2:]), None)
    if found is None:
        return []
    if found["state"] != "new":
        await operator.delete("trust", body={"kind": sort.kind, "name": found["name"]})
    return [each["name"] for each in items if each["kind"] == "action" and found["name"] in each["needs"]]
