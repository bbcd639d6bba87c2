"""The contract of a kind of connector, and the parts that the daemon provides to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, BinaryIO, Generic, Protocol, TypeVar

from attrs import field, frozen

from aileron.base.json import JSON, utc
from aileron.base.load_error import LoadError
from aileron.base.tables import FileFaults, FileTable
from aileron.model.connectors import ConnectorDescription, Operation, Request
from aileron.model.interfaces.connectors import IConnector

from ._files import ConnectorFile
from ._operations import Identity
from ._sending import InThread, no_content
from ._transport import HttpTransport


class DeclaredOperation(Protocol):
    """An operation as a connector file declares it."""

    @property
    def operation(self) -> Operation:
        """The description of the operation for the rest of the program."""

    @property
    def inputs(self) -> frozenset[str]:
        """The names of the operation's inputs, or an empty set if the file does not declare them."""


class Spec(Protocol):
    """The content of a connector file. Each kind has a class of its own."""

    @property
    def description(self) -> ConnectorDescription:
        """The description of the connector."""

    @property
    def operations(self) -> Mapping[str, DeclaredOperation]:
        """The operations that the connector file declares, by name."""


S = TypeVar("S", bound=Spec)


def _no_sandbox() -> None:
    return None


def _no_report(_connector: str) -> None:
    return None


@frozen
class Workshop:
    """The parts of the daemon from which kinds build connectors.

    :ivar reactor: the clock, which also starts processes.
    :ivar transport: sends HTTP. Its C{opener} opens other connections.
    :ivar environment: the daemon's environment variables.
    :ivar threads: returns, for a name and a number, a function that calls functions in at most this number of threads.
        Equal names share their threads. None to use no threads.
    :ivar find_sandbox: returns a function that puts programs into sandboxes, or None if this machine has no sandbox.
    :ivar servers: the processes of local MCP servers, by connector.
    :ivar bridge: starts the event loop of the MCP client at first use.
    :ivar report: records that the server of a connector used its API while no operation of it was executing.
    :ivar read_content: returns the stored content of a digest, for runs whose arguments have only the digest, or None
        if there is none.
    :ivar open_content: opens the file of the stored content of a digest, or returns None if there is none.
    """

    reactor: Any = field(repr=False)
    transport: HttpTransport = field(repr=False)
    environment: Mapping[str, str] = field(factory=dict, repr=False)
    threads: Callable[[str, int], InThread] | None = field(default=None, repr=False)
    find_sandbox: Callable[[], Any] = field(default=_no_sandbox, repr=False)
    servers: Any = field(default=None, repr=False)
    bridge: Any = field(default=None, repr=False)
    report: Callable[[str], None] = field(default=_no_report, repr=False)
    read_content: Callable[[str], bytes | None] = field(default=no_content, repr=False)
    open_content: Callable[[str], BinaryIO | None] = field(default=no_content, repr=False)

    def now(self) -> datetime:
        """Return the current time."""
        return utc(self.reactor.seconds())

    def in_thread(self, name: str, at_once: int = 8) -> InThread | None:
        """Return a function that calls functions in threads, at most C{at_once} of them, or None if there are none.

        :param name: callers with the same name share their threads.
        """
        return None if self.threads is None else self.threads(name, at_once)


class RecordedAnswers(Generic[S]):
    """The reader of a service's recorded answers, in a file next to the connector's."""

    def replay(self, spec: S, document: FileTable) -> Mapping[str, Sequence[str]]:
        """Replay each answer, and add a fault for each difference from the recorded result.

        :return: the outcomes that occurred, by operation.
        """
        raise NotImplementedError

    def find_samples(self, spec: S, base_url: str, recorded: FileFaults) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        """Return a sample call of each operation, with which C{aileron connector prove} tests the connector.

        :param recorded: the file of recorded answers, or an empty one if there is none.
        :return: the samples, and the reason for each operation without one, both by the operation's name.
        """
        raise NotImplementedError


@frozen
class Specimen:
    """A connector file with a sample of each operation that has one.

    :ivar kind: the kind, or None if the file has faults. Then there is no C{spec} either.
    :ivar base_url: the base URL of the service, or an example if a binding must name it.
    :ivar samples: a sample of each operation, by name, in the form of the kind.
    :ivar without: the reason why there is no sample, by operation.
    :ivar problems: the faults of the file and of its recorded answers. If there are any, there are no samples.
    """

    name: str
    spec: Any
    base_url: str = ""
    samples: Mapping[str, Any] = field(factory=dict)
    without: Mapping[str, str] = field(factory=dict)
    problems: tuple[LoadError, ...] = ()
    kind: ConnectorKind[Any] | None = None


class NotMade(Exception):
    """The error of a kind that cannot build a connector. The text ends a sentence that begins with the kind's name."""


class ConnectorKind(Generic[S]):
    """A kind of connector: reads its part of connector files, and builds connectors from them.

    Extend this class, and override L{read}, L{make} and L{schema}, and other methods that the kind supports.
    """

    name: str = ""
    """The C{kind} that connector files name in C{[connector]}."""

    recorded: RecordedAnswers[S] | None = None
    """The reader of recorded answers, if connectors of this kind have such."""

    def read(self, document: FileTable, head: FileTable, identity: Identity) -> S:
        """Return the spec read from a connector file. Add faults to the tables.

        If there are any, the result is not used. Keys and tables that are not read are faults as well: close each table
        that you read, except these two.

        :param document: the whole file.
        :param head: its table C{[connector]}, of which C{name}, C{version}, C{kind} and C{description} were read.
        """
        raise NotImplementedError

    def make(self, spec: S, workshop: Workshop) -> IConnector:
        """Build the connector of a file. Open no sockets, processes or credentials: these belong to its calls.

        If the connector does not redact the secret in every response, wrap it in L{Screened}.
        """
        raise NotImplementedError

    def schema(self) -> Mapping[str, JSON]:
        """Return the JSON Schema of a whole file of this kind."""
        raise NotImplementedError

    def bench(self, specimen: Specimen, bench: Any) -> Any:
        """Build the double of the service for C{aileron connector prove}, or return a clause why there is none.

        :param bench: the clock, the network and the processes of the proof.
        :return: an object described in C{doc/writing-a-kind.md}.
        """
        return f"there is no double of a service for connectors of the kind {self.name}"

    def check(self, file: ConnectorFile, spec: S, note: Callable[[str], None]) -> Sequence[LoadError]:
        """Return faults of a valid file that only C{aileron connector check} searches for.

        :param note: prints a check that could not be made.
        """
        return ()

    def build_request(
        self, spec: S, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str
    ) -> Request | None:
        """Build a request for C{aileron connector try}. Return None if this kind can build requests only for actions.

        :raises AileronError: if no request can be built from the inputs.
        """
        return None
