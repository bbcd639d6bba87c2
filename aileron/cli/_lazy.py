"""A group whose commands are imported when they are asked for: C{aileron version} loads no daemon and no vault."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group that knows its commands by name.

    :param commands_at: for each command the module that has it, and what it is called there, as C{module:name}.
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they were given."""
        return list(self._at)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, and the options; a shell that waits for them is not kept by the imports of all."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name) for name in self._at if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; L{None}: there is no such name."""
        place = self._at.get(cmd_name)
        if place is None:
            return None
        module, name = place.split(":")
        command = getattr(import_module(module, __package__), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{place} is no command")
        return command
