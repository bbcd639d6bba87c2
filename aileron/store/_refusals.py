"""What callers learn when the database cannot: one class, and no word of what was to be written."""

from __future__ import annotations

from aileron.errors import StoreUnavailable


def refusal(cause: BaseException | None) -> StoreUnavailable:
    """C{cause} as callers may see it: SQLite's name of the error, never its text or parameters."""
    name = getattr(cause, "sqlite_errorname", None) or type(cause).__name__
    return StoreUnavailable(f"The database is not available ({name}).")


def closing() -> StoreUnavailable:
    """The store is being closed."""
    return StoreUnavailable("The database is closing.")


class DatabaseRefused(StoreUnavailable):
    """The file cannot be used by this version; trying again will not help."""

    retriable = False


class NewerDatabase(DatabaseRefused):
    """The file was written by a newer version."""


class ForeignDatabase(DatabaseRefused):
    """The file is no database of ours."""
