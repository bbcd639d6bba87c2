"""Decrypts the credential, sends with timeouts, and describes failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, urlencode

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Overdue
from twisted.internet.interfaces import IReactorTime

from aileron.base.addresses import read_origin
from aileron.base.file_bodies import ChangedBody, FileBody
from aileron.credentials import SshKey
from aileron.model.connectors import ConnectorDescription, Request, StoredBody
from aileron.model.errors import (
    BindingFailed,
    BindingRequired,
    CapabilityDenied,
    ExternalApiError,
    InvalidRequest,
    NetworkError,
    ResourceLimitExceeded,
)
from aileron.model.faults import Fault
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization
from aileron.redaction import secrets_in

from ._answer import AddressRefused, Flight, ServiceUnreachable, TooLarge
from ._conversation import HungUp, NotUnderstood, Rejected
from ._decode import show_safely
from ._headers import header_value

T = TypeVar("T")
InThread = Callable[..., Awaitable[Any]]
"""Calls a function with arguments in another thread."""


async def open_credential(
    description: ConnectorDescription,
    request: Request,
    credential: ICredential | None,
    *,
    seconds: float,
    clock: IReactorTime,
) -> Authorization:
    """Decrypt the credential for C{request}, or return an empty authorization if the connector needs none.

    If an error is raised, nothing was sent.

    :raises BindingRequired: if a credential is needed and none was given.
    :raises BindingFailed: if the credential has another kind, is empty, or has characters not allowed in a header.
    :raises NetworkError: if the credential had to be renewed, which took too long or failed.
    :raises VaultLocked: if the vault was locked meanwhile.
    :raises CredentialNeedsYou: if a person must renew the credential first.
    """
    fqn = description.name
    if description.credential is None:
        return Authorization()
    if credential is None:
        raise BindingRequired(f"{fqn} needs a credential, and none is bound to it.")
    opening = Deferred.fromCoroutine(credential.authorize(request))
    try:
        sent = await opening.addTimeout(seconds, clock)
    except Overdue:
        raise NetworkError(f"The credential for {fqn} was not renewed in time; nothing was sent.") from None
    if bool(sent.private_key) != (description.credential.kind == SshKey.name):
        raise BindingFailed(f"The credential bound to {fqn} is of another kind than it asks for.")
    if not _fits(sent):
        raise BindingFailed(f"The credential bound to {fqn} is empty or holds characters that no header may carry.")
    return sent


def _fits(sent: Authorization) -> bool:
    try:
        return all(header_value(value) for _, value in sent.headers) and all(sent.secrets)
    except ValueError:
        return False


def list_secrets(sent: Authorization) -> tuple[str, ...]:
    """Return all secrets in C{sent}, including the decoded parts of HTTP Basic credentials."""
    values = [value for _, value in sent.headers] or [""]
    return tuple(each for key in sent.secrets for value in values for each in secrets_in(key, value))


def with_credential(url: str, sent: Authorization) -> str:
    """Return C{url} with the credential's path prefix after the host and its parameters at the end of the query."""
    if sent.prefix:
        origin = read_origin(url).url
        url = f"{origin}{sent.prefix}{url.removeprefix(origin)}"
    if not sent.query:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(sent.query, quote_via=quote, safe='')}"


_GONE = "The body of the request is not stored any more, or was changed, so nothing was sent. Send it again."


def no_content(_digest: str) -> None:
    """Return None: no content is stored."""


async def open_body(
    open_content: Callable[[str], BinaryIO | None], in_thread: InThread | None, stored: StoredBody
) -> FileBody:
    """Open the file of a stored body, and check its digest.

    :param in_thread: calls a function with arguments in another thread, or None to call it in this one.
    :raises InvalidRequest: if it is not stored, or was changed.
    :raises Forbidden: if the file is not a private file of this user.
    """
    apart = in_thread or _call
    file = await apart(open_content, stored.digest)
    if file is None:
        raise InvalidRequest(_GONE)
    body = FileBody(file, stored.size, stored.digest, apart)
    try:
        await body.check()
    # guard of own tools: a stored body that was changed is not sent
    #    -> connectors.kinds.http.test_forward.StoredTests.test_changed
    except ChangedBody:
        await body.close()
        raise InvalidRequest(_GONE) from None
    except BaseException:
        await body.close()
        raise
    return body


async def _call(work: Callable[..., Any], *args: Any) -> Any:
    return work(*args)


async def wait_in_time(
    work: Deferred[T], clock: IReactorTime, flight: Flight, *, seconds: float, late_seconds: float = 0.0
) -> T:
    """Wait for C{work}. If the request was not sent within C{seconds}, cancel it.

    :param late_seconds: how much longer to wait for the response to a request that was sent.
    :raises Exception: one of L{FAILURES}, if no complete response arrived.
    """

    def give_up() -> None:
        if not flight.sent:
            flight.overdue = True
            work.cancel()

    soon = clock.callLater(seconds, give_up)
    try:
        return await work.addTimeout(seconds + late_seconds, clock)
    finally:
        if soon.active():
            soon.cancel()


FAILURES = (AddressRefused, Overdue, CancelledError, TooLarge, ServiceUnreachable, HungUp, NotUnderstood, Rejected)
"""The errors of sending if no complete response arrived."""


def not_understood(name: str) -> Fault:
    """Return the fault for a response that violates the protocol or the file's declaration."""
    return ExternalApiError(f"{name} returned an answer that the connector cannot read.").fault()


def describe_failure(name: str, error: BaseException, flight: Flight, *, seconds: float, most_bytes: int) -> Fault:
    """Return the fault that describes C{error} to the caller.

    :param error: one of L{FAILURES}.
    :param flight: whether the request was sent.
    :raises CancelledError: if the caller, and not a timeout, cancelled the request.
    """
    if isinstance(error, NotUnderstood | Rejected):
        return _describe_refusal(name, error)
    if isinstance(error, AddressRefused):
        return CapabilityDenied(f"The host of {name} leads to an address that may not be connected to.").fault()
    if isinstance(error, CancelledError) and not flight.overdue:
        raise error
    if isinstance(error, Overdue | CancelledError):
        return ResourceLimitExceeded(f"{name} did not answer within {seconds:g} seconds.").fault()
    if isinstance(error, TooLarge):
        return ResourceLimitExceeded(f"The answer of {name} is larger than {most_bytes} bytes.").fault()
    if flight.sent:
        broken = ExternalApiError(f"{name} closed the connection before sending a complete response.").fault()
        return evolve(broken, retriable=False)
    return NetworkError(f"{name} could not be reached.").fault()


def _describe_refusal(name: str, error: NotUnderstood | Rejected) -> Fault:
    if isinstance(error, NotUnderstood):
        return not_understood(name)
    said = " ".join(each for each in (str(error.code or ""), show_safely(error.text)) if each)
    return evolve(ExternalApiError(error.write_message(name, said and f": {said}")).fault(), retriable=error.may_pass)
