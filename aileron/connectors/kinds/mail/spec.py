"""The tables of a connector file of the kind C{mail}: servers, sender, and the operations."""

from __future__ import annotations

from collections.abc import Mapping
from email.headerregistry import Address

from attrs import frozen

from aileron.base.addresses import Origin, bracketed, is_loopback, read_host
from aileron.base.json import JSON
from aileron.base.tables import FileTable
from aileron.connectors._credentials import read_credential
from aileron.connectors._headers import read_line
from aileron.connectors._operations import Identity
from aileron.connectors._spec import BaseSpec
from aileron.credentials import Basic, OAuth2
from aileron.model.connectors import READ, WRITE, ConnectorDescription, Operation, Presentation

from .compose import SHARED, read_mail_address
from .reading import SOUGHT

SEND, DRAFT, SEARCH, MESSAGE, MAILBOXES = "send_mail", "save_draft", "search_mail", "read_mail", "list_mailboxes"

LOGINS = (Basic.name, OAuth2.name)
"""The kinds of credential for a login."""

LOGIN_HEADER = "AUTH"
"""The place of the credential as shown in a review: SMTP's command."""

IMPLICIT, STARTTLS, NONE = "implicit", "starttls", "none"
_SEND_SECONDS, _READ_SECONDS = 60.0, 30.0
_PARTS = {"to": ("to",), "cc": ("cc",), "bcc": ("bcc",), "subject": ("subject",), "body": ("text",)}
_SENDS = Presentation("mail", _PARTS, ("Mail ${in.to}: ${in.subject}", "Mail ${in.to}"))
_DRAFTS = Presentation("mail", _PARTS, ("Draft mail to ${in.to}: ${in.subject}", "Draft mail to ${in.to}"))
_MESSAGE: Mapping[str, JSON] = {"message_id": {"type": "string"}, "saved_in": {"type": ["string", "null"]}}


@frozen
class MailServer:
    """A mail account's SMTP or IMAP server.

    :ivar protocol: C{smtp} or C{imap}.
    :ivar tls: C{implicit}: from the first byte. C{starttls}: requested and required. C{none}: on this machine only.
    """

    protocol: str
    host: str
    port: int
    tls: str

    @property
    def host_and_port(self) -> str:
        """Host and port, as in the connector's list of hosts."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def url(self) -> str:
        """The server's URL, for people to read. It contains no credential."""
        return f"{self.protocol}{'s' if self.tls == IMPLICIT else ''}://{self.host_and_port}"

    @property
    def origin(self) -> Origin:
        """The origin for address checks. Without TLS it must be on loopback."""
        return Origin("http" if self.tls == NONE else "https", self.host, self.port)


@frozen
class MailAccount:
    """A mail account as its file declares it.

    :ivar sender: the sender of messages.
    :ivar user: the login name, if the credential has none.
    :ivar imap: the IMAP server, or None if messages can only be sent.
    :ivar sent: the mailbox of sent messages, if the server marks none.
    :ivar drafts: the mailbox of drafts, if the server marks none.
    :ivar saves: whether sent messages are saved there. Some servers do that by themselves.
    """

    sender: Address
    user: str
    smtp: MailServer
    imap: MailServer | None = None
    sent: str = "Sent"
    drafts: str = "Drafts"
    saves: bool = True

    @property
    def hosts(self) -> tuple[str, ...]:
        """The servers that the credential may be sent to."""
        servers = (self.smtp,) if self.imap is None else (self.smtp, self.imap)
        return tuple(dict.fromkeys(each.host_and_port for each in servers))


@frozen
class MailOperation:
    """An operation of a mail account, and the names of its inputs."""

    operation: Operation
    inputs: frozenset[str]


@frozen
class MailSpec(BaseSpec):
    """The parsed connector file of the kind C{mail}."""

    account: MailAccount
    private_network: bool = False

    @property
    def operations(self) -> Mapping[str, MailOperation]:
        """The operations of the account."""
        return _operations(with_imap=self.account.imap is not None)


def read_mail(document: FileTable, head: FileTable, identity: Identity) -> MailSpec:
    """Return the spec read from the tables of a mail connector's file. Faults are added to the tables."""
    private_network = head.flag("private_network", default=False)
    table = document.optional_table("credential")
    need = read_credential(table, {}, private_network=private_network, header=LOGIN_HEADER, logins=LOGINS)
    account = _read_account(document, private_network=private_network)
    operations = _operations(with_imap=account.imap is not None)
    description = ConnectorDescription(
        *identity,
        base_url=account.smtp.url,
        bindable=False,
        hosts=account.hosts,
        operations={name: each.operation for name, each in operations.items()},
        credential=need,
    )
    return MailSpec(description, account, private_network)


def _read_account(document: FileTable, *, private_network: bool) -> MailAccount:
    mail = document.table("mail", required=True)
    imap = document.optional_table("imap")
    sender = mail.read("from", read_mail_address, Address("", "nobody", "nowhere.invalid"), required=True)
    found = MailAccount(
        smtp=_server(document.table("smtp", required=True), "smtp", private_network=private_network),
        imap=None if imap is None else _server(imap, "imap", private_network=private_network),
        sender=sender,
        user=mail.read("user", read_line, "") or sender.addr_spec,
        sent=mail.read("sent", read_line, "") or "Sent",
        drafts=mail.read("drafts", read_line, "") or "Drafts",
        saves=mail.flag("save_sent", default=True),
    )
    mail.close()
    return found


def _operations(*, with_imap: bool) -> Mapping[str, MailOperation]:
    writes = [_write(SEND, "Sends a message.", _SEND_SECONDS, reconcilable=with_imap)]
    if not with_imap:
        return {SEND: writes[0]}
    writes.append(_write(DRAFT, "Saves a message as a draft.", _READ_SECONDS, reconcilable=True))
    reads = [
        _read(SEARCH, "Finds messages in a mailbox, the newest first.", *SOUGHT),
        _read(MESSAGE, "Reads one message. It stays unread.", "mailbox", "uid"),
        _read(MAILBOXES, "Lists the mailboxes, so it shows whether the connection works."),
    ]
    return {each.operation.name: each for each in (*writes, *reads)}


def _read(name: str, about: str, *inputs: str) -> MailOperation:
    return MailOperation(Operation(name, READ, True, about, _READ_SECONDS, destructive=False), frozenset(inputs))


def _write(name: str, about: str, seconds: float, *, reconcilable: bool) -> MailOperation:
    operation = Operation(
        name,
        WRITE,
        False,
        about,
        seconds,
        reconcilable=reconcilable,
        destructive=False,
        output_schema={"type": "object", "properties": _MESSAGE},
        presentation=_DRAFTS if name == DRAFT else _SENDS,
    )
    return MailOperation(operation, SHARED)


def _server(table: FileTable, protocol: str, *, private_network: bool) -> MailServer:
    host = table.read("host", read_host, "", required=True)
    port = table.integer("port", 1, 65535)
    tls = table.choice("tls", (IMPLICIT, STARTTLS, NONE), IMPLICIT)
    if port is None and "port" not in table.values:
        table.fault("port", "is missing")
    if tls == NONE and host and not (private_network and is_loopback(host)):
        table.fault("tls", "may be none only on this machine, where private_network is declared")
    if tls != NONE and "_" in host:
        table.fault("host", "must have a proper host: no certificate is for a name with an underscore")
    table.close()
    return MailServer(protocol, host, port or 1, tls)
