"""The connector of the kind C{mail}: sends messages by SMTP, and searches and reads mailboxes by IMAP."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import quote

from attrs import evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.comparison import normalize_addresses, normalize_text
from aileron.base.json import JSON, canonical
from aileron.connectors._answer import Flight
from aileron.connectors._connection import ConnectionOpener
from aileron.connectors._conversation import NotUnderstood, Rejected
from aileron.connectors._sending import open_credential
from aileron.connectors._template import problem
from aileron.model.connectors import READ, ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.errors import BindingFailed, CapabilityDenied, NetworkError
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization
from aileron.redaction import Redactor

from .compose import Composed, compose, message_id, read_mail_address
from .imap import ImapSession, quoted, read_number
from .reading import (
    MOST_MESSAGE_BYTES,
    SUMMARY,
    check_mailbox,
    check_number,
    criteria,
    read_message,
    read_search,
    summarize,
)
from .servers import DRAFTS, SENT, MailAttempt, MailServers, Work
from .smtp import Envelope, MailLogin
from .spec import DRAFT, MAILBOXES, MESSAGE, SEARCH, SEND, MailSpec

_METHODS = {SEND: "SEND", DRAFT: "APPEND", SEARCH: "SEARCH", MESSAGE: "FETCH", MAILBOXES: "LIST"}
_FROM, _TO = "MAIL FROM", "RCPT TO"
_DATED = ("Date", "(the time when it is sent)")
_ENVELOPE = re.compile(r"<([\x21-\x3b\x3d\x3f-\x7e]{3,320})>")
_IDENTIFIED = re.compile(rb"^Message-ID: (<[^>\r\n]+>)\r$", re.MULTILINE)
_MOST_UID = 2**32 - 1
_COPY_SECONDS = 20.0
_MOST_MAILBOXES = 500


@implementer(IConnector, IInputNormalizer)
@frozen
class MailConnector:
    """The mail connector of one file.

    :ivar spec: the parsed file.
    :ivar opener: opens connections.
    :ivar clock: measures timeouts.
    :ivar now: returns the time of day, for the Date header.
    :ivar in_thread: calls a function in another thread, or None to parse messages in the reactor's thread.
    """

    spec: MailSpec
    opener: ConnectionOpener = field(repr=False)
    clock: IReactorTime = field(repr=False)
    now: Callable[[], datetime] = field(repr=False)
    in_thread: Callable[..., Awaitable[dict[str, JSON]]] | None = field(default=None, repr=False)

    @property
    def _servers(self) -> MailServers:
        return MailServers(self.spec, self.opener)

    def describe(self) -> ConnectorDescription:
        return self.spec.description

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        description, account = self.spec.description, self.spec.account
        declared = self.spec.find_operation(operation)
        if base_url != description.base_url:
            raise CapabilityDenied(f"{description.name} does not declare the server {base_url}.")
        headers: tuple[tuple[str, str], ...] = ()
        path = ""
        if operation in {SEND, DRAFT}:
            composed = compose(account.sender, inputs, effect_key, for_draft=operation == DRAFT)
            body, headers = composed.content, self._envelope(composed) if operation == SEND else (_DATED,)
        else:
            asked = _read_inputs(operation, inputs)
            body, path = canonical(asked), f"/{quote(str(asked.get('mailbox', '')), safe='')}"
        return Request(
            connector=description.name,
            operation=operation,
            effect=declared.effect,
            idempotent=declared.idempotent,
            method=_METHODS[operation],
            url=self._url(operation) + path,
            headers=headers,
            body=body,
            credential_header=description.credential.header if description.credential else None,
        )

    def normalize_input(self, operation: str, name: str, value: JSON) -> JSON:
        return self.spec.normalize_input(operation, name, value, _read_addresses)

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """List the mailboxes, search a mailbox, or read a message.

        Failures after the credential was opened are returned as an outcome.

        :raises CapabilityDenied: if the operation is not a read, or another connector prepared the request.
        :raises AileronError: if the credential cannot be opened.
        """
        self._check_own(request)
        if request.effect != READ:
            raise CapabilityDenied(f"The operation {request.operation} is not declared as a read.")
        asked: dict[str, JSON] = json.loads(request.body or b"{}")
        works = {SEARCH: self._search, MESSAGE: self._read, MAILBOXES: self._list}

        async def work(login: MailLogin | None, attempt: MailAttempt) -> JSON:
            attempt.flight.sent = True
            return await self._servers.imap(login, lambda session: works[request.operation](session, asked))

        return await self._attempt(request, credential, (seconds, 0.0), work)

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        self._check_own(request)
        if request.effect == READ:
            return await self.read(request, credential, seconds)
        work = self._send(request) if request.operation == SEND else self._draft(request)
        return await self._attempt(request, credential, (seconds, late_seconds), work)

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Search for the message by its Message-ID, in the mailbox of sent messages or drafts.

        If the message is not found, or the search fails, the finding is undecided: the copy may not have been saved, or
        may have been moved.

        :raises CapabilityDenied: if the operation is not reconcilable.
        :raises VaultLocked, BindingFailed, NetworkError: if the credential cannot be opened.
        :raises InvalidRequest: if an input is not valid any more.
        """
        if not self.spec.find_operation(sought.operation).reconcilable:
            raise CapabilityDenied(f"The operation {sought.operation} declares no way to look for its effect.")
        identifier = message_id(sought.effect_key, self.spec.account.sender)
        servers = self._servers

        async def look(session: ImapSession) -> JSON:
            mailbox = await servers.find(session, SENT if sought.operation == SEND else DRAFTS)
            await session.examine(mailbox)
            found = await session.search(b"HEADER Message-ID " + quoted(identifier))
            return {"message_id": identifier, "saved_in": mailbox} if found else None

        async def work(login: MailLogin | None, attempt: MailAttempt) -> JSON:
            attempt.flight.sent = True
            return await servers.imap(login, look)

        request = self.prepare(MAILBOXES, {}, sought.base_url, sought.effect_key)
        outcome = await self._attempt(request, credential, (seconds, 0.0), work)
        if outcome.fault is not None or outcome.output is None:
            return Finding(None, fault=outcome.fault, notes=outcome.notes)
        return Finding(True, outcome.output, notes=outcome.notes)

    # what is done in a session --------------------------------------------------------------

    def _send(self, request: Request) -> Work:
        sender, *recipients = _read_envelope(request)
        content = self._dated(request)
        identifier = _identifier(content)

        async def work(login: MailLogin | None, attempt: MailAttempt) -> JSON:
            await self._servers.submit(Envelope(sender, tuple(recipients), content), login, attempt.flight)
            return {"message_id": identifier, "saved_in": await self._save_copy(content, login)}

        return work

    async def _save_copy(self, content: bytes, login: MailLogin | None) -> str | None:
        """Save a copy of a sent message.

        Return its mailbox, or None if that failed, or the account has no IMAP server or saves copies itself. A failure
        or timeout here does not change the outcome, because the message was sent.
        """
        if not self.spec.account.saves or self.spec.account.imap is None:
            return None
        try:
            saving = self._servers.save(login, SENT, content, Flight())
            return await saving.addTimeout(_COPY_SECONDS, self.clock)
        except Exception:  # noqa: BLE001  (see above)
            return None

    def _draft(self, request: Request) -> Work:
        content = self._dated(request)

        async def work(login: MailLogin | None, attempt: MailAttempt) -> JSON:
            saved_in = await self._servers.save(login, DRAFTS, content, attempt.flight)
            return {"message_id": _identifier(content), "saved_in": saved_in}

        return work

    async def _list(self, session: ImapSession, asked: Mapping[str, JSON]) -> JSON:
        names = sorted(each.name for each in await session.mailboxes() if "noselect" not in each.uses)
        return {"address": self.spec.account.sender.addr_spec, "mailboxes": names[:_MOST_MAILBOXES]}

    async def _search(self, session: ImapSession, asked: Mapping[str, JSON]) -> JSON:
        await session.examine(str(asked["mailbox"]))
        found = await session.search(criteria(asked))
        newest = found[-int(str(asked["limit"])) :]
        summaries = await session.fetch(newest, SUMMARY) if newest else {}
        listed: JSON = [summarize(uid, summaries[uid]) for uid in reversed(newest) if uid in summaries]
        return {"mailbox": asked["mailbox"], "found": len(found), "messages": listed}

    async def _read(self, session: ImapSession, asked: Mapping[str, JSON]) -> JSON:
        uid, mailbox = int(str(asked["uid"])), str(asked["mailbox"])
        await session.examine(mailbox)
        size = (await session.fetch([uid], b"RFC822.SIZE")).get(uid, {}).get(b"RFC822.SIZE")
        if not isinstance(size, bytes) or not size.isdigit():
            raise Rejected(f"the message {uid}: there is none in {mailbox}")
        if read_number(size) > MOST_MESSAGE_BYTES:
            raise Rejected(f"the message {uid}: it has more than {MOST_MESSAGE_BYTES // 1024 // 1024} MiB")
        source = (await session.fetch([uid], b"BODY.PEEK[]")).get(uid, {}).get(b"BODY")
        if not isinstance(source, bytes):
            raise NotUnderstood
        read = read_message(uid, source) if self.in_thread is None else await self.in_thread(read_message, uid, source)
        return {"mailbox": mailbox, **read}

    # what every attempt needs ----------------------------------------------------------------

    async def _attempt(
        self, request: Request, credential: ICredential | None, limits: tuple[float, float], work: Work
    ) -> Outcome:
        """Decrypt the credential, call C{work} with the login, and return the outcome.

        :param limits: the timeout for sending, and the further seconds to wait for the response.
        :raises NetworkError: if opening the credential took all the time.
        :raises AileronError: if the credential cannot be opened.
        """
        description = self.spec.description
        within = min(limits[0], description.operations[request.operation].timeout_seconds)
        until = self.clock.seconds() + within
        sent = await open_credential(description, request, credential, seconds=within, clock=self.clock)
        login = _read_login(sent, self.spec.account.user)
        secrets = (*sent.secrets, login.secret) if login else sent.secrets
        attempt = MailAttempt(description.name, self.clock, Redactor.of(*secrets))
        left = until - self.clock.seconds()
        if left <= 0:
            raise NetworkError(f"The credential for {description.name} was not there in time; nothing was sent.")
        outcome = await attempt.outcome(Deferred.fromCoroutine(work(login, attempt)), left, limits[1])
        if attempt.login_refused and outcome.fault and credential and await credential.refused(sent):
            return evolve(outcome, fault=evolve(outcome.fault, retriable=True))
        return outcome

    def _envelope(self, composed: Composed) -> tuple[tuple[str, str], ...]:
        """Return the SMTP envelope as headers of the request: each with its name and value.

        They are the sender, the recipients, and a mark that stands for the date.
        """
        recipients = ((_TO, f"<{each}>") for each in composed.recipients)
        return ((_FROM, f"<{self.spec.account.sender.addr_spec}>"), *recipients, _DATED)

    def _dated(self, request: Request) -> bytes:
        date = format_datetime(self.now().astimezone(UTC))
        return f"Date: {date}\r\n".encode("ascii") + (request.body or b"")

    def _url(self, operation: str) -> str:
        account = self.spec.account
        return account.smtp.url if operation == SEND or account.imap is None else account.imap.url

    def _check_own(self, request: Request) -> None:
        """Check that this connector prepared the request.

        :raises CapabilityDenied: if another connector prepared the request, or its server is not declared.
        """
        description = self.spec.description
        declared = description.operations.get(request.operation)
        found = (request.connector, request.effect, request.idempotent, request.method)
        if not declared or found != (description.name, declared.effect, declared.idempotent, _METHODS[declared.name]):
            raise CapabilityDenied("The request is not one of this connector.")
        if not f"{request.url}/".startswith(f"{self._url(request.operation)}/"):
            raise CapabilityDenied(f"{description.name} does not declare the server of the request.")


def _read_inputs(operation: str, inputs: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Check the inputs of a read, and return them with defaults.

    :raises InvalidRequest: if an input is unknown, missing or malformed.
    """
    if operation == SEARCH:
        return read_search(inputs)
    for name in inputs:
        if operation == MAILBOXES or name not in {"mailbox", "uid"}:
            raise problem(name, "is unknown to the operation")
    if operation == MAILBOXES:
        return {}
    return {"mailbox": check_mailbox(inputs), "uid": check_number("uid", inputs.get("uid"), _MOST_UID)}


def _read_envelope(request: Request) -> tuple[str, ...]:
    """Return the sender and the recipients of a request.

    :raises CapabilityDenied: if the headers are not an envelope of this connector.
    """
    named = [_ENVELOPE.fullmatch(text) for name, text in request.headers if name in {_FROM, _TO}]
    found = tuple(each[1] for each in named if each is not None)
    if len(found) < 2 or len(found) < len(named) or request.headers[0][0] != _FROM:
        raise CapabilityDenied("The request is not one of this connector.")
    return found


def _identifier(content: bytes) -> str:
    found = _IDENTIFIED.search(content)
    return found[1].decode("ascii") if found else ""


def _read_login(sent: Authorization, user: str) -> MailLogin | None:
    """Read the login from the HTTP header of the credential, or return None if there is none.

    :param user: the login name, if the credential is only a token.
    :raises BindingFailed: if the credential is neither a token nor a name and a password.
    """
    if not sent.headers:
        return None
    scheme, _, value = sent.headers[0][1].partition(" ")
    if scheme == "Bearer":
        return MailLogin(user, value, is_token=True)
    try:
        name, _, password = base64.b64decode(value, validate=True).decode("utf-8").partition(":")
    except ValueError:
        raise BindingFailed("The credential is no name and password.") from None
    return MailLogin(name, password)


def _read_addresses(text: str) -> Iterable[str]:
    """Return the normalized address of C{text}, or else all addresses found in it."""
    try:
        return [normalize_text(read_mail_address(text).addr_spec)]
    except ValueError:
        return normalize_addresses(text)
