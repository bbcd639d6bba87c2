"""C{aileron package}: the group of commands for packages."""

from __future__ import annotations

import click


@click.group()
def package() -> None:
    """Install and update packages of connectors and actions."""
