"""C{aileron action add} and C{check}: files on this machine, judged without a daemon."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import click

from aileron.home import Home, atomic_write, prepare, read_private
from aileron.values import LoadError

from . import _options
from ._errors import FAILED, Trouble
from ._output import block, note, say, say_json
from ._surroundings import Surroundings, pass_surroundings

_SUFFIX = ".md"
_MAX_BYTES = 1024 * 1024
_FILES = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=_FILES)
@_options.as_json
@click.pass_context
def check(context: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Say what is wrong with action files; needs no daemon."""
    tell_faults(context, files, {path: action_faults(path) for path in files}, as_json)


@click.command("add")
@click.argument("files", nargs=-1, required=True, type=_FILES)
@click.option("--force", is_flag=True, help="Replace a file of the same name that is different.")
@pass_surroundings
def add(around: Surroundings, files: tuple[Path, ...], force: bool) -> None:
    """Check action files and copy them into the home; a running daemon notices by itself."""
    home = around.home
    prepare(home)
    _refuse_faulty(files)
    for path in files:
        _copy(path, home, force)


def action_faults(path: Path) -> Sequence[LoadError]:
    """What the daemon would say of the file."""
    from aileron.manifests import check as faults_of

    return faults_of(str(path))


def tell_faults(
    context: click.Context, files: Sequence[Path], faults: dict[Path, Sequence[LoadError]], as_json: bool
) -> None:
    """Print every fault with file and line, or that there is none; the exit code says it too."""
    found = [fault for path in files for fault in faults[path]]
    if as_json:
        shown = [
            {"file": fault.file, "line": fault.line, "kind": fault.kind, "message": fault.message} for fault in found
        ]
        say_json({"faults": shown})
    else:
        for path in files:
            if not faults[path]:
                say("{path}: sound", path=path)
            for fault in faults[path]:
                say("{file}:{line}: {message}", file=fault.file, line=fault.line or 1, message=fault.message)
    if found:
        context.exit(FAILED)


def _refuse_faulty(files: Sequence[Path]) -> None:
    faults = [fault for path in files for fault in action_faults(path)]
    for fault in faults:
        note("{file}:{line}: {message}", file=fault.file, line=fault.line or 1, message=fault.message)
    if faults:
        raise Trouble("Nothing was added: a file has faults.")


def _copy(path: Path, home: Home, force: bool) -> None:
    if path.suffix != _SUFFIX:
        raise Trouble(f"{path} was not added: the name of an action file ends in {_SUFFIX}.")
    target = home.actions / path.name
    wanted, there = path.read_bytes(), read_private(target, _MAX_BYTES)
    if there == wanted:
        say("{name} is there already.", name=path.name)
        return
    if there is not None and not force:
        _show_difference(there, wanted)
        raise Trouble(f"{target} is different and was left as it is.", "To replace it: add --force")
    atomic_write(target, wanted, replace=there is not None)
    say("{name} was {done}.", name=path.name, done="added" if there is None else "replaced")


def _show_difference(there: bytes, wanted: bytes) -> None:
    before, after = (data.decode("utf-8", "replace").splitlines() for data in (there, wanted))
    block("\n".join(difflib.unified_diff(before, after, "there", "new", lineterm="")))
