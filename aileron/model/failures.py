"""Entries in the log about work in the background that failed."""

from __future__ import annotations

from typing import Any

from twisted.logger import Logger
from twisted.python.failure import Failure

from .errors import AileronError, InternalError


def log_failure(log: Logger, text: str, failure: Failure, **fields: Any) -> None:
    """Log that work in the background failed, with its traceback.

    For Aileron's own errors, such as a database that is away, log the reason in one line instead.

    :param text: the text of the entry, with the names of C{fields} in braces.
    """
    error = failure.value
    if isinstance(error, AileronError) and not isinstance(error, InternalError):
        log.error(text + ": {why}", why=error.message, **fields)
    else:
        log.failure(text, failure, **fields)
