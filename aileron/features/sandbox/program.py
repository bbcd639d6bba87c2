"""Builds the sandbox of a connector's program. It has no copy of the repository and no connection to the daemon."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os.path import basename, dirname, isdir

from attrs import field, frozen

from aileron.model.errors import InvalidRequest

from ._git import find_git
from ._protection import find_protected
from ._repository import refuse_inside, tracked_files
from ._tree import Signature, TreeSnapshot, identity_of, read_tree
from .layout import SandboxLayout

_MOST_OPENED = 400
_ENVIRONMENT = "pyvenv.cfg"
_NETWORK = "--unshare-net"


@frozen
class ProgramSandbox:
    """The sandbox of one process.

    :ivar options: the options of bubblewrap.
    :ivar opened: the paths to open, in consecutive descriptors.
    """

    options: tuple[str, ...]
    opened: tuple[str, ...]
    _root: str
    _before: TreeSnapshot = field(repr=False)
    _tracked: frozenset[str] = field(repr=False)
    _identities: Mapping[str, Signature] = field(repr=False)

    def is_current(self) -> bool:
        """Return True if no mounted file was replaced.

        A read-only mount ends when its file is replaced, for example by an editor. Then the program could write the new
        file.
        """
        return all(identity_of(path) == found for path, found in self._identities.items())

    def changes(self) -> tuple[str, ...]:
        """Return the new or changed paths that other programs obey automatically."""
        return self._before.changes(read_tree(self._root), self._tracked)


def build_program_sandbox(
    layout: SandboxLayout, environment: Mapping[str, str], *, network: bool, first_descriptor: int
) -> ProgramSandbox:
    """Build a sandbox in which a program can write only to the layout's root.

    The read-only paths are those of every sandbox (L{find_protected}), the Python environments, which may be on some
    C{PATH}, and the repository itself, which is not copied.

    :param environment: the daemon's environment.
    :param network: True if the program shares the network.
    :param first_descriptor: the first descriptor of the paths that the program's starter opens.
    :raises InvalidRequest: if the root is no directory, or a file that programs outside use cannot be protected.
    """
    root, git = layout.root, find_git(environment)
    if not isdir(root):
        raise InvalidRequest(f"{root}: no such directory.")
    if git is not None:
        refuse_inside(git, root)
    before = read_tree(root)
    tracked = frozenset[str]() if git is None else tracked_files(git, root)
    read_only = find_protected(layout, before, git, environment, also=_environments(root, before))
    opened = layout.mounted(read_only, environment)
    if len(opened) > _MOST_OPENED:
        raise InvalidRequest(
            f"{root} contains more than {_MOST_OPENED} repositories and other directories that must be protected. "
            "Name a smaller directory in the connector's file."
        )
    options = layout.arguments(
        read_only, (), environment, {path: first_descriptor + place for place, path in enumerate(opened)}
    )
    kept = tuple(each for each in options if not (network and each == _NETWORK))
    return ProgramSandbox(kept, tuple(opened), root, before, tracked, {path: identity_of(path) for path in opened})


def _environments(root: str, tree: TreeSnapshot) -> Iterator[str]:
    """Yield the path of each Python environment below the directory C{root}."""
    for path in tree.autorun:
        if basename(path) == _ENVIRONMENT and dirname(path) != root:
            yield dirname(path)
