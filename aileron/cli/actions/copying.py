"""Checks files of the user without a daemon, and copies them into the home."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import click
from attrs import frozen

from aileron.base.load_error import LoadError
from aileron.cli import options as _options
from aileron.cli.errors import FAILED, CommandError
from aileron.cli.output import block, note, say, say_json
from aileron.cli.session import OperatorCommand, operator_command
from aileron.home.paths import Home, prepare
from aileron.home.private_files import atomic_write, read_private

from .trusting import TrustRequest, as_values, refuse_unasked, tell, trust_added, yes

_FILES = click.Path(exists=True, dir_okay=False, path_type=Path)
_MAX_BYTES = 1024 * 1024
_OPEN_FILE = 0o644
_NAME = re.compile(rb'^name\s{0,20}=\s{0,20}"([^"\n]{1,300})"', re.MULTILINE)


@frozen
class Sort:
    """A kind of file.

    :ivar kind: C{action} or C{connector}.
    :ivar directory: its directory in a home.
    :ivar faults: returns the errors that the daemon would report for a file.
    """

    kind: str
    suffix: str
    directory: Callable[[Home], Path]
    faults: Callable[[Path], Sequence[LoadError]]


def check_command(sort: Sort) -> click.Command:
    """Return the command C{aileron action check} or C{aileron connector check}, by the kind of file."""

    @click.command("check", help=f"Check {sort.kind} files for errors. Needs no daemon.")
    @click.argument("files", nargs=-1, required=True, type=_FILES)
    @_options.as_json
    @click.pass_context
    def command(context: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
        found = {path: sort.faults(path) for path in files}
        _tell_faults(found, as_json)
        if any(found.values()):
            context.exit(FAILED)

    return command


def add_command(sort: Sort) -> click.Command:
    """Return the command C{aileron action add} or C{aileron connector add}, by the kind of file."""

    @click.command("add", help=f"Check {sort.kind} files, copy them into your home, and ask you to trust them.")
    @click.argument("files", nargs=-1, required=True, type=_FILES)
    @click.option("--force", is_flag=True, help="Replace a different file of the same name.")
    @click.option("--no-trust", is_flag=True, help="Copy only; do not ask for trust.")
    @yes
    @operator_command
    def add(command: OperatorCommand, /, files: tuple[Path, ...], force: bool, no_trust: bool, yes: bool) -> None:
        refuse_unasked(command.as_json, yes or no_trust)
        added = _add(command.cli.home, sort, files, force, quiet=command.as_json)
        request = TrustRequest(sort.kind, paths=tuple(added), sure=yes, as_json=command.as_json)
        trusted = None if no_trust else trust_added(command.cli, command.passphrase_fd, request)
        if command.as_json:
            say_json({"added": [path.name for path in added], "trusted": as_values(trusted or [])})
        elif trusted is not None:
            tell(trusted)

    return add


def tell_fault(fault: LoadError) -> str:
    """Return an error as one line: its place and its text."""
    return f"{fault.file}:{fault.line or 1}: {fault.message}"


def note_faults(faults: Sequence[LoadError]) -> Sequence[LoadError]:
    """Print the errors of files on standard error, and return them."""
    for fault in faults:
        note("{fault}", fault=tell_fault(fault))
    return faults


def _tell_faults(faults: Mapping[Path, Sequence[LoadError]], as_json: bool) -> None:
    if as_json:
        found = [fault for each in faults.values() for fault in each]
        shown = [
            {"file": fault.file, "line": fault.line, "kind": fault.kind, "message": fault.message} for fault in found
        ]
        say_json({"faults": shown})
        return
    for path, each in faults.items():
        if not each:
            say("{path}: OK", path=path)
        for fault in each:
            say("{fault}", fault=tell_fault(fault))


def _add(home: Home, sort: Sort, files: Sequence[Path], force: bool, *, quiet: bool) -> list[Path]:
    """Copy all files, and return their new paths.

    :raises CommandError: if a file has errors or an invalid name, or the home has a different file of that name.
    """
    prepare(home)
    if note_faults([fault for path in files for fault in sort.faults(path)]):
        raise CommandError("Nothing was added: a file has errors.")
    return [_copy(path, home, sort, force, quiet=quiet) for path in files]


def _copy(path: Path, home: Home, sort: Sort, force: bool, *, quiet: bool) -> Path:
    if path.suffix != sort.suffix:
        raise CommandError(f"{path} was not added: its name must end with {sort.suffix}.")
    target = sort.directory(home) / path.name
    wanted, there = path.read_bytes(), read_private(target, _MAX_BYTES)
    done = "is already there"
    if there != wanted:
        _refuse_another(target, sort, there, wanted)
        if there is not None and not force:
            _show_difference(there, wanted)
            raise CommandError(
                f"{target} exists with different contents and was left as it is.", "To replace it, add --force."
            )
        atomic_write(target, wanted, replace=there is not None)
        done = "was added" if there is None else "was replaced"
    if not quiet:
        say("{name} {done}.", name=path.name, done=done)
    return target


def _refuse_another(target: Path, sort: Sort, there: bytes | None, wanted: bytes) -> None:
    """Refuse to replace the file of another action or connector, even with C{--force}.

    :raises CommandError: if the file there declares another name.
    """
    known, new = _find_name(there or b""), _find_name(wanted)
    if known is not None and new is not None and known != new:
        raise CommandError(
            f"{target} is the file of another {sort.kind}, {known}. It was left as it is.",
            f"Rename your file, then run: aileron {sort.kind} add FILE",
        )


def _find_name(data: bytes) -> str | None:
    """Return the value of the first key C{name} in a file of either kind, or None if there is none."""
    found = _NAME.search(data)
    return None if found is None else found[1].decode("utf-8", "replace")


def replace_files(root: Path, old: Mapping[str, bytes | None], new: Mapping[str, bytes | None]) -> None:
    """Replace each file whose content is still the one in C{old} by the content in C{new}. None means no file.

    A file with another content was changed by somebody else, and is kept.

    :param root: the directory of the files, which are named by their paths below this directory.
    :raises OSError: if a file cannot be written. Files before it are replaced.
    """
    for place, data in new.items():
        if read_private(root / place, _MAX_BYTES) == old.get(place) != data:
            if data is None:
                (root / place).unlink()
            else:
                atomic_write(root / place, data)


def write_files(files: Mapping[Path, str], replaced: Collection[Path] = ()) -> None:
    """Write all files, or none, to the places that the user chose.

    :param replaced: files that may be overwritten.
    :raises CommandError: if another file exists with different contents.
    :raises OSError: if a file cannot be written.
    """
    different = [path for path, text in files.items() if path not in replaced and _differs(path, text)]
    if different:
        raise CommandError(
            f"Already there with different contents: {', '.join(map(str, different))}. Nothing was written.",
            "Choose another --output. To replace them, add --force.",
        )
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text.encode(), _OPEN_FILE)


def _differs(path: Path, text: str) -> bool:
    return path.exists() and path.read_bytes() != text.encode()


def add_ready(home: Home, sort: Sort, name: str, text: str) -> Path:
    """Write a ready-made file into the home, or keep the existing one.

    :raises CommandError: if the ready-made file has errors.
    :raises OSError, Forbidden, InvalidRequest: if a file there cannot be read or written safely.
    """
    path = sort.directory(home) / name
    if read_private(path, _MAX_BYTES) is None:
        atomic_write(path, text.encode(), replace=False)
        say("Written: {path}", path=path)
    else:
        say("{name} is already there, and is kept as it is.", name=name)
    if note_faults(sort.faults(path)):
        raise CommandError(f"{name} has errors, so it has no effect.", "Correct it, then run the same command again.")
    return path


def _show_difference(there: bytes, wanted: bytes) -> None:
    before, after = (data.decode("utf-8", "replace").splitlines() for data in (there, wanted))
    block("\n".join(difflib.unified_diff(before, after, "existing", "new", lineterm="")))
