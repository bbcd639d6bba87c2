"""Tells how much room is left on the disk of a directory."""

from __future__ import annotations

import os
from pathlib import Path

FULL_BYTES = 256 * 1024
"""With less than this free a disk counts as full: the database's next page and log may not fit."""


def free_bytes(directory: Path) -> int | None:
    """Return how much this user can still write on the disk of a directory, or None if the system does not say."""
    try:
        disk = os.statvfs(directory)
    except OSError:
        return None
    files_left = disk.f_favail or not disk.f_files  # some file systems do not count files
    return disk.f_bavail * disk.f_frsize if files_left else 0


def is_disk_full(directory: Path) -> bool:
    """Return whether the disk of a directory has no room left; False if that is not known."""
    free = free_bytes(directory)
    return free is not None and free < FULL_BYTES
