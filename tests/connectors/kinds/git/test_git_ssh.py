"""Of the connector to a git repository over SSH, against git itself behind a real SSH server on loopback."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import PrivateFormat
from jsonschema import Draft202012Validator
from twisted.conch.ssh.common import MP, NS, getNS
from twisted.conch.ssh.keys import Key
from twisted.conch.ssh.transport import SSHClientTransport
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase, TestCase
from zope.interface import implementer

from aileron.base.json import JSON
from aileron.connectors import KindTable, make_schema, system_transport
from aileron.connectors._schema import read_file
from aileron.connectors._screened import Screened
from aileron.connectors.kinds.git import GitConnector, GitSpec, SshTransport
from aileron.credentials import CredentialUse, SshKey, no_exchange
from aileron.model.connectors import READ, Finding, Outcome, Request, Sought
from aileron.model.errors import AileronError, BindingFailed
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization, Scope
from aileron.testing import MemoryCredential
from tests.connectors.kinds.git.test_git_server import LONG_AGO, _running_reactor
from tests.connectors.repository import Pair, git
from tests.connectors.service import NOW
from tests.connectors.sshhost import SshHost, new_key, private, public

FILE = """
[connector]
name = "local://me/site"
version = "1.0.0"
kind = "git"
base_url = "ssh://git@127.0.0.1:{port}/site.git"
hosts = ["127.0.0.1:{port}"]
private_network = true

[credential]
kind = "ssh_key"

[git]
repository = "{path}"
branches = ["main", "agent/*"]
host_key = "{host_key}"
"""
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"


@implementer(ICredential)
@define
class KeyCredential:
    """A private key as the vault hands it out."""

    kept: bytes

    async def reveal(self) -> bytes:
        """Reveal nothing."""
        raise BindingFailed("It is for no header.")

    async def authorize(self, request: Request) -> Authorization:
        """Hand out the key."""
        use = CredentialUse(Scope((), request.url, "", "{key}"), self.kept, lambda _: None, lambda: NOW, no_exchange)
        return await SshKey().authorize(use, request)

    async def make_ready(self) -> None:
        """It is."""

    async def refused(self, sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        """Another there is not."""
        return False

    def accepted(self, sent: Authorization) -> None:
        """That is as it should be."""


def _speaking(said: bytes, heard: list[bytes]) -> Factory:
    """Make a server that says this, and notes what it hears."""

    class Speaker(Protocol):
        """The server's side of one connection."""

        def connectionMade(self) -> None:
            assert self.transport is not None
            self.transport.write(said)

        def dataReceived(self, data: bytes) -> None:
            heard.append(data)

    return Factory.forProtocol(Speaker)


def _packet(payload: bytes) -> bytes:
    """Make a packet of SSH, before there are keys (RFC 4253, 6)."""
    padding = 16 - (len(payload) + 5) % 8
    return (len(payload) + 1 + padding).to_bytes(4) + bytes([padding]) + payload + bytes(padding)


class SshTests(TestCase):
    """A repository, its remote, and an SSH server for it."""

    def setUp(self) -> None:
        self.pair = Pair.made(Path(self.mktemp()).absolute())
        self.serve(SshHost(self.pair.bare.parent))
        self.addCleanup(deferLater, _running_reactor(), 0.05)
        self.logged: list[str] = []
        observe: Any = lambda event: self.logged.append(str(event))  # noqa: E731
        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        self.old = git(self.pair.work, "rev-parse", "HEAD")
        self.new = self.pair.commit("src/a.txt", "one\ntwo\n", "Add a file")

    def serve(self, host: SshHost) -> None:
        """Let this be the server, and its client's key ours."""
        self.listen(host)
        self.host, self.key = host, private(host.client_key)

    def listen(self, factory: Factory) -> None:
        """Let it answer at the remote's address."""
        listening = _running_reactor().listenTCP(0, factory, interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        self.port = listening.getHost().port

    def connector(self, host_key: str = "", own_ports: tuple[int, ...] = ()) -> Screened:
        """The connector, as the daemon makes it."""
        reactor = _running_reactor()
        key = host_key or public(self.host.host_key)
        text = FILE.format(port=self.port, path=self.pair.work, host_key=key)
        spec = read_file(text.encode(), "site.toml").spec
        assert isinstance(spec, GitSpec), spec
        assert spec.host_key is not None
        transport = SshTransport(system_transport(reactor, lambda: own_ports).opener, spec.host_key)
        return Screened(GitConnector(spec=spec, transport=transport, clock=reactor, now=lambda: NOW))

    @property
    def base_url(self) -> str:
        """The remote's."""
        return f"ssh://git@127.0.0.1:{self.port}/site.git"

    def send(self, operation: str, host_key: str = "", seconds: float = 20, **inputs: JSON) -> Deferred[Outcome]:
        """Send one, with the key."""
        connector = self.connector(host_key)
        request = connector.prepare(operation, inputs, self.base_url, "effect-1")
        send = connector.read if request.effect == READ else connector.invoke
        return Deferred.fromCoroutine(send(request, KeyCredential(self.key), seconds))

    def push(self, host_key: str = "", seconds: float = 20) -> Deferred[Outcome]:
        """Push C{main}."""
        return self.send("push", host_key, seconds, branch="main", commit=self.new, expected=self.old)

    def look(self) -> Deferred[Finding]:
        """Look for a push of long ago."""
        inputs = {"branch": "main", "commit": self.new, "expected": self.old}
        sought = Sought("push", inputs, self.base_url, "effect-1", LONG_AGO, LONG_AGO)
        return Deferred.fromCoroutine(self.connector().reconcile(sought, KeyCredential(self.key), 10))

    def check_not_done(self, outcome: Outcome, why: str) -> None:
        """It failed, surely, and says why."""
        assert outcome.fault is not None
        self.assertIn(why, outcome.fault.message)
        self.assertFalse(outcome.sent)
        self.assertEqual(self.pair.remote(), self.old)

    async def test_push(self) -> None:
        """A push arrives whole through a narrow window; a second one fails, since the branch has moved."""
        for number in range(30):
            self.new = self.pair.commit(f"deep/{number}/b.bin", bytes([number]) * 9000, f"Add {number}")
        self.new = self.pair.commit("random.bin", new_key().blob() * 2000, "Add much")
        outcome = await self.push()
        self.assertEqual(outcome.output, {"ref": "refs/heads/main", "old": self.old, "new": self.new}, outcome)
        self.assertEqual(self.pair.remote(), self.new)
        git(self.pair.bare, "fsck", "--strict")
        self.assertEqual(set(self.host.commands), {"git-receive-pack '/site.git'"})
        again = await self.push()
        assert again.fault is not None
        self.assertIn("Nothing was changed", again.fault.message)

    async def test_reads(self) -> None:
        """The preview, the remote's branch and its refs are read as they are over HTTP."""
        compared = await self.send("compare", branch="main", commit="main")
        assert isinstance(compared.output, Mapping), compared
        self.assertEqual((compared.output["expected"], compared.output["commit"]), (self.old, self.new))
        one = await self.send("remote_branch", branch="main")
        self.assertEqual(one.output, {"ref": "refs/heads/main", "commit": self.old})
        refs = await self.send("refs")
        assert isinstance(refs.output, Mapping), refs
        self.assertIn(one.output, refs.output["refs"])
        self.assertEqual(self.host.commands[-1], "git-upload-pack '/site.git'")

    async def test_branches(self) -> None:
        """Branches are made and deleted."""
        await self.send("create_branch", branch="agent/a", commit=self.new)
        self.assertEqual(self.pair.remote("refs/heads/agent/a"), self.new)
        await self.send("delete_branch", branch="agent/a", expected=self.new)
        self.assertIsNone(self.pair.remote("refs/heads/agent/a"))

    async def test_ecdsa(self) -> None:
        """Keys of both sides may be ECDSA."""
        self.serve(SshHost(self.pair.bare.parent, host_key=new_key("ecdsa"), client_key=new_key("ecdsa")))
        self.assertIsNone((await self.push()).fault)
        self.assertEqual(self.pair.remote(), self.new)

    async def test_rsa(self) -> None:
        """Keys of both sides may be RSA, in PEM too; both sign with SHA-2, by what the server names if it names any."""
        server, client = new_key("rsa"), new_key("rsa")
        for names, algorithm in ((None, b"rsa-sha2-512"), (b"ssh-rsa,rsa-sha2-256", b"rsa-sha2-256")):
            self.serve(SshHost(self.pair.bare.parent, host_key=server, client_key=client, names=names))
            self.key = private(client, PrivateFormat.TraditionalOpenSSL)
            refs = await self.send("refs")
            self.assertIsNone(refs.fault, names)
            self.assertEqual(getNS(self.host.logins[0][1:])[0], algorithm)
            signature = getNS(self.host.logins[0][1:], 3)[2]
            self.assertEqual(getNS(signature)[0], algorithm)

    async def test_sha1(self) -> None:
        """A server that signs with SHA-1 is offered no key, and one that takes nothing else gets no such signature."""
        server = new_key("rsa")
        self.serve(SshHost(self.pair.bare.parent, host_key=server, downgrades=True))
        self.check_not_done(await self.push(), "cannot read")
        self.assertEqual((self.host.logins, self.host.commands), ([], []))
        self.serve(SshHost(self.pair.bare.parent, host_key=server, client_key=new_key("rsa"), names=b"ssh-rsa"))
        self.key = private(self.host.client_key)
        await self.send("refs")
        self.assertEqual(getNS(self.host.logins[0][1:])[0], b"rsa-sha2-512")

    async def test_chosen_prime(self) -> None:
        """A server cannot name a prime for the key exchange, which would be tested for a minute before its host key."""
        ours = SSHClientTransport()
        kinds = (
            b"diffie-hellman-group-exchange-sha256",
            self.host.host_key.sshType(),
            *(ours.supportedCiphers[0],) * 2,
            *(b"hmac-sha2-256",) * 2,
            *(b"none",) * 2,
            *(b"",) * 2,
        )
        begin = bytes([20, *[0] * 16]) + b"".join(map(NS, kinds)) + bytes(5)
        group = bytes([31]) + MP(2**4423 - 1) + MP(2)
        heard: list[bytes] = []
        self.listen(_speaking(b"SSH-2.0-x\r\n" + _packet(begin) + _packet(group), heard))
        began = time.process_time()
        self.check_not_done(await self.push(seconds=1), "")
        self.assertLess(time.process_time() - began, 2)
        self.assertIn(b"curve25519-sha256", b"".join(heard))
        self.assertNotIn(b"diffie-hellman", b"".join(heard))

    async def test_wrong_host(self) -> None:
        """A server with another host key is refused, of the same kind or another, and is offered no key."""
        for key in (new_key(), new_key("ecdsa")):
            outcome = await self.push(public(key))
            self.check_not_done(outcome, "host key" if key.type() == "Ed25519" else "could not be reached")
        self.assertEqual((self.host.logins, self.host.commands), ([], []))

    async def test_stolen_host_key(self) -> None:
        """A server that shows the host key and cannot sign with it is offered no key."""
        self.host.privateKeys = {self.host.host_key.sshType(): new_key()}
        self.check_not_done(await self.push(), "could not be reached")
        self.assertEqual((self.host.logins, self.host.commands), ([], []))

    async def test_no_ssh(self) -> None:
        """A server that speaks something else, or out of turn, is told nothing, and nothing of it is logged."""
        accept = bytes([0, 0, 0, 28, 6, 6]) + NS(b"ssh-userauth") + b"\0" * 10
        for said in (b"HTTP/1.1 200 OK\r\n\r\n" * 400, b"SSH-2.0-x\r\n" + b"\xff" * 99, b"SSH-2.0-x\r\n" + accept):
            heard: list[bytes] = []
            self.listen(_speaking(said, heard))
            self.check_not_done(await self.push(seconds=1), "")
            self.assertNotIn(b"git", b"".join(heard))
        self.assertEqual([each for each in self.logged if "failure" in each], [])

    async def test_wrong_key(self) -> None:
        """A key that the server does not know fails, and nothing was changed."""
        self.key = private(new_key())
        self.check_not_done(await self.push(), "refused the key")
        self.assertTrue(self.host.logins)
        self.assertEqual(self.host.commands, [])

    async def test_no_repository(self) -> None:
        """What the server says of why it refuses is told."""
        self.host.fault = "says_no"
        self.check_not_done(await self.push(), "refused git-receive-pack: ERROR: Repository not found.")

    async def test_dies(self) -> None:
        """A connection that is lost before the update leaves it not done; afterwards it is unknown, and looked for."""
        self.host.fault = "dies_early"
        self.check_not_done(await self.push(), "")
        for fault, happened in (("dies_before", False), ("dies_after", True)):
            self.host.fault = fault
            outcome = await self.push()
            assert outcome.fault is not None
            self.assertEqual((outcome.sent, outcome.classified), (True, False), fault)
            self.host.fault = ""
            self.assertEqual((await self.look()).happened, happened, fault)

    async def test_dies_within(self) -> None:
        """A connection that is lost before the end of the pack has left leaves the push not done."""
        self.new = self.pair.commit("random.bin", b"".join(new_key().blob() for _ in range(2000)), "Add much")
        self.host.fault = "dies_before"
        self.check_not_done(await self.push(), "")
        self.assertTrue(self.host.heard)

    async def test_silent(self) -> None:
        """A server that does not answer in time was sent nothing."""
        self.host.fault = "silent"
        self.check_not_done(await self.push(seconds=0.5), "did not answer")

    async def test_lies(self) -> None:
        """A report on another ref, one that is none, or one without end leaves the update unknown."""
        for body in (b"000eunpack ok\n0017ok refs/heads/other\n0000", b"hello, hello", b"ffff" + b"x" * 18_000_000):
            self.host.fault = body
            outcome = await self.push()
            assert outcome.fault is not None
            self.assertEqual((outcome.sent, outcome.classified), (True, False), body[:20])

    async def test_hook(self) -> None:
        """A hook of the remote's that declines is told, and nothing was changed."""
        hook = self.pair.bare / "hooks" / "update"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        outcome = await self.push()
        assert outcome.fault is not None
        self.assertIn("hook declined", outcome.fault.message)
        self.assertEqual((outcome.classified, self.pair.remote()), (True, self.old))

    async def test_secret(self) -> None:
        """The private key is in no log, no outcome and nothing that the server heard."""
        outcomes = [await self.push(), await self.push()]
        self.key, good = private(new_key()), self.key
        outcomes.append(await self.push())
        outcomes.append(await self.push(public(new_key())))
        told = f"{outcomes} {self.logged} {bytes(self.host.heard)!r} {self.host.logins}"
        for line in (*good.decode().split("\n"), *self.key.decode().split("\n")):
            if line and not line.startswith("-----"):
                self.assertNotIn(line, told)

    async def test_own_port(self) -> None:
        """The daemon's own ports are not connected to."""
        connector = self.connector(own_ports=(self.port,))
        request = connector.prepare("refs", {}, self.base_url, "effect-1")
        outcome = await connector.read(request, KeyCredential(self.key), 5)
        assert outcome.fault is not None
        self.assertIn("may not be connected to", outcome.fault.message)

    async def test_other_credential(self) -> None:
        """A credential of another kind opens no connection."""
        connector = self.connector()
        request = connector.prepare("refs", {}, self.base_url, "effect-1")
        with self.assertRaises(BindingFailed):
            await connector.read(request, MemoryCredential(b"abc"), 5)
        self.assertEqual(self.host.logins, [])

    def test_request(self) -> None:
        """What is shown is the program that runs, and the repository."""
        request = self.connector().prepare("remote_branch", {"branch": "main"}, self.base_url, "effect-1")
        self.assertEqual((request.method, request.url, request.headers), ("git-receive-pack", self.base_url, ()))
        for url in ("ssh://git@other.example/site.git", "https://127.0.0.1/site.git", "ssh://127.0.0.1/site.git"):
            with self.assertRaises(AileronError):
                self.connector().prepare("remote_branch", {"branch": "main"}, url, "effect-1")


class FileTests(SynchronousTestCase):
    """The file of a connector over SSH."""

    def problems(self, old: str = "", new: str = "") -> str:
        """What is wrong with it, once a part is replaced."""
        text = FILE.format(port=22, path="/srv/site", host_key=HOST_KEY)
        self.assertIn(old, text)
        return " ".join(each.message for each in read_file(text.replace(old, new).encode(), "site.toml").problems)

    def test_faults(self) -> None:
        """A host key and a private key are required, and both are for git over SSH alone."""
        self.assertEqual(self.problems(), "")
        text = FILE.format(port=22, path="/srv/site", host_key=HOST_KEY)
        self.assertTrue(Draft202012Validator(make_schema(KindTable())).is_valid(tomllib.loads(text)))
        self.assertIn("ssh-keyscan -t ed25519 127.0.0.1", self.problems(f'host_key = "{HOST_KEY}"', ""))
        self.assertIn("`host_key` must be a public key", self.problems("ssh-ed25519 AAAA", "ssh-ed25519 BAAA"))
        self.assertIn("`host_key` must be a public key", self.problems("ssh-ed25519", "ssh-rsa"))
        rsa = public(new_key("rsa"))
        self.assertEqual(self.problems(HOST_KEY, rsa), "")
        for other in (public(Key(generate_rsa(65537, 1024))), rsa.replace(" AAAA", " "), rsa[:-8], f"{rsa} name"):
            self.assertIn("`host_key` must be a public key", self.problems(HOST_KEY, other))
        self.assertIn("`kind` must be ssh_key", self.problems('"ssh_key"', '"basic"'))
        self.assertIn("must name the user", self.problems("git@", ""))
        self.assertIn("must name the user", self.problems("git@", "git:pass@"))
        self.assertIn("must name the user", self.problems("git@", "-oProxyCommand@"))
        self.assertIn("`base_url` must have a plain path", self.problems("/site.git", "/a'b"))
        self.assertIn("`base_url`", self.problems('kind = "git"', 'kind = "http"'))
        self.assertIn("`host_key` is not a known key", self.problems("ssh://git@127.0.0.1:22", "https://127.0.0.1:22"))
        bindable = '{ default = "ssh://git@127.0.0.1:22/site.git", bindable = true }'
        self.assertIn("must be fixed", self.problems('"ssh://git@127.0.0.1:22/site.git"', bindable))
