"""The newest backup that a home remembers, and the advice about backups before an upgrade."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from aileron.base.json import JSON
from aileron.cli.output import note, when
from aileron.home.paths import Home
from aileron.home.private_files import atomic_write, read_private
from aileron.model.errors import AileronError
from aileron.model.features import UpgradeAdvice


@frozen
class Backup:
    """The newest backup that a home has recorded. This note is not protected, and only helps to find the file.

    :ivar file: the path to which the backup was written.
    :ivar made_at: the time, as L{aileron.base.json.timestamp} writes it.
    """

    file: str
    made_at: str

    def to_json(self) -> Mapping[str, JSON]:
        """Return the backup as JSON, with whether the file still exists."""
        return {"file": self.file, "made_at": self.made_at, "exists": os.path.exists(self.file)}

    def describe(self) -> str:
        """Return the backup as a line for people."""
        gone = "" if os.path.exists(self.file) else " (no longer there)"
        return f"{when(self.made_at)}: {self.file}{gone}"


def note_path(home: Home) -> Path:
    """Return the path of the file that records the place and time of a home's newest backup."""
    return home.root / "last-backup.json"


def find_backup(home: Home) -> Backup | None:
    """Return the newest backup that the home has recorded, or None if there is no readable record."""
    try:
        found = json.loads(read_private(note_path(home)) or b"")
        return Backup(str(found["file"]), str(found["made_at"]))
    except (AileronError, ValueError, KeyError, TypeError, RecursionError):
        return None


def remember_backup(home: Home, made: Backup) -> None:
    """Record the newest backup in the home. If that fails, print a note; the backup itself remains."""
    text = json.dumps({"file": made.file, "made_at": made.made_at}) + "\n"
    try:
        atomic_write(note_path(home), text.encode())
    except OSError as error:
        note("`aileron upgrade --check` will not know of this backup: {why}", why=error.strerror)


def advise(home: Home) -> UpgradeAdvice:
    """Return the advice of C{aileron upgrade --check} about backups, and the command that creates a backup."""
    found = find_backup(home)
    file = shlex.quote(str(home.root.with_name("aileron-before-upgrade.backup")))
    return UpgradeAdvice(
        members={"last_backup": None if found is None else found.to_json()},
        lines={"last backup": "none known" if found is None else found.describe()},
        steps=(f"aileron backup create {file}",),
    )
