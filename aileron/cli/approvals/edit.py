"""C{aileron approval edit}: other arguments than the agent's, before you decide."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import _options
from aileron.cli._errors import Trouble
from aileron.cli._output import in_words, note, say, say_json
from aileron.cli._session import as_operator
from aileron.cli._surroundings import Surroundings, pass_surroundings
from aileron.cli.actions.run import typed
from aileron.cli.daemon.process import command
from aileron.errors import InvalidRequest
from aileron.home import prepare
from aileron.values import JSON, loads_strict

from .deciding import look, refuse_decided
from .editor import edit_file
from .review import show_review

if TYPE_CHECKING:
    from aileron.client import Operator

Looked = tuple[Mapping[str, Any], Mapping[str, Any] | None]
"""An approval, and the session that asks."""


@click.command("edit")
@click.argument("approval_id", metavar="ID")
@click.option("--arg", "pairs", multiple=True, metavar="K=V", help="One argument instead, as text; repeat for more.")
@click.option("--without", multiple=True, metavar="K", help="Leave this optional argument out; repeat for more.")
@click.option("--editor", is_flag=True, help="Open all arguments in your editor; asks for the passphrase twice.")
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def edit(
    around: Surroundings,
    /,
    approval_id: str,
    pairs: tuple[str, ...],
    without: tuple[str, ...],
    editor: bool,
    passphrase_fd: int | None,
    as_json: bool,
) -> None:
    """Ask for other arguments than the agent did.  They are checked as its own were; nothing is decided."""
    if editor is bool(pairs or without):
        raise click.UsageError("Say what to edit: --arg and --without, or --editor.")
    if editor and passphrase_fd is not None:
        raise click.UsageError("--editor reads the passphrase twice, which a descriptor gives once.")
    if editor:
        edited, session = _in_editor(around, approval_id)
    else:
        edited, session = as_operator(
            around, passphrase_fd, lambda operator: _replace(operator, approval_id, pairs, without)
        )
    if as_json:
        say_json({**edited, "session": session})
    else:
        show_review(edited, session)
        note("Nothing is decided yet. To do so: aileron approval approve {id}", id=edited["id"])


async def _replace(operator: Operator, approval_id: str, pairs: Sequence[str], without: Sequence[str]) -> Looked:
    shown = await operator.approval(approval_id)
    refuse_decided(shown)
    schema = (await operator.action(shown["run"]["action"]))["input_schema"]
    wanted = {**shown["run"]["arguments"], **typed(pairs, schema)}
    for name in without:
        if wanted.pop(name, None) is None:
            raise click.UsageError(f"--without {name}: there is no such argument to leave out.")
    return await _edit(operator, shown, wanted)


async def _edit(operator: Operator, shown: Mapping[str, Any], wanted: Mapping[str, JSON]) -> Looked:
    await operator.edit(shown["id"], wanted, shown["digest"])
    return await look(operator, shown["id"])


def _in_editor(around: Surroundings, approval_id: str) -> Looked:
    """Edit all arguments as JSON.  Until the editor is closed for good no passphrase is read in this process."""
    shown = shown_by_child(around, approval_id)
    refuse_decided(shown)
    with rewritten(around, shown["run"]["arguments"]) as wanted:
        return as_operator(around, None, lambda operator: _edit(operator, shown, wanted))


@contextmanager
def rewritten(around: Surroundings, before: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
    """The arguments as the person leaves them in their editor; where what follows fails, what they wrote is kept.

    :raises Trouble: nothing was edited.
    """
    prepare(around.home)
    path = _written(around.home.root, before)
    wanted = _edited(around, path)
    if in_words(wanted, sort_keys=True) == in_words(before, sort_keys=True):
        path.unlink()
        raise Trouble("Nothing was edited; it waits as it was.")
    try:
        yield wanted
    except Exception:
        note("What you wrote is kept in {path}", path=path)
        raise
    path.unlink()


def shown_by_child(around: Surroundings, approval_id: str) -> Mapping[str, Any]:
    """The approval as another process of ours is shown it, in this terminal.

    :raises Trouble: it could not be shown; the child has said why.
    """
    arguments = command("approval", "show", "--json", "--", approval_id)
    ended = subprocess.run(arguments, env=dict(around.environ), stdout=subprocess.PIPE, check=False)
    if ended.returncode != 0:
        raise Trouble("So there is nothing to edit.")
    found: Mapping[str, Any] = json.loads(ended.stdout)
    return found


def _written(directory: Path, arguments: JSON) -> Path:
    """A private file of the arguments."""
    descriptor, name = tempfile.mkstemp(prefix="edit-", suffix=".json", dir=directory)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(in_words(arguments) + "\n")
    return Path(name)


def _edited(around: Surroundings, path: Path) -> Mapping[str, JSON]:
    """The arguments as the person leaves them."""
    while True:
        edit_file(path, around.environ)
        try:
            wanted = loads_strict(path.read_bytes())
        except ValueError as error:
            problem = f"This is no JSON: {error}."
        else:
            if isinstance(wanted, Mapping):
                return wanted
            problem = "The arguments must be one JSON object."
        say("{problem}", problem=problem)
        _ask_again(around)


def _ask_again(around: Surroundings) -> None:
    """:raises Trouble: the person does not want to edit it again, or nobody can be asked."""
    try:
        answer = around.ask("Edit it again? [Y/n] ")
    except InvalidRequest:
        answer = "n"
    if answer.strip().lower() in {"n", "no"}:
        raise Trouble("Nothing was edited; it waits as it was.")
