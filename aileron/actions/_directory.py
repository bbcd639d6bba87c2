"""The catalogue of a directory of action files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from attrs import define, field, frozen
from zope.interface import implementer

from aileron.base.files import Stamp, Unreadable, list_files, printable, read_file
from aileron.base.load_error import LoadError
from aileron.model.actions import Action, Catalogue
from aileron.model.interfaces.connectors import ICatalogue

from ._parse import MAX_FILE_BYTES, ManifestFault, parse, unreadable
from ._tool import with_unique_tool_names

SUFFIX = ".md"


@frozen
class _ReadFile:
    """The action read from one file, or the errors of the file.

    :ivar stamp: device, inode, size and times of the file when it was read. The file is read again if these have
        changed.
    """

    stamp: Stamp | None
    action: Action | None
    errors: tuple[LoadError, ...]


@implementer(ICatalogue)
@define(eq=False)
class DirectoryCatalogue:
    """A catalogue of the action files of one directory. L{refresh} reads the files that changed.

    A file that is not a valid action is reported, and the others load. If two files have actions of one name, the later
    file is reported and left out. Actions with different names and the same tool name get distinct tool names.

    :ivar directory: the path of the directory, which need not exist.
    :ivar generation: the first generation. It must be higher than every generation of earlier processes.
    """

    directory: str
    generation: int
    _entries: Mapping[str, _ReadFile] = field(factory=dict, init=False)
    _catalogue: Catalogue = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._catalogue = Catalogue(self.generation, {})

    def current(self) -> Catalogue:
        return self._catalogue

    def refresh(self) -> Catalogue:
        try:
            stamps = list_files(self.directory, SUFFIX)
        except Unreadable as fault:
            self._entries = {}
            self._catalogue = self._catalogue.updated({}, (unreadable(fault),))
        else:
            self._entries = {path: self._entry(path, stamp) for path, stamp in stamps.items()}
            self._catalogue = self._catalogue.updated(*_choose(self._entries.values()))
        return self._catalogue

    def _entry(self, path: str, stamp: Stamp | None) -> _ReadFile:
        known = self._entries.get(path)
        if known is not None and stamp is not None and known.stamp == stamp:
            return known
        return _load(path, stamp)


def read_actions(directory: str) -> Sequence[Action]:
    """Return the valid actions of a directory. Faults of files are ignored."""
    return tuple(DirectoryCatalogue(directory, 1).refresh().actions.values())


def _load(path: str, stamp: Stamp | None) -> _ReadFile:
    try:
        file = read_file(path, MAX_FILE_BYTES)
    except Unreadable as fault:
        return _ReadFile(stamp, None, (unreadable(fault),))
    try:
        return _ReadFile(file.stamp, parse(file.data, printable(path)), ())
    except ManifestFault as fault:
        return _ReadFile(file.stamp, None, fault.errors)


def _choose(entries: Collection[_ReadFile]) -> tuple[Mapping[str, Action], tuple[LoadError, ...]]:
    """Return the actions by name, the first one of each name, and all errors of files."""
    actions: dict[str, Action] = {}
    errors = [error for entry in entries for error in entry.errors]
    for action in (entry.action for entry in entries if entry.action is not None):
        first = actions.setdefault(action.name, action)
        if first is not action:
            errors.append(_duplicate(action, f"the action `{action.name}` is already in {first.path}"))
    return with_unique_tool_names(actions), tuple(errors)


def _duplicate(action: Action, message: str) -> LoadError:
    return LoadError("duplicate", message, action.path)
