"""C{aileron backup}: writes a home into one encrypted file, checks the file, and restores a home from it."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import click
from attrs import frozen

from aileron.base.json import timestamp, utc
from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.opening import ask_until_right, open_with_passphrase
from aileron.cli.output import note, progress, say, values, when
from aileron.features import FeatureSet
from aileron.home.lock import running_pid
from aileron.home.paths import Home, prepare

from .newest import Backup, remember_backup

_TRIES = 5
_PIECE_BYTES = 1024 * 1024
_COPIED = ("config.yaml", *FeatureSet().file_names(), "secrets.json", "audit.key")
"""Files of a home that are copied as they are; the database is copied by SQLite."""
_DIRECTORIES = ("actions", "connectors")


@frozen
class _Contents:
    """The files that a backup was found to contain.

    :ivar digests: the SHA-256 of each file, by its path below the home.
    :ivar made_at: the time in the header of the backup.
    """

    digests: dict[str, str]
    made_at: str

    def count(self, directory: str) -> int:
        """Return how many files of the backup were in a directory."""
        return sum(path.startswith(f"{directory}/") for path in self.digests)


@click.group()
def backup() -> None:
    """Back up this home into one encrypted file, check the file, and restore it."""


@backup.command("create")
@click.argument("file", type=click.Path(path_type=Path))
@_options.passphrase_fd
@pass_cli
def create(cli: CliContext, file: Path, passphrase_fd: int | None) -> None:
    """Write the vault, database, configuration, actions and connectors to FILE.

    The daemon may be running. The file is encrypted with the vault's passphrase, and checked before it gets its name.
    """
    if os.path.lexists(file):
        raise _taken(file)
    passphrase = _passphrase(cli, cli.home, passphrase_fd)
    made_at = utc(cli.wall())
    with _new_file(file) as temporary, _scratch(cli.home) as scratch:
        with progress("Copying the database"):
            paths = _gather(cli.home, scratch / cli.home.database.name)
        with open(temporary, "wb") as target:
            written = _write(target, passphrase, paths, made_at)
        if _read(temporary, passphrase, None).digests != written:
            raise CommandError("The backup could not be read back, so it was deleted.", "Check the disk.")
    remember_backup(cli.home, Backup(str(file.absolute()), timestamp(made_at)))
    say("Backup written and checked: {file}", file=file)
    values({"files": str(len(written)), "size": f"{file.stat().st_size:,} bytes"}, "  ")


@backup.command("check")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_options.passphrase_fd
@pass_cli
def check(cli: CliContext, file: Path, passphrase_fd: int | None) -> None:
    """Check that FILE can be restored: it opens, and its vault and audit log are intact."""
    with _scratch(cli.home) as scratch:
        contents = _ask_and_restore(cli, file, passphrase_fd, Home(scratch / "home"))
    say("The backup can be restored.")
    _describe(contents)


@backup.command("restore")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_options.passphrase_fd
@pass_cli
def restore(cli: CliContext, file: Path, passphrase_fd: int | None) -> None:
    """Create this home from FILE. The home must not exist yet: nothing is overwritten."""
    home = cli.home
    if running_pid(home) is not None or (home.root.exists() and any(home.root.iterdir())):
        raise CommandError(
            f"{home.root} is not empty; nothing was restored.",
            f"Stop the daemon and move the home away: mv {home.root} {home.root}.old",
        )
    home.root.parent.mkdir(parents=True, exist_ok=True)
    temporary = Home(home.root.with_name(f"{home.root.name}.restoring-{secrets.token_hex(4)}"))
    try:
        contents = _ask_and_restore(cli, file, passphrase_fd, temporary)
        temporary.root.replace(home.root)
    finally:
        shutil.rmtree(temporary.root, ignore_errors=True)
    say("Restored: {root}", root=home.root)
    _describe(contents)
    say("Start the daemon: aileron daemon start")


def _describe(contents: _Contents) -> None:
    counts = {directory: str(contents.count(directory)) for directory in _DIRECTORIES}
    values({"created": when(contents.made_at), **counts}, "  ")


def _passphrase(cli: CliContext, home: Home, descriptor: int | None) -> str:
    """Read the passphrase, from the terminal or C{descriptor}, check that it opens the vault, and return it.

    A backup made with a mistyped passphrase could not be restored.

    :raises WrongPassphrase: if the passphrase does not open the vault.
    :raises NoVault: if there is no vault.
    :raises InvalidRequest: if no passphrase can be read.
    """
    key, passphrase = open_with_passphrase(cli, descriptor, path=home.secrets)
    key.wipe()
    return passphrase


@contextmanager
def _scratch(home: Home) -> Iterator[Path]:
    """Create a temporary directory that only this user can read: in the home if it exists, else in the system's."""
    with TemporaryDirectory(prefix=".backup-", dir=home.root if home.root.is_dir() else None) as path:
        yield Path(path)


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """Create a temporary file that only this user can read, and rename it to C{path} if the block succeeds.

    :raises CommandError: if C{path} exists.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            raise _taken(path) from None
    finally:
        temporary.unlink(missing_ok=True)


def _taken(path: Path) -> CommandError:
    return CommandError(f"{path} already exists; nothing was written.", "Choose another name.")


def _gather(home: Home, copy: Path) -> dict[str, Path]:
    """Copy the database, and return the path of each file of the backup, by its name in the archive.

    The copied database must match the vault: if the vault changes during the copy, the database is copied again. A
    copy made while the daemon runs looks as after a loss of power, from which the daemon recovers.

    :raises CommandError: if the vault changed at every attempt.
    :raises InvalidRequest: if the database cannot be copied.
    """
    from aileron.store.copy import back_up

    for _ in range(_TRIES):
        before = _stamp(home)
        copy.unlink(missing_ok=True)
        if home.database.exists():
            back_up(home.database, copy)
        if _stamp(home) == before:
            break
    else:
        raise CommandError(
            "The vault changes too often to be copied; nothing was written.",
            "Stop the daemon first: aileron daemon stop",
        )
    found = {home.database.name: copy} if copy.exists() else _note_move(home, copy)
    found |= {name: home.root / name for name in _COPIED}
    for directory in _DIRECTORIES:
        found |= {f"{directory}/{each.name}": each for each in sorted((home.root / directory).glob("*"))}
    return {name: path for name, path in found.items() if path.is_file() and not path.is_symlink()}


def _note_move(home: Home, copy: Path) -> dict[str, Path]:
    """Return an empty file that says in the backup that the store is on a server, if it is. The server has the data."""
    if not home.moved_database.exists():
        return {}
    note("The database is on a PostgreSQL server, and not in the backup. Back it up there, with pg_dump.")
    marker = copy.with_name(home.moved_database.name)
    marker.touch()
    return {marker.name: marker}


def _stamp(home: Home) -> tuple[bytes, ...]:
    """Return the bytes of the vault and of the audit key, to find out whether either changed meanwhile."""
    return tuple(path.read_bytes() if path.exists() else b"" for path in (home.secrets, home.audit_key))


def _write(target: IO[bytes], passphrase: str, paths: dict[str, Path], made_at: datetime) -> dict[str, str]:
    """Write the archive and return the digest of each file, by name."""
    from .archive import SealingWriter

    digests, total = {}, sum(path.stat().st_size for path in paths.values())
    with (
        progress("Writing the backup", total, target.tell),
        SealingWriter(target, passphrase, made_at) as sealed,
        tarfile.open(fileobj=sealed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in paths.items():
            with open(path, "rb") as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = file.tell(), 0o600
                file.seek(0)
                archive.addfile(entry, file)
    return digests


def _read(file: Path, passphrase: str, home: Home | None) -> _Contents:
    """Read a whole backup and return its contents.

    :param home: the home into which the files are written, or None to write none.
    :raises ArchiveDamaged: if the file is not a backup, was altered, or is truncated.
    :raises CommandError: if the backup contains a file that backups of this version do not have.
    :raises WrongPassphrase: if the passphrase does not decrypt the backup.
    """
    from .archive import ArchiveDamaged, UnsealingReader

    digests: dict[str, str] = {}
    with (
        open(file, "rb") as source,
        progress("Reading the backup", file.stat().st_size, source.tell),
        UnsealingReader(source, passphrase) as opened,
    ):
        try:
            with tarfile.open(fileobj=opened, mode="r|", format=tarfile.PAX_FORMAT) as archive:
                for entry in archive:
                    content = archive.extractfile(entry) if entry.isreg() else None
                    if content is None or not _is_expected(entry.name) or entry.name in digests:
                        raise CommandError(
                            "The backup contains a file that this version does not know; nothing was restored.",
                            "Restore it with the version of Aileron that created it.",
                        )
                    digests[entry.name] = _copy(content, None if home is None else home.root / entry.name)
        except tarfile.TarError as error:
            raise ArchiveDamaged("The backup is damaged inside.") from error
        while opened.read(_PIECE_BYTES):  # reads the last piece, which proves that none is missing
            pass
    return _Contents(digests, opened.made_at)


def _is_expected(name: str) -> bool:
    """Return whether a backup may contain a file of this name. Logs, locks and paths outside the home are excluded."""
    directory, _, file = name.rpartition("/")
    if not directory:
        return name in (*_COPIED, "aileron.db", "aileron.db.moved")
    return directory in _DIRECTORIES and file not in ("", ".", "..") and "\0" not in file


def _copy(content: IO[bytes], path: Path | None) -> str:
    """Copy a file and return its SHA-256. If C{path} is None, only compute the digest."""
    digest = hashlib.sha256()
    with open(os.devnull if path is None else path, "wb", opener=_open_private) as target:
        while piece := content.read(_PIECE_BYTES):
            digest.update(piece)
            target.write(piece)
        target.flush()
        if path is not None:
            os.fsync(target.fileno())
    return digest.hexdigest()


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _ask_and_restore(cli: CliContext, file: Path, descriptor: int | None, home: Home) -> _Contents:
    return ask_until_right(
        lambda: cli.passphrase("Passphrase of the backup", descriptor, None),
        lambda passphrase: _restore(cli, file, passphrase, home),
        typed=descriptor is None,
    )


def _restore(cli: CliContext, file: Path, passphrase: str, home: Home) -> _Contents:
    """Extract a backup into a new home, and check its vault and audit log.

    :raises CommandError: if the audit log is not intact.
    :raises ArchiveDamaged: if the file is not a backup, was altered, or is truncated.
    :raises WrongPassphrase: if the passphrase does not decrypt the backup or open its vault.
    :raises VaultDamaged, NoVault: if the backup has no sound vault.
    """
    from aileron.cli.records.look import look_at

    prepare(home)
    contents = _read(file, passphrase, home)
    cli.open_vault(home.secrets, passphrase).wipe()
    if home.database.exists():
        verdict = look_at(home.database)
        if verdict.broken is not None:
            raise CommandError(
                f"The audit log in the backup is broken at record {verdict.broken.sequence} ({verdict.broken.kind}).",
                "Restore an older backup.",
            )
    return contents
