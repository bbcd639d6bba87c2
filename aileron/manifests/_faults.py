"""The faults of a file, each with its line."""

from __future__ import annotations

from attrs import define, field

from aileron.files import Unreadable
from aileron.toml import Path, Toml
from aileron.values import LoadError, visible

PARSE, VALIDATION, UNREADABLE, DUPLICATE = "parse_error", "validation_error", "unreadable", "duplicate"

MOST_FAULTS = 50
"""No file is reported with more: the list is read by people, and a hostile file must not fill it."""

MOST_CHARACTERS = 400


@define(eq=False)
class ManifestFault(Exception):
    """A file is no action.

    :ivar errors: every fault that was found, in the order of lines; never empty.
    """

    errors: tuple[LoadError, ...]

    def __str__(self) -> str:
        """One line for each fault."""
        return "\n".join(f"{error.file}:{error.line or 1}: {error.message}" for error in self.errors)


@define
class Faults:
    """The faults of one file as they are found.

    :ivar toml: the front matter.
    :ivar offset: how many lines of the file stand before the front matter.
    """

    file: str
    toml: Toml
    offset: int
    found: list[LoadError] = field(factory=list)

    def add(self, path: Path, message: str, kind: str = VALIDATION) -> None:
        """Keep one; its line is that of the nearest key whose line is known."""
        self.found.append(LoadError(kind, message, self.file, self.offset + (self.toml.line(path) or 0)))

    def raise_if_any(self) -> None:
        """Go on only without a fault.

        :raises ManifestFault: with all that were kept.
        """
        if self.found:
            inorder = sorted(self.found, key=lambda error: error.line or 0)
            raise ManifestFault(tuple(inorder[:MOST_FAULTS]))


def unreadable(fault: Unreadable) -> LoadError:
    """Make the fault of a file or directory that is not read."""
    return LoadError(UNREADABLE, fault.problem, fault.path)


def shown(text: str) -> str:
    """C{text} as part of a message: quoted, escaped, cut to a length that a line can hold."""
    return repr(text if len(text) <= 60 else text[:60] + "…")


def brief(text: str) -> str:
    """C{text}, in which foreign words stand, as a message: visible, and cut to what a person or a model reads."""
    whole = visible(text[: MOST_CHARACTERS + 1])
    return whole if len(whole) <= MOST_CHARACTERS else whole[:MOST_CHARACTERS] + "…"
