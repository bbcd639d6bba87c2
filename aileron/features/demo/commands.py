"""C{aileron demo}: an agent's call from its request to its record, in a home of its own."""

from __future__ import annotations

import click

from aileron.cli.context import CliContext, pass_cli


@click.command()
@click.option("--yes", is_flag=True, help="Approve without asking; for scripts.")
@click.option("--no", "refuse", is_flag=True, help="Deny without asking; for scripts.")
@click.pass_context
@pass_cli
def demo(cli: CliContext, context: click.Context, yes: bool, refuse: bool) -> None:
    """Try Aileron in a few seconds.

    An agent requests an action, you approve it, it runs and is recorded. Everything happens in a private home that is
    deleted at the end; nothing leaves this machine.
    """
    from aileron.cli.vault.open import browser_command

    from .play import play

    if yes and refuse:
        raise click.UsageError("Use --yes or --no, not both.")
    answer = True if yes else False if refuse else None
    context.exit(play(cli.environ, answer, browser=browser_command(cli.environ) is not None))
