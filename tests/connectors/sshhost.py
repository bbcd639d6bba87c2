"""An SSH server for a directory of git repositories: Twisted's, which runs git itself, and fails as it is told to."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from twisted.conch.avatar import ConchUser
from twisted.conch.checkers import InMemorySSHKeyDB, SSHPublicKeyChecker
from twisted.conch.ssh.channel import SSHChannel
from twisted.conch.ssh.common import getNS
from twisted.conch.ssh.factory import SSHFactory
from twisted.conch.ssh.keys import Key
from twisted.conch.ssh.userauth import SSHUserAuthServer
from twisted.cred.portal import IRealm, Portal
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import ILogObserver, Logger
from zope.interface import implementer

from tests.connectors.repository import PERSON


@implementer(ILogObserver)
def _ignore(event: Mapping[str, Any]) -> None:
    """Tell nobody."""


_QUIET = Logger(observer=_ignore)
_COMMAND = {"git-receive-pack": "receive-pack", "git-upload-pack": "upload-pack"}


def new_key(kind: str = "ed25519") -> Key:
    """Make a key."""
    if kind == "rsa":
        return Key(generate_rsa(65537, 2048))
    return Key(Ed25519PrivateKey.generate() if kind == "ed25519" else generate_private_key(SECP256R1()))


def private(key: Key, form: PrivateFormat = PrivateFormat.OpenSSH) -> bytes:
    """A key as its file has it."""
    return bytes(key._keyObject.private_bytes(Encoding.PEM, form, NoEncryption()))


class _Downgraded(Key):
    """Signs with SHA-1, whatever it is asked for."""

    def sign(self, data: bytes, signatureType: bytes | None = None) -> bytes:
        return bytes(super().sign(data, b"ssh-rsa"))


def public(key: Key) -> str:
    """The public half in one line, as C{ssh-keyscan} prints it behind the host."""
    return " ".join(key.public().toString("openssh").decode().split()[:2])


@implementer(IRealm)
@define(eq=False, slots=False)
class SshHost(SSHFactory):
    """The server.

    :ivar fault: C{silent}: it never answers a command; C{dies_early}: it hangs up instead of listing;
        C{dies_before}: as soon as an update comes; C{dies_after}: once git has carried it out; C{says_no}: as a host
        that knows no such repository; or what an update is answered with instead.
    :ivar commands: that it was asked to run.
    :ivar logins: the public keys that were offered, before any of them was good.
    :ivar heard: all that clients said to commands.
    :ivar window: how much the server takes before it asks for more.
    :ivar downgrades: the host signs with SHA-1, whatever was agreed on.
    :ivar names: the algorithms for clients' keys that the server names, or nothing.
    """

    root: Path
    host_key: Key = field(factory=new_key)
    client_key: Key = field(factory=new_key)
    fault: str | bytes = ""
    commands: list[str] = field(factory=list)
    logins: list[bytes] = field(factory=list)
    heard: bytearray = field(factory=bytearray)
    window: int = 4096
    downgrades: bool = False
    names: bytes | None = None

    def __attrs_post_init__(self) -> None:
        kind = self.host_key.sshType()
        signs = _Downgraded(self.host_key._keyObject) if self.downgrades else self.host_key
        self.publicKeys, self.privateKeys = {kind: self.host_key.public()}, {kind: signs}
        checker = SSHPublicKeyChecker(InMemorySSHKeyDB({b"git": [self.client_key.public()]}))
        self.noisy = False
        self.portal = Portal(self, [checker])
        host = self

        class Auth(SSHUserAuthServer):
            """Notes what is offered."""

            _log = _QUIET

            def auth_publickey(self, packet: bytes) -> Any:
                """Note it."""
                host.logins.append(packet)
                return super().auth_publickey(packet)

        self.services = {**self.services, b"ssh-userauth": Auth}

    def buildProtocol(self, addr: Any) -> Any:
        """Name the algorithms."""
        protocol: Any = super().buildProtocol(addr)
        send, names = protocol.sendExtInfo, self.names
        protocol.sendExtInfo = lambda told: send([(key, told if names is None else names) for key, told in told])
        return protocol

    def requestAvatar(self, avatarId: Any, mind: Any, *interfaces: Any) -> Any:
        """Let in who has the key."""
        user = ConchUser()
        host = self

        class Session(_Session):
            """One of this host's."""

            serves = host

        user.channelLookup[b"session"] = Session
        return interfaces[0], user, lambda: None


class _Session(SSHChannel):
    name = b"session"
    serves: SshHost
    _log = _QUIET

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **{**more, "localWindow": self.serves.window})
        self.process: Any = None

    @property
    def socket(self) -> Any:
        """Of the whole connection."""
        connection: Any = self.conn
        return connection.transport.transport

    def request_exec(self, data: bytes) -> bool:
        """Run git, and nothing else."""
        command = getNS(data)[0].decode()
        self.serves.commands.append(command)
        name, path = shlex.split(command)
        if self.serves.fault == "silent":
            return True
        if self.serves.fault == "dies_early":
            self.hang_up()
            return True
        if self.serves.fault == "says_no":
            self.socket.reactor.callLater(0, self._refuse)
            return True
        arguments = ["git", _COMMAND[name], str(self.serves.root) + path]
        self.process = self.socket.reactor.spawnProcess(_Git(self), "git", arguments, env=PERSON)
        return True

    def _refuse(self) -> None:
        self.writeExtended(1, b"ERROR: Repository not found.\n")
        self.loseConnection()

    def dataReceived(self, data: bytes) -> None:
        self.serves.heard += data
        if self.serves.fault == "dies_before":
            self.hang_up()
        elif isinstance(self.serves.fault, bytes):
            self.write(self.serves.fault)
        else:
            self.process.write(data)

    def hang_up(self) -> None:
        """Drop the whole connection."""
        self.socket.abortConnection()

    def closed(self) -> None:
        if self.process is not None and self.process.pid:
            self.process.loseConnection()


class _Git(ProcessProtocol):
    def __init__(self, session: _Session) -> None:
        self.session, self.heard = session, 0

    def outReceived(self, data: bytes) -> None:
        if self.session.serves.fault == "dies_after" and b"unpack" in data:
            self.session.hang_up()
        else:
            self.session.write(data)

    def errReceived(self, data: bytes) -> None:
        self.session.writeExtended(1, data)

    def processEnded(self, reason: Any) -> None:
        self.session.loseConnection()
