"""C{aileron package}: connectors and actions that others publish."""

from __future__ import annotations

import click


@click.group()
def package() -> None:
    """Install and update packages of connectors and actions."""
