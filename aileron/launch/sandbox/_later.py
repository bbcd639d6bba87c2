"""What the user's own programs would run later, outside: an agent reads it in a sandbox, and does not write it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

_IN_PROJECT = (".envrc", ".vscode")
_IN_GIT = ("hooks", "config")
_SUBMODULES = ("modules/*", "modules/*/*")  # a name may have a slash in it


def kept_as_it_is(places: Iterable[str]) -> Iterator[str]:
    """The options of bubblewrap that keep it so in each of C{places}, which can be written otherwise.

    What is not there cannot be kept: see L{absent}.
    """
    for place in dict.fromkeys(places):
        git = Path(place) / ".git"
        if git.is_dir():
            yield from ("--bind", str(git), str(git))  # or it could be moved away, with what is kept in it
        for path in filter(Path.exists, _paths(Path(place))):
            yield from ("--ro-bind", str(path), str(path))


def absent(places: Iterable[str]) -> tuple[Path, ...]:
    """Of the same kind what is not there, and so can be made."""
    return tuple(path for place in dict.fromkeys(places) for path in _paths(Path(place)) if not path.exists())


def make_hooks(places: Iterable[str]) -> None:
    """Have directories for hooks where there is a repository, so that there is something to keep.

    :raises OSError: that cannot be done.
    """
    for place in places:
        git = Path(place) / ".git"
        if git.is_dir():
            (git / "hooks").mkdir(exist_ok=True)


def _paths(place: Path) -> Iterator[Path]:
    yield from (place / name for name in _IN_PROJECT)
    git = place / ".git"
    if not git.is_dir():
        yield git  # none, or a file that says where it is
        return
    modules = (found for pattern in _SUBMODULES for found in sorted(git.glob(pattern)) if _is_repository(found))
    yield from (each / name for each in (git, *modules) for name in _IN_GIT)


def _is_repository(path: Path) -> bool:
    return (path / "HEAD").exists()
