"""C{aileron package}: connectors and actions that others publish."""

from __future__ import annotations

import click

from .installing import install, sync, uninstall, update


@click.group()
def package() -> None:
    """Install and update packages of connectors and actions."""


for each in (install, update, uninstall, sync):
    package.add_command(each)
