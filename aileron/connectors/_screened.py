"""Connectors written in Python, their answers searched for the secret like any other's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError
from zope.interface import implementer

from aileron.errors import AileronError
from aileron.interfaces import IConnector, ICredential
from aileron.redaction import Redactor, secrets_in
from aileron.values import JSON, ConnectorDescription, Finding, Outcome, Request, Sought

_Answered = TypeVar("_Answered", Outcome, Finding)


class Broke(Exception):
    """A connector raised what none may raise; of that only the kind is told."""


@implementer(ICredential)
@define
class _Overheard:
    """A credential that remembers what it revealed."""

    credential: ICredential
    revealed: set[bytes] = field(factory=set, repr=False)

    async def reveal(self) -> bytes:
        """See L{ICredential.reveal}."""
        secret = await self.credential.reveal()
        self.revealed.add(secret)
        return secret


@implementer(IConnector)
@frozen
class Screened:
    """Another connector, between which and the rest of the daemon no secret passes back."""

    connector: IConnector

    def describe(self) -> ConnectorDescription:
        """As it describes itself."""
        return self.connector.describe()

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """As it prepares."""
        return self.connector.prepare(operation, inputs, base_url, effect_key)

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Its outcome, without an echo."""
        return await self._screened(lambda heard: self.connector.read(request, heard, seconds), credential)

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Its outcome, without an echo."""
        return await self._screened(
            lambda heard: self.connector.invoke(request, heard, seconds, late_seconds), credential
        )

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Its finding, without an echo."""
        return await self._screened(lambda heard: self.connector.reconcile(sought, heard, seconds), credential)

    async def _screened(
        self, send: Callable[[ICredential | None], Awaitable[_Answered]], credential: ICredential | None
    ) -> _Answered:
        overheard = None if credential is None else _Overheard(credential)
        try:
            answered = await send(overheard)
        except CancelledError:
            raise
        except AileronError as error:
            raise self._cleaned(error, overheard) from None
        except Exception as error:  # noqa: BLE001  (a stranger's code, and its words may hold anything)
            raised = type(error).__name__
        else:
            return self._echo(overheard).outcome(answered)
        raise Broke(f"{self.describe().fqn} raised {raised}")  # out here, so that the error is not its context

    def _cleaned(self, error: AileronError, overheard: _Overheard | None) -> AileronError:
        echo = self._echo(overheard)
        error.message = echo.text(error.message)
        error.details = {echo.text(name): echo.value(detail) for name, detail in error.details.items()}
        return error

    def _echo(self, overheard: _Overheard | None) -> Redactor:
        revealed = () if overheard is None else overheard.revealed
        return Redactor.of(*(each for secret in revealed for each in self._secrets(secret.decode("utf-8", "replace"))))

    def _secrets(self, key: str) -> tuple[str, ...]:
        need = self.describe().credential
        return secrets_in(key, need.format.replace("{key}", key)) if need is not None else (key,)
