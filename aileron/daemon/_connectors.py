"""Makes a connector of each kind of file, with the daemon's network, threads, processes and sandboxes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from attrs import define, field
from twisted.logger import Logger

from aileron.base.bridge import LoopOnDemand
from aileron.base.json import utc
from aileron.connectors import (
    ApiRelay,
    CommandConnector,
    CommandSpec,
    Enclosure,
    GitConnector,
    GitSpec,
    HttpConnector,
    HttpSessions,
    HttpTransport,
    LocalServers,
    LocalSessions,
    MailConnector,
    MailSpec,
    McpConnector,
    McpSpec,
    Screened,
    Spec,
    SshTransport,
)
from aileron.features import FeatureSet
from aileron.model.errors import Forbidden, NotFound
from aileron.model.interfaces.connectors import IConnector, ISandboxes

from ._process import in_thread

_log = Logger()
_MOST_REPOSITORIES = 2  # read at once, each in a thread
_MOST_TREES = 2  # directories of programs, likewise


@define(slots=False, eq=False)
class ConnectorMaker:
    """Makes connectors for the registry.

    :ivar state: Aileron's home, which no program in a sandbox sees.
    :ivar report: records that the server of a connector asked its API for something while nothing of it executed.
    :ivar environment: the daemon's.
    :ivar features: one of them makes sandboxes.
    """

    reactor: Any
    transport: HttpTransport = field(repr=False)
    state: str
    report: Callable[[str], None] = field(default=lambda _: None, repr=False)
    environment: Mapping[str, str] = field(factory=lambda: os.environ, repr=False)
    features: FeatureSet = field(factory=FeatureSet, repr=False)

    def __call__(self, spec: Spec) -> IConnector:
        """Make one of what a file says."""
        if isinstance(spec, CommandSpec):
            enclose = self.enclose if self.sandbox else None
            return Screened(CommandConnector(spec, self.reactor, self.environment, enclose))
        clock, now = self.reactor, lambda: utc(self.reactor.seconds())
        if isinstance(spec, GitSpec):
            host_key = spec.host_key
            transport = self.transport if host_key is None else SshTransport(self.transport.opener, host_key)
            return Screened(GitConnector(transport, clock, now, self._reading, spec=spec))
        if isinstance(spec, McpSpec):
            return Screened(McpConnector(spec, self._sessions(spec), clock))
        if isinstance(spec, MailSpec):
            return MailConnector(spec, self.transport.opener, clock, now, in_thread(self.reactor))
        return HttpConnector(spec, self.transport, clock, now, in_thread(self.reactor))

    def _sessions(self, spec: McpSpec) -> HttpSessions | LocalSessions:
        if spec.local is None:
            return HttpSessions(self.loop.bridge, self.transport, self.reactor, spec)
        api = spec.local.api
        return LocalSessions(
            spec.description,
            spec.local,
            self.servers.of(spec.description.fqn),
            self.environment,
            self.enclose if self.sandbox else None,
            spec.max_response_bytes,
            ApiRelay(spec.description, api, self.transport, self.reactor, self.report) if api else None,
        )

    @cached_property
    def servers(self) -> LocalServers:
        """The processes of local MCP servers."""
        return LocalServers(self.reactor, self.loop.bridge, self._looking)

    @cached_property
    def loop(self) -> LoopOnDemand:
        """The loop in which the client of MCP servers runs."""
        return LoopOnDemand(self.reactor, "aileron-mcp-client")

    @cached_property
    def _reading(self) -> Any:
        return in_thread(self.reactor, at_once=_MOST_REPOSITORIES)

    @cached_property
    def _looking(self) -> Any:
        return in_thread(self.reactor, at_once=_MOST_TREES)

    @cached_property
    def sandbox(self) -> ISandboxes | None:
        """The sandboxes of this machine, tried once, when the first program is declared; None if it makes none."""
        try:
            return self.features.find_sandboxes(self.reactor, self.environment)
        except (NotFound, Forbidden) as error:
            _log.warn("programs run without a sandbox, and so not without an approval: {why}", why=error.message)
            return None

    def enclose(self, directory: str, network: bool, repository: bool) -> Enclosure:
        """Return the sandbox of a program that works in C{directory}, of which the program writes nothing else.

        :param repository: True if the program writes to the whole repository around the directory.
        :raises InvalidRequest: the directory is the user's whole home.
        """
        if self.sandbox is None:
            raise AssertionError("a program is enclosed only where there are sandboxes")
        found: Enclosure = self.sandbox.enclose(
            directory, network, repository, state=self.state, in_thread=self._looking
        )
        return found
