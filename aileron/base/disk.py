"""Measures the free space on the disk of a directory."""

from __future__ import annotations

import os
from pathlib import Path

FULL_BYTES = 256 * 1024
"""A disk with fewer free bytes counts as full, because the database's next page and log may not fit."""


def free_bytes(directory: Path) -> int | None:
    """Return the number of bytes that this user can still write on the directory's disk, or None if it is unknown."""
    try:
        disk = os.statvfs(directory)
    except OSError:
        return None
    files_left = disk.f_favail or not disk.f_files  # some file systems do not count files
    return disk.f_bavail * disk.f_frsize if files_left else 0


def is_disk_full(directory: Path) -> bool:
    """Return True if the directory's disk is full, or False if that is unknown."""
    free = free_bytes(directory)
    return free is not None and free < FULL_BYTES
