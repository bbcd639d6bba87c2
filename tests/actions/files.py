"""Action files for the tests of this room."""

from __future__ import annotations

from aileron.actions import parse
from aileron.model.actions import Action

HEAD = """+++
name = "ship-update"
version = "1.0.0"
"""

PIN = """
[[requires.connectors]]
name = "builtin://slack"
version = "1.0.0"
capabilities = ["post_message", "list_channels"]
"""

STEP = """
[[execute]]
id = "post"
connector = "builtin://slack"
op = "post_message"
"""

END = """
+++
# Ship update

Posts an announcement.
"""


def manifest(
    *, head: str = HEAD, pin: str = PIN, inputs: str = "", step: str = STEP, tail: str = "", end: str = END
) -> bytes:
    """A file whose named parts are the given ones and which is otherwise in order."""
    return (head + pin + inputs + step + tail + end).encode()


def action(inputs: str = "", step: str = STEP, tail: str = "") -> Action:
    """The action of such a file."""
    return parse(manifest(inputs=inputs, step=step, tail=tail), "ship-update.md")


def one_input(name: str, kind: str, *lines: str) -> str:
    """One C{[[inputs]]} table."""
    return "\n".join(["[[inputs]]", f'name = "{name}"', f'type = "{kind}"', 'description = "d"', *lines, ""])
