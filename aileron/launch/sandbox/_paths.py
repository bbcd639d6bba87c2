"""Follows paths: where they lead, in which directories they lie, and what on the way there could be replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from os.path import commonpath, dirname, isabs, islink, join, realpath

from aileron.errors import InvalidRequest

_MOST_LINKS = 40  # as many as the kernel follows


def is_within(path: str, directory: str) -> bool:
    """Return whether a path is a directory or lies below it; both are absolute."""
    return commonpath((path, directory)) == directory


def is_within_any(path: str, directories: Iterable[str]) -> bool:
    """Return whether a path is one of these directories or lies below one."""
    return any(is_within(path, directory) for directory in directories)


def steps(path: str) -> Iterator[str]:
    """Each symbolic link on the way of an absolute path, in whatever directory it lies, and at last where it leads.

    The directories of what is yielded are without links.
    """
    current, waiting, links = "/", path.split(os.sep)[::-1], 0
    while waiting:
        name = waiting.pop()
        if name == os.pardir:
            current = dirname(current)
        elif name not in ("", os.curdir):
            place = join(current, name)
            if links < _MOST_LINKS and islink(place):
                links += 1
                yield place
                target = os.readlink(place)
                waiting.extend(target.split(os.sep)[::-1])
                current = "/" if isabs(target) else current
            else:
                current = place
    yield current


def linked_from(directory: str) -> Iterator[str]:
    """Where the links in a directory lead, and each link on the way there but themselves."""
    try:
        links = [entry.path for entry in os.scandir(realpath(directory)) if entry.is_symlink()]
    except OSError:
        return
    for link in links:
        yield from list(steps(link))[1:]


def check_protectable(paths: Iterable[str], writable: Sequence[str]) -> list[str]:
    """The paths that lie in writable directories, once each, in order.

    :raises InvalidRequest: to protect one would leave nothing to write, or it can be replaced.
    """
    found = {path for path in paths if any(is_within(path, place) or is_within(place, path) for place in writable)}
    for path in found:
        if any(is_within(place, path) for place in writable):
            raise InvalidRequest(
                f"In a sandbox the agent could change {path}, which runs outside: work in another directory."
            )
        if realpath(path) != path:
            raise InvalidRequest(
                f"In a sandbox the agent could replace {path}, which programs outside obey: "
                "it is reached by a symbolic link."
            )
    return sorted(found)
