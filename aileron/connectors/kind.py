"""The contract of a kind of connector, and what a kind gets from the daemon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from attrs import field, frozen

from aileron.base.json import JSON, utc
from aileron.base.load_error import LoadError
from aileron.base.tables import FileFaults, FileTable
from aileron.model.connectors import ConnectorDescription, Operation, Request
from aileron.model.interfaces.connectors import IConnector

from ._files import ConnectorFile
from ._operations import Identity
from ._transport import HttpTransport

InThread = Callable[..., Awaitable[Any]]
"""Calls a function with arguments in another thread."""


class DeclaredOperation(Protocol):
    """An operation as a connector file declares it."""

    @property
    def operation(self) -> Operation:
        """Its description for the rest of the program."""

    @property
    def inputs(self) -> frozenset[str]:
        """The names of its inputs, as far as the file says them."""


class Spec(Protocol):
    """The content of a connector file, whatever its kind; kinds have classes of their own."""

    @property
    def description(self) -> ConnectorDescription:
        """The description of the connector."""

    @property
    def operations(self) -> Mapping[str, DeclaredOperation]:
        """Its operations, by name."""


S = TypeVar("S", bound=Spec)


def _no_sandbox() -> None:
    return None


def _no_report(_connector: str) -> None:
    return None


@frozen
class Workshop:
    """The things of the daemon that kinds make connectors with.

    :ivar reactor: has the clock, and starts processes.
    :ivar transport: sends HTTP; its C{opener} opens other connections.
    :ivar environment: the daemon's environment variables.
    :ivar threads: returns what calls functions in at most so many threads at once; calls with one name share them.
        None: there are no threads.
    :ivar find_sandbox: returns what puts programs into sandboxes, or None if this machine makes none.
    :ivar servers: the processes of local MCP servers, by connector.
    :ivar bridge: starts the loop of the client of MCP servers, when it is first needed.
    :ivar report: records that the server of a connector used its API while no operation of it was executing.
    """

    reactor: Any = field(repr=False)
    transport: HttpTransport = field(repr=False)
    environment: Mapping[str, str] = field(factory=dict, repr=False)
    threads: Callable[[str, int], InThread] | None = field(default=None, repr=False)
    find_sandbox: Callable[[], Any] = field(default=_no_sandbox, repr=False)
    servers: Any = field(default=None, repr=False)
    bridge: Any = field(default=None, repr=False)
    report: Callable[[str], None] = field(default=_no_report, repr=False)

    def now(self) -> datetime:
        """Return the time of day."""
        return utc(self.reactor.seconds())

    def in_thread(self, name: str, at_once: int = 8) -> InThread | None:
        """Return what calls functions in other threads, or None if everything runs in one."""
        return None if self.threads is None else self.threads(name, at_once)


class RecordedAnswers(Generic[S]):
    """Reads the recorded answers of a service, which stand in a file beside the connector's."""

    def replay(self, spec: S, document: FileTable) -> Mapping[str, Sequence[str]]:
        """Replay each, and add to the tables what comes out otherwise than recorded.

        :return: the outcomes that were shown, by operation.
        """
        raise NotImplementedError

    def find_samples(self, spec: S, base_url: str, recorded: FileFaults) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Return a sample of each operation, for the bench, and for each without one the reason.

        :param recorded: the file; empty if there is none.
        """
        raise NotImplementedError


@frozen
class Specimen:
    """A connector file with a sample of each operation that has one.

    :ivar kind: None if the file has faults; then there is no C{spec} either.
    :ivar base_url: where it talks to; an example where a binding says.
    :ivar samples: by operation, in the form of the kind.
    :ivar without: by operation, why there is no sample.
    :ivar problems: of the file and of its recorded answers; then there is no sample.
    """

    name: str
    spec: Any
    base_url: str = ""
    samples: Mapping[str, Any] = field(factory=dict)
    without: Mapping[str, str] = field(factory=dict)
    problems: tuple[LoadError, ...] = ()
    kind: ConnectorKind[Any] | None = None


class NotMade(Exception):
    """A kind makes no connector of a file; the text ends the sentence that begins with its name."""


class ConnectorKind(Generic[S]):
    """A kind of connector: reads its part of connector files, and makes connectors of them.

    Extend this class, and override L{read}, L{make} and L{schema}, and of the rest what the kind can do.
    """

    name: str = ""
    """The C{kind} that connector files name in C{[connector]}."""

    recorded: RecordedAnswers[S] | None = None
    """The reader of recorded answers, if connectors of this kind have such."""

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> S:
        """Read a connector file. Add faults to the tables; if there are any, the result is not used.

        Keys and tables that no reader asks for are faults as well: close each table that you read, except these two.

        :param document: the whole file.
        :param head: its table C{[connector]}, of which C{name}, C{version}, C{kind} and C{description} were read.
        """
        raise NotImplementedError

    def make(self, spec: S, workshop: Workshop) -> IConnector:
        """Make the connector of a file. Do nothing else: sockets, processes and credentials are for its calls.

        If the connector does not search every answer for the secret, wrap it in L{Screened}.
        """
        raise NotImplementedError

    def schema(self) -> Mapping[str, JSON]:
        """Return the JSON Schema of a whole file of this kind."""
        raise NotImplementedError

    def bench(self, specimen: Specimen, bench: Any) -> Any:
        """Put a connector on the bench of C{aileron connector prove}, or return in a clause why it cannot be proved.

        :param bench: has the clock, the network and the processes of the proof.
        :return: a rig, as C{doc/writing-a-kind.md} describes it.
        """
        return f"there is no double of a service for connectors of the kind {self.name}"

    def check(self, file: ConnectorFile, spec: S, note: Callable[[str], None]) -> Sequence[LoadError]:
        """Return faults of a valid file that only C{aileron connector check} looks for.

        :param note: prints what could not be checked.
        """
        return ()

    def build_request(
        self, spec: S, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str
    ) -> Request | None:
        """Build a request for C{aileron connector try}, or return None if that works only through an action.

        :raises AileronError: the inputs make no request.
        """
        return None
