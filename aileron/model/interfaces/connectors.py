"""Interfaces of connectors, of sandboxes, and of the files of the home."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from zope.interface import Interface

from aileron.base.json import JSON
from aileron.base.load_error import LoadError
from aileron.model.actions import Catalogue
from aileron.model.connectors import ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.streams import StreamedAnswer
from aileron.model.trust import Candidate

from .vault import ICredential


class IConnector(Interface):
    """A connector to one service. Only the runner's executor calls L{read}, L{invoke} and L{reconcile}."""

    def describe() -> ConnectorDescription:
        """Return the connector's description. It is pure and constant for one instance."""

    def prepare(operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Return the request that C{operation} would send.

        Pure: it uses no socket, clock or randomness. Equal arguments give equal requests.

        :param base_url: the base URL, whose host the connector (or the binding that set it) must allow.
        :param effect_key: the daemon's key for this run and step. The request contains it where the connector declares.
        :raises InvalidRequest: if the inputs are invalid (missing, of the wrong type, a dotted path segment, …).
        :raises CapabilityDenied: if the operation does not exist, or the host is not declared.
        """

    async def read(request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Send a request of an operation that is declared C{read}.

        :param seconds: the wall-clock limit. If it is exceeded, the outcome is a C{resource_limit_exceeded}.
        :raises CapabilityDenied: if the operation is not declared C{read}.
        """

    async def invoke(
        request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Send C{request} once, without any retry.

        It checks the host, then opens C{credential} and keeps no part of it. Every failure of the service, the network
        or a limit is an L{Outcome} that contains no secret and no URL of the HTTP client. Cancelling drops the
        connection and raises L{aileron.base.waiting.Interrupted} with notes to record, or a plain CancelledError.

        :param seconds: the wall-clock limit for sending. If no byte has left by then, none is sent, and the outcome is
            a C{resource_limit_exceeded} that was not C{sent}.
        :param late_seconds: the further time to wait for the answer to a request that was sent. If it is exceeded, the
            outcome is a C{resource_limit_exceeded} that is not classified.
        :raises BindingFailed, VaultLocked: if the credential cannot be opened. Nothing was sent.
        """

    async def reconcile(sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Check whether an effect happened. It only sends reads, and may be called any number of times.

        The finding is True only if the effect key was found, and False only if the service's answer is certain. In all
        other cases, also after every failure, the finding is None. Cancelling works as in L{invoke}.

        :param seconds: the wall-clock limit of the check.
        :raises CapabilityDenied: if the operation is not declared C{reconcilable}. Nothing was sent.
        :raises BindingFailed, VaultLocked: if the credential cannot be opened. Nothing was sent.
        """


class IStreamingConnector(Interface):
    """A connector that passes on long answers to reads while they arrive. Those with own tools provide it."""

    async def open_read(
        request: Request, credential: ICredential | None, seconds: float, scope: str
    ) -> Outcome | StreamedAnswer:
        """Send a read of an agent's tool, and return its whole answer, or the opened answer if it is long.

        If the service closes a kept connection, the read may be sent twice.

        :param seconds: the time within which the answer must begin. If it is exceeded, the outcome is a
            C{resource_limit_exceeded}.
        :param scope: requests with another scope do not use the same connection.
        :raises CapabilityDenied: if the operation is not declared C{read}.
        """


class IInputNormalizer(Interface):
    """A connector that knows which spellings of an input its service treats as equal.

    A plugin may provide this interface beside L{IConnector}. Every kind of connector that ships with Aileron does.
    """

    def normalize_input(operation: str, name: str, value: JSON) -> JSON:
        """Return the canonical form of an input, for counting against limits and for comparing with denied calls.

        Two values that the service treats as equal have the same form, such as C{Bob <bob@example.org>} and
        C{bob@example.org}.  Each element of a list counts. Pure, and never raises: if the operation or name is
        unknown, or the value is invalid, return the value unchanged.

        :param value: the value. Its texts are in NFKC, case-folded and without invisible characters.
        """


class IConnectors(Interface):
    """The registry: every connector by its name."""

    def get(fqn: str) -> IConnector | None:
        """Return the connector, or None if it is missing or did not load (see L{problems})."""

    def descriptions() -> tuple[ConnectorDescription, ...]:
        """Return the descriptions of all connectors that loaded, by name."""

    def candidates() -> tuple[Candidate, ...]:
        """Return the valid connector files of the user, by name. Each is in use only if its digest is trusted.

        Connectors that ship with Aileron or come from a configured plugin are not included.
        """

    def problems() -> tuple[LoadError, ...]:
        """Return the connectors that did not load, and why.

        C{kind} is C{missing}, C{malformed}, C{duplicate}, or a parse or validation error of a file.
        """

    def generation() -> int:
        """Return a number that grows whenever the result of L{get} may have changed."""

    def refresh() -> None:
        """Read the home's connector files again. Unchanged files keep their connector."""


class ISandboxes(Interface):
    """A factory of sandboxes for the programs of connectors on this machine."""

    def enclose(
        directory: str, network: bool, repository: bool, *, state: str, in_thread: Callable[..., Awaitable[Any]]
    ) -> Any:
        """Return the sandbox (L{Enclosure}) of a program that works in a directory.

        :param network: True if the program reaches the network.
        :param repository: True if the program writes to the whole repository around the directory.
        :param state: Aileron's home, which the program does not see.
        :param in_thread: calls a function with arguments in another thread.
        :raises InvalidRequest: if the directory is the user's whole home.
        """


class ICatalogue(Interface):
    """The action files of the home. Only this catalogue reads their bytes."""

    def current() -> Catalogue:
        """Return the loaded action files, as they were when they were last read."""

    def refresh() -> Catalogue:
        """Read the directory now, and return the new catalogue. Files whose stat is unchanged are not read again."""


class IConfigFile(Interface):
    """A settings file such as C{config.yaml}: its state on disk, and whether it is in force."""

    def candidates() -> tuple[Candidate, ...]:
        """Return the configuration file on disk, for the operator to trust, or nothing if it is missing or invalid."""

    def problems() -> tuple[LoadError, ...]:
        """Return why the file is not in force: it is invalid, untrusted, or trusted only since the daemon started."""
