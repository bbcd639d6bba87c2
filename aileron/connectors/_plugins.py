"""Connectors written in Python: found in named packages alone, their answers searched for the secret."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError
from twisted.plugin import getCache
from zope.interface import implementer
from zope.interface.exceptions import Invalid
from zope.interface.verify import verifyObject

from aileron.base.json import JSON
from aileron.base.load_error import LoadError
from aileron.base.waiting import Interrupted, notes_of
from aileron.model.connectors import ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.errors import AileronError
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer
from aileron.model.interfaces.vault import ICredential
from aileron.model.trust import Candidate
from aileron.model.vault import Authorization
from aileron.redaction import Redactor, secrets_in

from ._files import BOUNDARY, SHIPPED

_Answered = TypeVar("_Answered", Outcome, Finding)


class Broke(Exception):
    """A connector raised what none may raise; of that only the kind is told."""


@implementer(ICredential)
@define
class _Overheard:
    """A credential that remembers what it revealed."""

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
    """Another connector, between which and the rest of the daemon no secret passes back."""

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
        except Exception as error:  # noqa: BLE001  (a stranger's code, and its words may hold anything)
            raised = type(error).__name__
        else:
            return self._echo(overheard).outcome(answered)
        raise Broke(f"{self.describe().fqn} raised {raised}")  # out here, so that the error is not its context

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


@frozen
class FoundPlugin:
    """One connector, or why it is none.

    :ivar file: where it comes from, for people.
    :ivar candidate: what the operator is asked about, where it comes from a file of the user's.
    """

    file: str
    connector: IConnector | None
    problems: tuple[LoadError, ...] = ()
    candidate: Candidate | None = None


def of_package(name: str) -> Iterator[FoundPlugin]:
    """Every plugin of the package C{name}.

    :return: C{missing} where there is no such package, C{malformed} for what is no connector.
    """
    package = _package(name)
    if package is None:
        yield _fault("missing", name, "there is no such package, or it lies in the working directory")
        return
    dropins = getCache(package)
    for module in sorted(each.name for each in iter_modules(package.__path__)):
        if module not in dropins:
            yield _fault("malformed", f"{name}.{module}", "cannot be imported")
            continue
        for plugin in dropins[module].plugins:
            yield _check(f"{name}.{module}.{plugin.name}", plugin.load)


def _package(name: str) -> ModuleType | None:
    try:
        top = find_spec(name.partition(".")[0])
        if top is None or any(_in_working_directory(each) for each in top.submodule_search_locations or [""]):
            return None
        package = import_module(name)
    except (ImportError, ValueError):
        return None
    return package if hasattr(package, "__path__") else None


def _in_working_directory(location: str) -> bool:
    return Path(location).resolve().is_relative_to(Path(os.getcwd()).resolve())


def _check(file: str, load: Callable[[], object]) -> FoundPlugin:
    try:
        plugin = load()
        verifyObject(IConnector, plugin)
        connector: IConnector = IConnector(plugin)
        described: object = connector.describe()
    except Invalid as error:
        return _fault("malformed", file, f"does not provide IConnector: {error}")
    except Exception as error:  # noqa: BLE001  (a stranger's code: whatever it raises, the others load)
        return _fault("malformed", file, f"raises {type(error).__name__}")
    if not isinstance(described, ConnectorDescription):
        return _fault("malformed", file, "describes itself by something else than a ConnectorDescription")
    if described.fqn.startswith(f"{SHIPPED}://"):
        return _fault("malformed", file, f"is named {SHIPPED}://, as only what is shipped may be")
    return FoundPlugin(file, Screened(connector))


def _fault(kind: str, file: str, message: str) -> FoundPlugin:
    return FoundPlugin(file, None, (LoadError(kind, " ".join(message.split()), file, None, BOUNDARY),))
