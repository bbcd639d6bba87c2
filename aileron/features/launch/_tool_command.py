"""Runs a command of the user outside of a sandbox, with its requests to the services of own tools led to the daemon.

Nothing forces the command to use the proxy. It can read everything that the user can read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.address import IPv4Address

from aileron.api.channels.peer import Socket, socket_of
from aileron.features.own_tools.client import OpenedServices
from aileron.features.own_tools.logins import lay_out_logins
from aileron.features.own_tools.trust import lay_out_trust
from aileron.features.sandbox.callers import Address, find_caller
from aileron.features.sandbox.way_out import LOOPBACK, WayOut, https_variables
from aileron.model.errors import Forbidden, InvalidRequest
from aileron.model.tool_claims import ToolCaller

from ._launch import Enclosed
from ._services import SessionServices
from .agent import Agent
from .plan import LaunchPlan
from .registration import Registration

_NO_SERVICE = (
    "No service was named, and config.yaml has none for this directory. Nothing was started. Use --services, such as "
    "--services github."
)
CLAIM = "command"
"""The name of the agent in the sessions of commands."""


def command_agent(command: str) -> Agent:
    """Return the description of a command as an agent, to which nothing is registered.

    :param command: the program's name or path.
    """
    return Agent(
        name=command,
        claim=CLAIM,
        register=lambda _settings, _server, _providers, _directory: Registration(),
        route=lambda _settings, _gateway: Registration(),
        draws=lambda _arguments: False,
        sources=(),
        own=(),
        settings=(),
    )


@frozen
class ToolCommand:
    """Leads the requests of a command to the daemon, by the variables that it gets.

    :ivar reactor: listens on the address of the proxy.
    :ivar services: opens the services and connections of the session.
    :ivar environment: the user's environment.
    :ivar say: shows the user one line.
    """

    reactor: Any
    services: SessionServices
    environment: Mapping[str, str] = field(repr=False)
    say: Callable[[str], object]

    async def open(self, session_id: str) -> Enclosed:
        """Open the services for the session, and return the function that leads a command's requests there.

        :raises InvalidRequest: if the user named no service.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        opened = await self.services.open(session_id, "For the command")
        if opened is None:
            raise InvalidRequest(_NO_SERVICE)
        return partial(self._lead, session_id, opened)

    @contextmanager
    def _lead(self, session_id: str, opened: OpenedServices, plan: LaunchPlan, _url: str) -> Iterator[LaunchPlan]:
        way_out = WayOut(opened.hosts, partial(self.services.dial, session_id), names_callers=True)
        listening = self.reactor.listenTCP(0, way_out.factory(self.reactor, find_own_process), interface=LOOPBACK)
        try:
            with (
                lay_out_trust(opened.certificate, self.environment, self.say) as trust,
                lay_out_logins(opened.variables, opened.hosts, self.environment) as logins,
            ):
                environment = {
                    **opened.replace_credentials(plan.environment),
                    **trust.variables_outside,
                    **logins.variables_outside,
                    **https_variables(listening.getHost().port),
                }
                yield evolve(plan, environment=environment)
        finally:
            listening.stopListening()


def find_own_process(
    client: Address, server: Address, look_up: Callable[[object, object], Socket | None] = socket_of
) -> ToolCaller:
    """Return the process of this user that opened a connection on this machine.

    :param look_up: returns the socket at the far end of a connection, from both ends, or None if it is not found.
    :raises Forbidden: if the connection is of another user, or it is not known whose it is.
    """
    found = look_up(IPv4Address("TCP", *client), IPv4Address("TCP", *server))
    # guard of own tools: no other user of this machine reads with the credential
    #    -> features.launch.test_tool_command.OwnProcessTests.test_other_user
    if found is None or found.uid != os.getuid():
        raise Forbidden("Only processes of yours may use this proxy.")
    return find_caller(os.getpid(), client, server)
