"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from .output import keep_exact

F = TypeVar("F", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")

exact_times = click.option(
    "--utc", is_flag=True, expose_value=False, callback=keep_exact, help="Print exact times in UTC."
)

passphrase_fd = click.option(
    "--passphrase-fd",
    type=click.IntRange(min=0),
    metavar="N",
    help="Read the vault's passphrase from this inherited file descriptor instead of the terminal.",
)

unneeded_passphrase_fd = click.option("--passphrase-fd", type=click.IntRange(min=0), hidden=True)
"""The option of commands that need no login, except with a daemon of an earlier version."""

secret_fd = click.option(
    "--secret-fd", type=click.IntRange(min=0), metavar="N", help="Read the secret from this inherited file descriptor."
)

new_passphrase_fd = click.option(
    "--new-passphrase-fd",
    type=click.IntRange(min=0),
    metavar="N",
    help="Read the new passphrase from this inherited file descriptor instead of the terminal.",
)


def paged(command: F) -> F:
    """Add the options C{--limit} and C{--cursor} to a click command that prints a list page by page."""
    limit = click.option(
        "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of items."
    )
    cursor = click.option("--cursor", metavar="CURSOR", help="Continue after the previous page.")
    return limit(cursor(command))


def filter_query(**filters: str | int | bool | None) -> Mapping[str, str | int | None]:
    """Convert the values of a command's filter options to query parameters for the daemon. None leaves one out."""
    words = {True: "true", False: "false"}
    return {name: words[item] if isinstance(item, bool) else item for name, item in filters.items() if item is not None}
