"""C{aileron demo}: the main job, played in a home that is thrown away."""

from __future__ import annotations

import click

from aileron.cli._surroundings import Surroundings, pass_surroundings


@click.command()
@click.option("--yes", is_flag=True, help="Approve without asking; for scripts.")
@click.option("--no", "refuse", is_flag=True, help="Deny without asking; for scripts.")
@click.pass_context
@pass_surroundings
def demo(around: Surroundings, context: click.Context, yes: bool, refuse: bool) -> None:
    """See the main job in a few seconds.

    An agent asks, you approve, it is done and on record. Everything happens in a private home that is
    removed at the end; nothing leaves this machine.
    """
    from aileron.demo import play

    if yes and refuse:
        raise click.UsageError("Give --yes or --no, not both.")
    context.exit(play(around.environ, answer=True if yes else False if refuse else None))
