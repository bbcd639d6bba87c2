"""C{aileron completion}: the script that teaches a shell to complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_AILERON_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and names in your shell.

    Into your shell's start file: eval "$(aileron completion bash)", the same with zsh; or, of fish:
    aileron completion fish | source
    """
    scripts = get_completion_class(shell)
    if scripts is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    click.echo(scripts(context.find_root().command, {}, "aileron", _VARIABLE).source())
