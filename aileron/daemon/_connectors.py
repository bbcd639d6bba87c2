"""Gives the kinds of connector the daemon's network, threads, processes and sandboxes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from attrs import define, field
from twisted.logger import Logger

from aileron.base.bridge import LoopOnDemand
from aileron.connectors import Enclose, Enclosure, HttpTransport, LocalServers, Workshop
from aileron.features import FeatureSet
from aileron.home.stored_contents import StoredContents
from aileron.model.errors import Forbidden, NotFound
from aileron.model.interfaces.connectors import ISandboxes

from ._process import in_thread

_log = Logger()
_MOST_TREES = 2  # directories of programs read at once, each in a thread


@define(slots=False, eq=False)
class ConnectorMaker:
    """Creates, on first use, the resources that connectors share: threads, processes, the asyncio loop and sandboxes.

    :ivar state: Aileron's home, which is hidden from programs in a sandbox.
    :ivar report: a function that records an API request of a connector's server while no run of it executes.
    :ivar environment: the daemon's environment.
    :ivar features: the features, one of which makes sandboxes.
    """

    reactor: Any
    transport: HttpTransport = field(repr=False)
    state: str
    report: Callable[[str], None] = field(default=lambda _: None, repr=False)
    environment: Mapping[str, str] = field(factory=lambda: os.environ, repr=False)
    features: FeatureSet = field(factory=FeatureSet, repr=False)
    _threads: dict[str, Any] = field(init=False, factory=dict)

    @cached_property
    def workshop(self) -> Workshop:
        """The resources from which the kinds of connector build their connectors."""
        contents = StoredContents.of_home(self.state)
        return Workshop(
            self.reactor,
            self.transport,
            self.environment,
            self._in_thread,
            self.find_sandbox,
            self.servers,
            self.loop.bridge,
            self.report,
            contents.read,
            contents.open,
        )

    def find_sandbox(self) -> Enclose | None:
        """Return the function that puts programs into sandboxes, or None if this machine makes none."""
        return self.enclose if self.sandbox else None

    def _in_thread(self, name: str, at_once: int) -> Any:
        """Return a function that calls functions in threads. Calls with one name share a limit."""
        if name not in self._threads:
            self._threads[name] = in_thread(self.reactor, at_once)
        return self._threads[name]

    @cached_property
    def servers(self) -> LocalServers:
        """The processes of local MCP servers."""
        return LocalServers(self.reactor, self.loop.bridge, self._looking)

    @cached_property
    def loop(self) -> LoopOnDemand:
        """The asyncio loop in which the client of MCP servers runs."""
        return LoopOnDemand(self.reactor, "aileron-mcp-client")

    @cached_property
    def _looking(self) -> Any:
        return in_thread(self.reactor, at_once=_MOST_TREES)

    @cached_property
    def sandbox(self) -> ISandboxes | None:
        """The sandboxes of this machine, tested once when the first program is declared.

        If this machine makes none, log the reason, and return None.
        """
        try:
            return self.features.find_sandboxes(self.reactor, self.environment)
        except (NotFound, Forbidden) as error:
            _log.warn("programs run without a sandbox, and so not without an approval: {why}", why=error.message)
            return None

    def enclose(self, directory: str, network: bool, repository: bool) -> Enclosure:
        """Return the sandbox of a program that works in C{directory} and can write nowhere else.

        :param repository: True if the program writes to the whole repository around the directory.
        :raises InvalidRequest: if the directory is the user's whole home.
        :raises AssertionError: if this machine makes no sandboxes.
        """
        if self.sandbox is None:
            raise AssertionError("a program is enclosed only where there are sandboxes")
        found: Enclosure = self.sandbox.enclose(
            directory, network, repository, state=self.state, in_thread=self._looking
        )
        return found
