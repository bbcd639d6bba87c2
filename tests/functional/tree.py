"""Which processes a process has started, and what they were started with (Linux)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs


@attrs.frozen
class Member:
    """One process of a tree.

    :ivar program: the last part of its program's path, or of its script's.
    :ivar environment: empty if this user may not read it.
    """

    pid: int
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def program(self) -> str:
        """What runs, in a word."""
        words = [Path(word).name for word in self.arguments if not word.startswith("-")]
        return words[1] if len(words) > 1 and words[0].startswith("python") else words[0]


def descendants(pid: int) -> Iterator[Member]:
    """Every living process below ``pid``, parents first; it itself is left out."""
    for child in _children(pid):
        if (member := _member(child)) is not None:
            yield member
            yield from descendants(child)


def _children(pid: int) -> list[int]:
    return [int(word) for task in _tasks(pid) for word in _read(task / "children").decode().split()]


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return []


def _member(pid: int) -> Member | None:
    """The process, unless it has ended."""
    arguments = _read(Path(f"/proc/{pid}/cmdline")).decode("utf-8", "replace").split("\0")[:-1]
    if not arguments:
        return None
    return Member(pid, tuple(arguments), _environment(pid))


def _environment(pid: int) -> Mapping[str, str]:
    try:
        pairs = _read(Path(f"/proc/{pid}/environ")).decode("utf-8", "replace").split("\0")
    except PermissionError:
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _read(path: Path) -> bytes:
    """What a file of ``/proc`` holds; nothing when its process has ended."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
