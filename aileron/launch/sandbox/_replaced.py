"""Notices what was replaced outside while an agent ran: a mount is gone with the file that it lies on.

So an editor of the user's, or C{git checkout}, may open to the agent what it was not to write.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

_MOST_HELD = 256  # descriptors


@contextmanager
def noticed(paths: Iterable[str]) -> Iterator[Callable[[], tuple[str, ...]]]:
    """What tells which of these paths lead to something else than when this began.

    A descriptor of each of the first keeps the kernel from giving its inode to what comes in its place.
    """
    before = {path: _inode(path) for path in paths}
    with ExitStack() as held:
        for path in list(before)[:_MOST_HELD]:
            held.callback(os.close, os.open(path, os.O_PATH | os.O_NOFOLLOW))
        yield lambda: tuple(path for path, inode in before.items() if _inode(path) not in (inode, None))


def _inode(path: str) -> tuple[int, int] | None:
    """Where a file lies; L{None}: there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
