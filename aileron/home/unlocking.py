"""The file that says why no key source has unlocked the vault yet, written by the command that started the daemon."""

from __future__ import annotations

import json

from attrs import asdict, frozen

from aileron.base.json import loads_strict
from aileron.model.errors import AileronError

from .paths import Home
from .private_files import atomic_write, read_private


@frozen
class UnlockProblem:
    """The reason why the vault was not unlocked without a person.

    :ivar reason: the reason, as a sentence.
    :ivar tries_again: whether the command that started the daemon tries again by itself.
    :ivar at: the time of the last attempt.
    """

    reason: str
    tries_again: bool
    at: str

    @property
    def sentence(self) -> str:
        """The reason, and whether there is another attempt, for people."""
        again = "Aileron tries again by itself." if self.tries_again else "Aileron does not try again by itself."
        return f"No key source has unlocked the vault. {self.reason} {again}"


def write_unlock_problem(home: Home, problem: UnlockProblem | None) -> None:
    """Store the reason, or remove the file.

    :raises OSError: if it cannot be written.
    """
    if problem is None:
        home.unlocking.unlink(missing_ok=True)
    else:
        atomic_write(home.unlocking, json.dumps(asdict(problem)).encode())


def read_unlock_problem(home: Home) -> UnlockProblem | None:
    """Return the reason, or None if there is none or the file is damaged: it is for information only."""
    try:
        found = loads_strict(read_private(home.unlocking) or b"null")
        if not isinstance(found, dict):
            return None
        return UnlockProblem(str(found["reason"]), found["tries_again"] is True, str(found["at"]))
    except (AileronError, ValueError, KeyError):
        return None
