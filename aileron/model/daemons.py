"""The daemons that use one database."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen


@frozen
class ProcessFacts:
    """The facts that a daemon tells about its process. An empty text or 0 means that it is unknown.

    :ivar id: a name of the process that no other process has.
    :ivar host: the name of the machine.
    :ivar pid: the process ID on that machine, or in its container.
    :ivar version: the version of Aileron.
    """

    id: str = ""
    host: str = ""
    pid: int = 0
    version: str = ""


@frozen
class ServingDaemon:
    """A daemon that uses the database.

    :ivar id: the ID as holder of runs. It changes after a lease of the daemon has ended.
    :ivar schema: the version of the tables that the daemon knows, or 0 if unknown.
    :ivar seconds_left: the rest of its lease, negative if the lease has ended. None if the daemon is alone.
    :ivar runs: how many runs that have not ended it holds.
    :ivar own: whether it is the daemon that was asked.
    """

    id: str
    process: ProcessFacts
    schema: int
    started_at: datetime
    seconds_left: float | None
    runs: int
    own: bool
