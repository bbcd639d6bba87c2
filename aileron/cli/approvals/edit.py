"""C{aileron approval edit}: changes the arguments before a decision, with options or in the person's editor."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aileron.base.json import JSON, loads_strict
from aileron.cli.actions.run import read_pairs
from aileron.cli.context import CliContext
from aileron.cli.daemon.process import command
from aileron.cli.errors import CommandError
from aileron.cli.ids import id_argument
from aileron.cli.output import in_words, note, say, say_json
from aileron.cli.session import OperatorCommand, as_operator, operator_command
from aileron.cli.things import APPROVAL
from aileron.home.paths import prepare
from aileron.model.errors import InvalidRequest

from .deciding import read_approval, refuse_decided
from .review import show_review

if TYPE_CHECKING:
    from aileron.client import Operator

_USUAL = ("sensible-editor", "nano", "vi")


def editor_command(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the editor's command: C{VISUAL}, C{EDITOR}, or a common editor.

    :raises CommandError: if there is no editor, or the variable is not a command line.
    """
    chosen = environ.get("VISUAL", "").strip() or environ.get("EDITOR", "").strip()
    if not chosen:
        path = environ.get("PATH", os.defpath)
        chosen = next((name for name in _USUAL if shutil.which(name, path=path)), "")
        if not chosen:
            raise CommandError("No editor found; nothing was changed.", "Set EDITOR to the editor to use.")
    try:
        words = tuple(shlex.split(chosen))
    except ValueError:
        words = ()
    if not words or not words[0]:
        raise CommandError("VISUAL or EDITOR is not a valid command line, so no editor was started.")
    return words


def edit_file(path: Path, environ: Mapping[str, str]) -> None:
    """Open C{path} in the editor and wait until it is closed.

    :raises CommandError: if there is no editor, or it failed.
    """
    from aileron.cli.drive import interruptible

    command = editor_command(environ)
    try:
        with interruptible(lambda _number, _frame: None):  # Ctrl-C is the editor's; SIG_IGN would be inherited
            status = subprocess.run((*command, str(path)), env=dict(environ), check=False).returncode
    except OSError as error:
        raise CommandError(
            f"Cannot start the editor {command[0]}: {error.strerror}. Nothing was changed.",
            "Set EDITOR to another editor.",
        ) from None
    if status != 0:
        raise CommandError(f"The editor exited with status {status}; nothing was changed.")


Looked = tuple[Mapping[str, Any], Mapping[str, Any] | None]
"""An approval and the requesting session."""


@click.command("edit")
@id_argument("approval_id", APPROVAL)
@click.option("--arg", "pairs", multiple=True, metavar="K=V", help="Replace an argument, as text; can be repeated.")
@click.option("--without", multiple=True, metavar="K", help="Remove an optional argument; can be repeated.")
@click.option("--editor", is_flag=True, help="Edit all arguments in your editor; asks for the passphrase twice.")
@operator_command
def edit(
    command: OperatorCommand, /, approval_id: str, pairs: tuple[str, ...], without: tuple[str, ...], editor: bool
) -> None:
    """Edit the arguments of a request. They are checked like the agent's; nothing is decided."""
    if editor is bool(pairs or without):
        raise click.UsageError("Specify what to edit: --arg and --without, or --editor.")
    if editor and command.passphrase_fd is not None:
        raise click.UsageError("--editor needs the passphrase twice, so it does not work with --passphrase-fd.")
    if editor:
        edited, session = _in_editor(command.cli, approval_id)
    else:
        edited, session = command.ask(
            lambda operator: _replace(operator, approval_id, pairs, without),
            lambda operator: _check(operator, approval_id, pairs, without),
        )
    if command.as_json:
        say_json({**edited, "session": session})
    else:
        show_review(edited, session)
        note("Nothing is decided yet. To approve it: aileron approve {id}", id=edited["id"])


async def _replace(operator: Operator, approval_id: str, pairs: Sequence[str], without: Sequence[str]) -> Looked:
    return await edit_shown(operator, *await _check(operator, approval_id, pairs, without))


async def _check(
    operator: Operator, approval_id: str, pairs: Sequence[str], without: Sequence[str]
) -> tuple[Mapping[str, Any], Mapping[str, JSON]]:
    """Return the current request, and its new arguments.

    :raises CommandError: if the request is already decided.
    :raises click.UsageError: if an argument is unknown, or its value has the wrong type.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    shown = await operator.get("action-approvals", approval_id)
    refuse_decided(shown)
    schema = (await operator.action(shown["run"]["action"]))["input_schema"]
    wanted = {**shown["run"]["arguments"], **read_pairs(pairs, schema)}
    for name in without:
        if wanted.pop(name, None) is None:
            raise click.UsageError(f"--without {name}: the request has no such argument.")
    return shown, wanted


async def edit_shown(operator: Operator, shown: Mapping[str, Any], wanted: Mapping[str, JSON]) -> Looked:
    """Request other arguments in place of those shown.

    Return the edited approval and its session, or None for no session.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    await operator.post("action-approvals", shown["id"], "edit", body={"args": wanted, "digest": shown["digest"]})
    return await read_approval(operator, shown["id"])


def _in_editor(cli: CliContext, approval_id: str) -> Looked:
    """Edit all arguments as JSON in the editor. Return the edited approval and its session, or None for no session.

    No passphrase is read in this process until the editor is closed.

    :raises CommandError: if the request is already decided, cannot be read, or was not edited.
    """
    shown = shown_by_child(cli, approval_id)
    refuse_decided(shown)
    with rewritten(cli, shown["run"]["arguments"]) as wanted:
        return as_operator(cli, None, lambda operator: edit_shown(operator, shown, wanted))


@contextmanager
def rewritten(cli: CliContext, before: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
    """Yield the arguments as the person edited them in a file. If the caller fails, keep the file, else delete it.

    :raises CommandError: if there is no editor, or the text was not changed.
    """
    prepare(cli.home)
    path = _write(cli.home.root, before)
    wanted = _read_edited(cli, path)
    if in_words(wanted, sort_keys=True) == in_words(before, sort_keys=True):
        path.unlink()
        raise CommandError("Nothing was edited; the request is still pending.")
    try:
        yield wanted
    except Exception:
        note("Your changes are saved in {path}", path=path)
        raise
    path.unlink()


def shown_by_child(cli: CliContext, approval_id: str) -> Mapping[str, Any]:
    """Return the approval that a child process has shown in this terminal.

    :raises CommandError: if the approval could not be shown. The child has printed the reason.
    """
    arguments = command("approval", "show", "--json", "--", approval_id)
    ended = subprocess.run(arguments, env=dict(cli.environ), stdout=subprocess.PIPE, check=False)
    if ended.returncode != 0:
        raise CommandError("Cannot read the request, so nothing was edited.")
    found: Mapping[str, Any] = json.loads(ended.stdout)
    return found


def _write(directory: Path, arguments: JSON) -> Path:
    """Write the arguments to a new private file in the directory, and return its path."""
    descriptor, name = tempfile.mkstemp(prefix="edit-", suffix=".json", dir=directory)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(in_words(arguments) + "\n")
    return Path(name)


def _read_edited(cli: CliContext, path: Path) -> Mapping[str, JSON]:
    """Open the file in the editor until it has valid arguments, and return them.

    :raises CommandError: if there is no editor, it failed, or the person gave up.
    """
    while True:
        edit_file(path, cli.environ)
        try:
            wanted = loads_strict(path.read_bytes())
        except ValueError as error:
            problem = f"This is not valid JSON: {error}."
        else:
            if isinstance(wanted, Mapping):
                return wanted
            problem = "The arguments must be one JSON object."
        say("{problem}", problem=problem)
        ask_again(cli, "Edit it again?", "Nothing was edited; the request is still pending.")


def ask_again(cli: CliContext, question: str, refusal: str) -> None:
    """Ask whether to edit a file again; anything but "no" means yes.

    :param refusal: the message of the error.
    :raises CommandError: if the answer is no, or there is no terminal to ask in.
    """
    try:
        answer = cli.ask(f"{question} [Y/n] ")
    except InvalidRequest:
        answer = "n"
    if answer.strip().lower() in {"n", "no"}:
        raise CommandError(refusal)
