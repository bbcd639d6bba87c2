"""C{aileron config}: what the daemon may do beyond what is built in."""

from __future__ import annotations

import click

from .commands import distrust_command, trust_command


@click.group()
def config() -> None:
    """Trust the configuration, config.yaml in your home."""


config.add_command(trust_command("config", "FILE"))
config.add_command(distrust_command("config"))
