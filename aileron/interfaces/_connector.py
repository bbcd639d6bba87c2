"""One connector."""

from __future__ import annotations

from collections.abc import Mapping

from zope.interface import Interface

from aileron.values import JSON, ConnectorDescription, Outcome, Request

from ._credential import ICredential


class IConnector(Interface):
    """Talks to one service.  Only the runner's executor calls L{read} and L{invoke}."""

    def describe() -> ConnectorDescription:
        """What it is.  Pure; always the same value for one instance."""

    def prepare(operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """The request that C{operation} would send.

        Pure: no socket, no clock, no randomness; the same arguments give the same request.

        :param base_url: where to; its host must be one that the connector (or the binding that chose it) allows.
        :param effect_key: minted by the daemon for this run and step; put where the connector declares.
        :raises InvalidRequest: the inputs make no request (missing, of the wrong kind, a dotted path segment, …).
        :raises CapabilityDenied: no such operation, or a host that is not declared.
        """

    async def read(request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Send a request of an operation declared C{read}.

        :raises CapabilityDenied: the operation is not declared C{read}.
        """

    async def invoke(request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Send C{request}, once: never again by itself.

        Opens C{credential} itself, after the host was checked, and closes over nothing of it.  Every failure of the
        service, the network or a limit is an L{Outcome}, with no secret and no URL of the HTTP client in it.
        Cancelling drops the connection and errbacks.

        :param seconds: wall clock; past it the outcome is a C{resource_limit_exceeded} that is not classified.
        :raises BindingFailed, VaultLocked: the credential cannot be opened; nothing was sent.
        """
