"""Asks for a service's secret, and detects a pasted whole header."""

from __future__ import annotations

from aileron.cli.context import CliContext
from aileron.cli.output import note

_TRIES = 3


def read_secret(cli: CliContext, what: str, descriptor: int | None) -> str:
    """Return the secret. If a whole header was typed, ask again, three times in all.

    :param what: the secret's name, for the prompt.
    :param descriptor: where the secret is read, or None for the terminal.
    :raises InvalidRequest: if there is no terminal, or the input is not text.
    """
    from aileron.credentials import header_problem

    for _ in range(_TRIES - 1):
        given = cli.secret(what, descriptor)
        problem = header_problem(given)
        if problem is None or descriptor is not None:
            return given
        note("The secret {problem}. Nothing was sent; try again.", problem=problem)
    return cli.secret(what, descriptor)
