"""Finds further paths by which this machine exposes a directory: bind mounts, whole file systems, and snapshots."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from os.path import commonpath, isdir, join, lexists, normpath, realpath, relpath
from pathlib import Path

from attrs import frozen

_MOUNTINFO = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")  # a space, a tab, a line end or a backslash, proc_pid_mountinfo(5)
_ON_DISK = frozenset(
    "9p bcachefs btrfs drvfs erofs ext2 ext3 ext4 f2fs fuse.bindfs fuse.mergerfs fuse.unionfs-fuse jfs overlay "
    "reiserfs squashfs virtiofs xfs zfs".split()
)
"""The file systems that may contain a copy of a home. Network file systems are left out, as they may not respond."""

_SNAPSHOTS = (".snapshots", ".zfs/snapshot", ".snapshot", "timeshift/snapshots", "timeshift-btrfs/snapshots")
_TREES = ("snapshot", "localhost", "@", "@home")
"""The directories of a snapshot that contain its files, as named by Snapper and Timeshift."""

_MOST_SNAPSHOTS = 500


@frozen
class Mount:
    """One mount in the kernel's list.

    :ivar device: the device of the file system, equal for all its mounts.
    :ivar root: the mounted directory of the file system.
    :ivar place: the mount point.
    :ivar kind: the type of the file system.
    """

    device: str
    root: str
    place: str
    kind: str


def read_mounts(text: str | None = None) -> tuple[Mount, ...]:
    """Return the mounts that this process sees, in the kernel's order, or none if the kernel has no list.

    :param text: a list in the form of C{/proc/self/mountinfo}, or None to read that file.
    """
    if text is None:
        try:
            text = Path(_MOUNTINFO).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ()
    return tuple(_mount(line) for line in text.splitlines() if " - " in line)


def _mount(line: str) -> Mount:
    fields, _, more = line.partition(" - ")
    _, _, device, root, place, *_ = fields.split(" ")
    return Mount(device, _unescape(root), _unescape(place), more.split(" ")[0])


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)


def second_paths(directory: str, mounts: Sequence[Mount]) -> Iterator[str]:
    """Yield the other paths of a directory, or of a part of it that is mounted elsewhere.

    A path covered by a later mount is left out: each path is compared with the original by device and inode.

    :param directory: the absolute path of the directory, without symbolic links.
    """
    holding = [each for each in mounts if _is_within(directory, each.place)]
    if not holding:
        return
    # if two mounts have one mount point, the later covers the earlier
    its = max(holding, key=lambda each: len(each.place))
    its = [each for each in holding if each.place == its.place][-1]
    inside = normpath(join(its.root, relpath(directory, its.place)))
    for mount in mounts:
        if mount.device != its.device:
            continue
        if _is_within(inside, mount.root):
            path, original = normpath(join(mount.place, relpath(inside, mount.root))), directory
        elif _is_within(mount.root, inside):
            path, original = mount.place, normpath(join(directory, relpath(mount.root, inside)))
        else:
            continue
        if path != original and _is_same(path, original):
            yield path


def find_copies(directory: str, marker: str, mounts: Sequence[Mount]) -> Iterator[str]:
    """Yield copies of a directory in snapshots and in file systems of other installed systems.

    :param directory: the absolute path of the directory, without symbolic links.
    :param marker: the name of a file that a directory must contain to count as a copy.
    """
    parts = Path(directory).parts[1:]
    tails = [join(*parts[start:]) for start in range(len(parts))]
    tops = [each.place for each in mounts if each.kind in _ON_DISK]
    above = [str(parent) for parent in Path(directory).parents]
    for top in dict.fromkeys((*tops, *(each for place in (*tops, *above) for each in _snapshots(place)))):
        for tail in tails:
            path = join(top, tail)
            if isdir(path) and lexists(join(path, marker)) and realpath(path) != directory:
                yield realpath(path)


def _snapshots(place: str) -> Iterator[str]:
    """Yield the snapshots that a file system exposes in a directory."""
    for name in _SNAPSHOTS:
        base = join(place, name)
        try:
            names = sorted(os.listdir(base), reverse=True)[:_MOST_SNAPSHOTS]
        except OSError:
            continue
        for each in names:
            yield from (join(base, each), *(join(base, each, tree) for tree in _TREES))


def _is_within(path: str, directory: str) -> bool:
    return commonpath((path, directory)) == directory


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
