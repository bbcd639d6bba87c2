"""The action files of a home, as the operator checks and writes them from a page."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from aileron.errors import Conflict, Forbidden, InvalidRequest, NotFound, StoreUnavailable
from aileron.home import Home, atomic_write, read_private
from aileron.interfaces import ICatalogue
from aileron.manifests import MAX_FILE_BYTES, ManifestFault, parse
from aileron.values import ActionFile, digest_of_bytes, is_action_name


@frozen
class HomeActionFiles:
    """Checks, reads and writes the action files of one home; it trusts none of them."""

    _home: Home
    _catalogue: ICatalogue

    def check(self, text: str) -> ActionFile:
        """Judge a text as the file of an action."""
        return _judge(text.encode(), "the text")

    def read(self, name: str) -> ActionFile | None:
        """Read the file of an action, sound or not; L{None}: there is none.  No file is parsed that was before."""
        path = self._find(name)
        known = self._catalogue.current().actions.get(name)
        if known is not None:
            return ActionFile(known.text, known.digest, known)
        data = read_private(path, MAX_FILE_BYTES)
        return None if data is None else ActionFile(data.decode("utf-8", "replace"), digest_of_bytes(data), None)

    def write(self, name: str, text: str, before: str | None) -> ActionFile:
        """Write the file of an action, if what is there now has the digest C{before}, or nothing is and it is none."""
        path = self._find(name)
        found, there = _judge(text.encode(), str(path)), read_private(path, MAX_FILE_BYTES)
        if found.action is None:
            problems = [("/text", f"line {fault.line or 1}: {fault.message}") for fault in found.faults]
            raise InvalidRequest.listing("The text has errors. Nothing was saved.", *problems)
        if there is None and found.action.name != name:
            message = "A new file has the name of its action. Nothing was saved."
            raise InvalidRequest.listing(message, ("/text", f"must declare the name {name}"))
        if there == text.encode():
            return found  # an answer that was lost is asked for again
        if before != (None if there is None else digest_of_bytes(there)):
            raise _refuse_changed(there)
        try:
            atomic_write(path, text.encode(), replace=there is not None)
        except FileExistsError:
            raise _refuse_changed(read_private(path, MAX_FILE_BYTES)) from None
        except OSError as error:
            raise StoreUnavailable(f"The file cannot be written: {error.strerror}. Nothing was saved.") from error
        return found

    def _find(self, name: str) -> Path:
        """Find where the action of that name is, or would be, in the directory of actions and nowhere else."""
        if not is_action_name(name):
            raise NotFound("No action can have this name.")
        if self._home.actions.is_symlink():
            raise Forbidden(f"{self._home.actions} is a symbolic link.")
        known = self._catalogue.refresh().actions.get(name)
        return self._home.actions / (f"{name}.md" if known is None else Path(known.path).name)


def _judge(data: bytes, path: str) -> ActionFile:
    text, digest = data.decode("utf-8", "replace"), digest_of_bytes(data)
    try:
        return ActionFile(text, digest, parse(data, path))
    except ManifestFault as fault:
        return ActionFile(text, digest, None, fault.errors)


def _refuse_changed(there: bytes | None) -> Conflict:
    present = None if there is None else digest_of_bytes(there)
    return Conflict("The file was changed since you opened it. Nothing was saved.", {"digest": present})
