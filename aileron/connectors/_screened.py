"""Redacts the secret in a connector's responses before the rest of the daemon receives them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError
from zope.interface import implementer

from aileron.base.json import JSON
from aileron.base.waiting import Interrupted, notes_of
from aileron.model.connectors import ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.errors import AileronError
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization
from aileron.redaction import Redactor, secrets_in

_Answered = TypeVar("_Answered", Outcome, Finding)


class Broke(Exception):
    """The error for an unexpected exception of a connector. It names only the exception's class."""


@implementer(ICredential)
@define
class _Overheard:
    """A credential that also records each secret that it reveals, so that responses can be searched for it."""

    credential: ICredential
    revealed: set[str] = field(factory=set, repr=False, eq=False)

    async def reveal(self) -> bytes:
        secret = await self.credential.reveal()
        self.revealed.add(secret.decode("utf-8", "replace"))
        return secret

    async def authorize(self, request: Request) -> Authorization:
        sent = await self.credential.authorize(request)
        self.revealed.update(sent.secrets)
        return sent

    async def make_ready(self) -> None:
        await self.credential.make_ready()

    async def refused(self, sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        return await self.credential.refused(sent, challenge, operation)

    def accepted(self, sent: Authorization) -> None:
        self.credential.accepted(sent)


@implementer(IConnector, IInputNormalizer)
@frozen
class Screened:
    """A wrapper of a connector that redacts secrets in outcomes, findings and errors."""

    connector: IConnector

    def describe(self) -> ConnectorDescription:
        return self.connector.describe()

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        return self.connector.prepare(operation, inputs, base_url, effect_key)

    def normalize_input(self, operation: str, name: str, value: JSON) -> JSON:
        own = IInputNormalizer(self.connector, None)
        return value if own is None else own.normalize_input(operation, name, value)

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        return await self._screen(lambda heard: self.connector.read(request, heard, seconds), credential)

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        return await self._screen(
            lambda heard: self.connector.invoke(request, heard, seconds, late_seconds), credential
        )

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        return await self._screen(lambda heard: self.connector.reconcile(sought, heard, seconds), credential)

    async def _screen(
        self, send: Callable[[ICredential | None], Awaitable[_Answered]], credential: ICredential | None
    ) -> _Answered:
        overheard = None if credential is None else _Overheard(credential)
        try:
            answered = await send(overheard)
        except CancelledError as ended:
            notes = self._echo(overheard).outcome(Outcome(notes=notes_of(ended))).notes
            raise Interrupted(notes) from None
        except AileronError as error:
            raise self._clean(error, overheard) from None
        except Exception as error:  # noqa: BLE001  (foreign code: its message may contain a secret)
            raised = type(error).__name__
        else:
            return self._echo(overheard).outcome(answered)
        raise Broke(f"{self.describe().name} raised {raised}")  # not in the handler: no context

    def _clean(self, error: AileronError, overheard: _Overheard | None) -> AileronError:
        echo = self._echo(overheard)
        error.message = echo.text(error.message)
        error.details = {echo.text(name): echo.value(detail) for name, detail in error.details.items()}
        return error

    def _echo(self, overheard: _Overheard | None) -> Redactor:
        revealed = () if overheard is None else overheard.revealed
        return Redactor.of(*(each for secret in revealed for each in self._secrets(secret)))

    def _secrets(self, key: str) -> tuple[str, ...]:
        need = self.describe().credential
        return secrets_in(key, need.format.replace("{key}", key)) if need is not None else (key,)
