"""C{aileron action add}, C{check} and C{edit}: action files on this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from aileron.cli import _options
from aileron.cli._errors import Trouble
from aileron.cli._output import note
from aileron.cli._surroundings import Surroundings, pass_surroundings
from aileron.cli.approvals.editor import edit_file
from aileron.cli.completing import names
from aileron.errors import Forbidden, InvalidRequest
from aileron.home import Home, atomic_write, prepare, read_private
from aileron.values import LoadError

from .commands import trust_added
from .copying import Sort, add_command, check_command, tell_fault
from .trusting import Wish, tell

_SUFFIX = ".md"
_MAX_BYTES = 1024 * 1024
_name = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}").fullmatch

TEMPLATE = """\
+++
name = "{name}"
version = "1.0.0"

[[requires.connectors]]
name = "builtin://slack"
version = "1.0.0"
capabilities = ["post_message"]

[[inputs]]
name = "channel"
type = "string"
description = "Channel name with the leading #"

[[inputs]]
name = "text"
type = "string"
multiline = true
description = "What to say"

[[execute]]
id = "post"
connector = "builtin://slack"
op = "post_message"
inputs = {{ channel = "${{args.channel}}", text = "${{args.text}}" }}

[approval]
required = true
+++
# {title}

Say here, for the model that reads it, what this action does and when to use it.
"""


def _faults(path: Path) -> Sequence[LoadError]:
    from aileron.manifests import check as faults_of

    return faults_of(str(path))


ACTIONS = Sort("action", _SUFFIX, lambda home: home.actions, _faults)
check = check_command(ACTIONS)
add = add_command(ACTIONS)


@click.command("edit")
@click.argument("name", shell_complete=names.actions)
@click.option("--new", is_flag=True, help="Begin a new one.")
@_options.passphrase_fd
@pass_surroundings
def edit(around: Surroundings, name: str, new: bool, passphrase_fd: int | None) -> None:
    """Open an action of your home in your editor; when you close it, it is checked and you are asked to trust it.

    The editor is the one that VISUAL or EDITOR names.
    """
    prepare(around.home)
    path = _begin(around.home, name) if new else _find(around.home, name)
    # Until the editor is closed for good no passphrase is read: it must not inherit from a process that held one.
    edit_file(path, around.environ)
    while faults := _faults(path):
        for fault in faults:
            note("{fault}", fault=tell_fault(fault))
        _ask_again(around)
        edit_file(path, around.environ)
    trusted = trust_added(around, passphrase_fd, Wish("action", paths=(path,)))
    if trusted is not None:
        tell(trusted)


def _begin(home: Home, name: str) -> Path:
    """The file of a new action, which does something already."""
    if not _name(name):
        raise Trouble(f"{name} is no name for an action: want a-z, 0-9, hyphens, dots and underscores.")
    path = home.actions / f"{name}{_SUFFIX}"
    text = TEMPLATE.format(name=name, title=name.replace("-", " ").capitalize())
    try:
        atomic_write(path, text.encode(), replace=False)
    except FileExistsError:
        raise Trouble(f"There is {path.name} already.", f"To change it: aileron action edit {name}") from None
    return path


def _find(home: Home, name: str) -> Path:
    """The file of the action of that name: called so, or the one that says so within.

    :raises Trouble: there is none.
    """
    path = home.actions / f"{name}{_SUFFIX}"
    if _name(name) and read_private(path, _MAX_BYTES) is not None:
        return path
    says = re.compile(rb"^name *= *[\"']" + re.escape(name.encode()) + rb"[\"'] *$", re.MULTILINE)
    for other in sorted(home.actions.glob(f"*{_SUFFIX}")):
        with suppress(Forbidden, InvalidRequest):  # it is no action: a link, or too long
            if says.search(read_private(other, _MAX_BYTES) or b""):
                return other
    raise Trouble(f"There is no action {name} in {home.actions}.", f"To begin one: aileron action edit --new {name}")


def _ask_again(around: Surroundings) -> None:
    """:raises Trouble: the person does not want to edit it again, or nobody can be asked."""
    try:
        answer = around.ask("It has faults, so it does nothing. Edit it again? [Y/n] ")
    except InvalidRequest:
        answer = "n"
    if answer.strip().lower() in {"n", "no"}:
        raise Trouble("It was left as it is, and is not trusted.")
