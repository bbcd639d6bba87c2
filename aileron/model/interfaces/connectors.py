"""Connectors, and the files of the home by which actions use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from zope.interface import Interface

from aileron.base.json import JSON
from aileron.base.load_error import LoadError
from aileron.model.actions import Catalogue
from aileron.model.connectors import ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.trust import Candidate

from .vault import ICredential


class IConnector(Interface):
    """Talks to one service.  Only the runner's executor calls L{read}, L{invoke} and L{reconcile}."""

    def describe() -> ConnectorDescription:
        """Describe it. Pure; always the same value for one instance."""

    def prepare(operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Build the request that C{operation} would send.

        Pure: no socket, no clock, no randomness; the same arguments give the same request.

        :param base_url: where to; its host must be one that the connector (or the binding that chose it) allows.
        :param effect_key: minted by the daemon for this run and step; put where the connector declares.
        :raises InvalidRequest: the inputs make no request (missing, of the wrong kind, a dotted path segment, …).
        :raises CapabilityDenied: no such operation, or a host that is not declared.
        """

    async def read(request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Send a request of an operation declared C{read}.

        :param seconds: wall clock; past it the outcome is a C{resource_limit_exceeded}.
        :raises CapabilityDenied: the operation is not declared C{read}.
        """

    async def invoke(
        request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Send C{request}, once: never again by itself.

        Opens C{credential} itself, after the host was checked, and closes over nothing of it.  Every failure of the
        service, the network or a limit is an L{Outcome}, with no secret and no URL of the HTTP client in it.
        Cancelling drops the connection and errbacks; L{aileron.base.waiting.Interrupted} says what was noted.

        :param seconds: wall clock; what has not begun to leave by then never does, and the outcome is a
            C{resource_limit_exceeded} that was not C{sent}.
        :param late_seconds: how much longer the answer to what has left is waited for; past both the outcome is a
            C{resource_limit_exceeded} that is not classified.
        :raises BindingFailed, VaultLocked: the credential cannot be opened; nothing was sent.
        """

    async def reconcile(sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Look whether an effect happened; sends nothing but reads, and may be called at any time, any number of times.

        Says that it happened only of what it found by the effect key, and that it did not only where the service's
        answer leaves no doubt.  Whatever goes wrong is a finding that nobody can say.  Cancelling as in L{invoke}.

        :param seconds: wall clock of the whole look.
        :raises CapabilityDenied: the operation is not declared C{reconcilable}; nothing was sent.
        :raises BindingFailed, VaultLocked: the credential cannot be opened; nothing was sent.
        """


class IInputNormalizer(Interface):
    """A connector that knows which spellings of an input mean the same to its service.

    A plugin may provide it beside L{IConnector}; every kind of connector that ships with Aileron does.
    """

    def normalize_input(operation: str, name: str, value: JSON) -> JSON:
        """Return the form in which an input is counted for limits, and compared with what was denied.

        Two values with which the service does the same have the same form, such as C{Bob <bob@example.org>} and
        C{bob@example.org}.  A list counts as its elements.  Pure, and never raises: an operation or a name that is
        unknown, or a value that makes no request, is returned as it is.

        :param value: its texts are in NFKC, case-folded, and hold no invisible characters.
        """


class IConnectors(Interface):
    """The registry: every connector by its name."""

    def get(fqn: str) -> IConnector | None:
        """Return the connector, or L{None} where it is missing or did not load (then L{problems} says why)."""

    def descriptions() -> tuple[ConnectorDescription, ...]:
        """All that loaded, by name."""

    def candidates() -> tuple[Candidate, ...]:
        """Return what the user's own files hold, by name: each sound one, in use only if its very digest is trusted.

        What is shipped, or comes of a plugin that the configuration names, is not among them.
        """

    def problems() -> tuple[LoadError, ...]:
        """Return what did not load.

        C{kind} is C{missing}, C{malformed}, C{duplicate} or a parse or validation fault of a file.
        """

    def generation() -> int:
        """Grows whenever what L{get} answers may have changed."""

    def refresh() -> None:
        """Read the home's connector files again; unchanged ones keep their connector."""


class ISandboxes(Interface):
    """Makes sandboxes for the programs of connectors on this machine."""

    def enclose(
        directory: str, network: bool, repository: bool, *, state: str, in_thread: Callable[..., Awaitable[Any]]
    ) -> Any:
        """Return the sandbox (L{Enclosure}) of a program that works in a directory.

        :param network: True if the program reaches the network.
        :param repository: True if the program writes to the whole repository around the directory.
        :param state: Aileron's home, which the program does not see.
        :param in_thread: calls a function with arguments in another thread.
        :raises InvalidRequest: the directory is the user's whole home.
        """


class ICatalogue(Interface):
    """The action files of the home.  This is the one place that loads their bytes."""

    def current() -> Catalogue:
        """Return the directory as it was last read."""

    def refresh() -> Catalogue:
        """Read the directory now; a file whose stat is the same is not read again."""


class IConfigFile(Interface):
    """A file of settings, such as C{config.yaml}: as it is on disk, and whether it is in force."""

    def candidates() -> tuple[Candidate, ...]:
        """Return the file on disk, or nothing if it is missing or invalid."""

    def problems() -> tuple[LoadError, ...]:
        """Return why the file is not in force: it is invalid, untrusted, or trusted only since the daemon started."""
