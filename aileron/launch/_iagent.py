"""What the launcher must know of an agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen
from zope.interface import Attribute, Interface


@frozen
class McpServer:
    """How the agent is to start C{aileron-mcp}.

    :ivar command: its absolute path.
    :ivar environment: what it needs, the session's token among it.
    """

    command: str
    environment: Mapping[str, str] = field(repr=False)


Register = Callable[[McpServer], Mapping[str, str]]
"""From the server to the variables that make the agent start it."""


class IAgent(Interface):
    """One kind of agent."""

    name: str = Attribute("What the user calls it, and the claim of its sessions.")
    program: str = Attribute("Its executable, to be found on PATH.")
    wait_seconds: int = Attribute("How long one of its tool calls waits for a decision.")

    def prepare(parent: Mapping[str, str]) -> Register:
        """Check what the user has set, before anything is opened or started.

        :param parent: the environment of the launcher.
        :raises InvalidRequest: something there cannot be added to without losing it.
        """
