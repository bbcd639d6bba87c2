"""Follows symbolic links: where a path leads, and what on the way there could be replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from os.path import dirname, isabs, islink, join, realpath

_MOST_LINKS = 40  # as many as the kernel follows


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
