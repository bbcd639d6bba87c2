"""Replaces the agent's API key by the key that the operator bound to the provider, and records leaks of that key."""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.addresses import OVERRIDING_HEADERS, PARTIAL_HEADERS, overriding_parameters
from aileron.base.json import utc
from aileron.base.text import visible
from aileron.model.audit import Actor, Event
from aileron.model.errors import BindingFailed, BindingRequired, Forbidden, Unauthorized
from aileron.model.failures import log_failure
from aileron.model.interfaces.store import IBindingFlags
from aileron.model.interfaces.vault import IBindings
from aileron.model.sessions import Session
from aileron.model.vault import Binding, BindingFlag, Scope
from aileron.redaction import SecretFilter

from .values import BASE_URL_VARIABLES, Provider, UpstreamSource

# The client's fields that are removed: its credentials, fields that could change the method, path or destination of the
# request, and the accepted codings. Some servers read "_" in a name as "-".
_CLIENTS_OWN = re.compile(
    rb"\r\n(?:(?:proxy[-_])?authorization|(?:x[-_])?(?:goog[-_])?api[-_]key|ocp[-_]apim[-_]subscription[-_]key"
    rb"|x[-_](?:auth|access|amz[-_]security)[-_]token|x[-_]aileron[-_]gateway[-_]key|cookie2?|accept[-_]encoding"
    rb"|"
    + b"|".join(sorted(each.replace("-", "[-_]").encode() for each in OVERRIDING_HEADERS | PARTIAL_HEADERS))
    + rb"|[!#$%&'*+\-.^_`|~0-9a-z]+[-_](?:url|uri|host|base|override)):[^\r]*",
    re.IGNORECASE,
)


@frozen
class SecretLeak:
    """A response in which a provider sent the key back.

    :ivar kind: the encoding in which the key appeared.
    """

    provider: Provider
    binding: Binding
    session: Session
    kind: str


@frozen
class Injection:
    """The injector of provider keys.

    A key is injected only into model calls of live sessions, and only for the host to which the key is bound.

    :ivar echoed: called with each leak of a key.
    """

    _bindings: IBindings
    _echoed: Callable[[SecretLeak], None]

    async def inject(
        self, head: bytes, provider: Provider, session: Session | None, *, inference: bool
    ) -> tuple[bytes, SecretFilter]:
        """Return the head with the provider's key in it, and the filter for the response.

        :param head: the head that would be sent to the provider without a key.
        :param provider: a provider that has a credential.
        :param session: the session of the request's gateway key.
        :param inference: whether the request calls a model by one of the named routes.
        :raises Unauthorized: if there is no session, or it has ended.
        :raises Forbidden: if the request is no model call, or a parameter overrides its method or path.
        :raises BindingRequired: if the configured binding does not exist.
        :raises BindingFailed: if the key is bound to another host, or cannot be decrypted.
        :raises VaultLocked: if the vault is not unlocked.
        """
        session = _admit(provider, session, inference)
        _refuse_override(head, provider)
        scope = provider.scope()
        binding = self._binding(provider, scope)
        key = await self._bindings.credential(binding, scope).reveal()
        screen = SecretFilter(
            key, provider.name, lambda kind: self._echoed(SecretLeak(provider, binding, session, kind))
        )
        return _with_key(head, scope, key), screen

    def _binding(self, provider: Provider, scope: Scope) -> Binding:
        name = provider.credential or ""
        binding = self._bindings.get(name)
        details = {"binding": name, "connector": provider.fqn}
        if binding is None:
            raise BindingRequired(
                f"There is no binding {name}, whose key is to go to {provider.name}: "
                f"run `aileron credential setup {provider.fqn}`.",
                details,
            )
        if binding.connector != provider.fqn:
            raise BindingFailed(f"The binding {name} is for {binding.connector}, not for {provider.fqn}.", details)
        # guard against attack: a key is sent only to the host that it was bound to
        #    -> test_gateway_key.GatewayKeyTests.test_moved
        if binding.scope != scope:
            raise BindingFailed(
                f"The key of {provider.name} was not bound for {scope.hosts[0]} as it is now set in "
                f"{_name_source(provider)}. If you mean it to go there: `aileron credential rebind {name}`.",
                details,
            )
        return binding


def _admit(provider: Provider, session: Session | None, inference: bool) -> Session:
    # guard against attack: only live sessions get a key -> test_gateway_key.GatewayKeyTests.test_not_put_in
    if session is None or not session.live:
        raise Unauthorized(
            f"Calls of {provider.name} get their key from Aileron in a live session only, and this is none: "
            "start the agent again."
        )
    # guard against attack: only model calls get a key -> test_gateway_key.GatewayKeyTests.test_not_put_in
    if not inference:
        raise Forbidden(f"Aileron puts the key of {provider.name} into model calls only, and this is none.")
    return session


def _refuse_override(head: bytes, provider: Provider) -> None:
    """Check that the query has no parameter that some frameworks read as another method or path.

    :raises Forbidden: if the query has such a parameter.
    """
    query = head[: head.find(b"\r\n")].partition(b"?")[2].partition(b" ")[0].decode("latin-1")
    if query and (name := next(overriding_parameters(query), "")):
        raise Forbidden(
            f"The parameter {visible(name)} would make another request of it: {provider.name} was not called."
        )


def _name_source(provider: Provider) -> str:
    """Return the name of the setting that defines the provider's address, for an error message."""
    if provider.source is UpstreamSource.ENVIRONMENT:
        return BASE_URL_VARIABLES[provider.name]
    return "config.yaml" if provider.source is UpstreamSource.CONFIG else "Aileron's defaults"


def _with_key(head: bytes, scope: Scope, key: bytes) -> bytes:
    value = scope.format.encode("ascii").replace(b"{key}", key)
    # guard against attack: the injected key replaces the client's own credentials
    #    -> test_gateway_key.GatewayKeyTests.test_put_in, instead others = head
    others = _CLIENTS_OWN.sub(b"", head)
    lines = (others[:-4], scope.header.encode("ascii") + b": " + value)
    return b"\r\n".join((*lines, b"accept-encoding: identity", b"", b""))


_log = Logger()


@frozen
class LeakRecorder:
    """Records secret leaks in the background. The store waits for records under way when it closes.

    :ivar ids: returns a new ULID.
    """

    _flags: IBindingFlags
    _clock: IReactorTime
    _ids: Callable[[], str]

    def record_leak(self, echo: SecretLeak) -> None:
        """Start recording a leak in the background. A failure is logged."""
        Deferred.fromCoroutine(self._keep(echo)).addErrback(_note_lost)

    async def _keep(self, echo: SecretLeak) -> None:
        now, name, fqn = utc(self._clock.seconds()), echo.binding.name, echo.provider.fqn
        event = Event(
            self._ids(),
            "secret.echoed",
            now,
            Actor("agent", echo.session.id),
            {"binding": name, "forms": [echo.kind]},
            session_id=echo.session.id,
            connector=fqn,
        )
        reason = f"An answer of {fqn} held this credential."
        await self._flags.put(BindingFlag(name, echo.binding.revision, now, reason), (event,))


def _note_lost(failure: Failure) -> None:
    log_failure(_log, "the leak of a provider's key could not be recorded", failure)
