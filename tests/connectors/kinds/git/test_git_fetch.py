"""Of the files of a tag, fetched from git itself over loopback, and from a remote that sends what it should not."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from hashlib import sha1
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web.server import Site

from aileron.connectors import HostKey, RemoteRepository, ServiceAnswer, SshTransport, system_transport
from aileron.connectors._answer import Flight, OutgoingRequest
from aileron.connectors.kinds.git._history import _entry_head
from aileron.connectors.kinds.git._objects import BLOB, COMMIT, TREE, Damaged, name_object
from aileron.connectors.kinds.git._pack_stream import read_pack
from aileron.model.errors import AileronError
from tests.connectors.kinds.git.test_git_server import _running_reactor
from tests.connectors.repository import GitServer, Pair, git, listed, packets
from tests.connectors.sshhost import SshHost, private, public

NAMED = 7
Entry = tuple[int, bytes] | tuple[int, bytes, str]
URL = "https://git.example/site.git"
_CAPABILITIES = "side-band-64k shallow"


def pack(*entries: Entry, count: int | None = None) -> bytes:
    """A pack of objects as they are given: kind, content, and of a delta the id of its base."""
    parts = [b"PACK\0\0\0\2", (len(entries) if count is None else count).to_bytes(4, "big")]
    for kind, content, *base in entries:
        parts += [_entry_head(kind, len(content)), *map(bytes.fromhex, base), zlib.compress(content)]
    whole = b"".join(parts)
    return whole + sha1(whole, usedforsecurity=False).digest()


def commit(tree: str) -> bytes:
    """A commit of a tree."""
    return f"tree {tree}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n".encode()


def tree(*entries: tuple[bytes, bytes, str]) -> bytes:
    """A tree of entries: mode, name, id."""
    return b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(each)) for mode, name, each in entries)


def number(value: int) -> bytes:
    """A number as a delta begins with it."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def sent(data: bytes, *, shallow: Iterable[bytes] = ()) -> bytes:
    """An answer with a pack."""
    parts = [b"\1" + data[at : at + 65_000] for at in range(0, len(data), 65_000)]
    return packets(*(b"shallow " + each for each in shallow), None, b"NAK\n", *parts, None)


@define
class Remote:
    """A transport to a remote that lists one tag, and answers what a test puts there."""

    name: str
    answer: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    listing: bytes | None = None
    tag: str = "1.0.0"
    silent: bool = False
    asked: list[OutgoingRequest] = field(factory=list)

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Answer at once."""
        self.asked.append(message)
        if self.silent:
            return Deferred()
        if message.body is not None:
            return succeed(ServiceAnswer(self.status, self.headers, self.answer))
        body = listed({f"refs/tags/{self.tag}": self.name, "refs/heads/x": self.name}, "git-upload-pack", _CAPABILITIES)
        headers = {"content-type": "application/x-git-upload-pack-advertisement", **self.headers}
        return succeed(ServiceAnswer(self.status, headers, body if self.listing is None else self.listing))


class HostileRemoteTests(SynchronousTestCase):
    """What a remote may send, and what comes of it."""

    def repository(self, *entries: Entry, **more: Any) -> tuple[RemoteRepository, str]:
        """One that sends these, of which the last is what the tag is at."""
        name = name_object(entries[-1][0], entries[-1][1])
        return RemoteRepository(URL, Remote(name, sent(pack(*entries)), **more), Clock(), private_network=False), name

    def refused(self, *entries: Entry, path: str = "") -> str:
        """Why its files are not taken."""
        repository, name = self.repository(*entries)
        failure = self.failureResultOf(Deferred.fromCoroutine(repository.fetch(name, path)), AileronError)
        return str(failure.value)

    def at_top(self, *entries: tuple[bytes, bytes, str]) -> tuple[Entry, ...]:
        """Objects whose commit has such a tree."""
        top = tree(*entries)
        return (TREE, top), (COMMIT, commit(name_object(TREE, top)))

    def test_files(self) -> None:
        """Files are taken below the path alone; a delta may come before what it differs from."""
        base, blob = b"abc" * 100, b"abc" * 100 + b"d"
        delta = number(300) + number(301) + b"\xb0\x2c\x01" + b"\x01d"
        below = tree((b"100644", b"a.md", name_object(BLOB, blob)))
        top = self.at_top((b"100755", b"b", name_object(BLOB, base)), (b"40000", b"sub", name_object(TREE, below)))
        repository, name = self.repository((NAMED, delta, name_object(BLOB, base)), (BLOB, base), (TREE, below), *top)
        self.assertEqual(self.successResultOf(Deferred.fromCoroutine(repository.tags())), {"1.0.0": name})
        commit_id, files = self.successResultOf(Deferred.fromCoroutine(repository.fetch(name, "sub")))
        self.assertEqual((commit_id, files), (name, {"a.md": blob}))
        self.assertIn("no directory nowhere", self.refused((BLOB, base), (BLOB, blob), *top, path="nowhere"))

    def test_links(self) -> None:
        """A symbolic link, a submodule, and a name that git keeps for itself are refused, whatever else there is."""
        blob = name_object(BLOB, b"/etc/passwd")
        for mode, name, why in (
            (b"120000", b"a", "symbolic link, a"),
            (b"160000", b"vendor", "submodule, vendor"),
            (b"40000", b".git", "malformed"),
            (b"100644", b".GIT", "malformed"),
            (b"100644", b"..", "malformed"),
        ):
            self.assertIn(why, self.refused((BLOB, b"/etc/passwd"), *self.at_top((mode, name, blob))))

    def nested(self, levels: int, width: int) -> str:
        """Why trees are not taken, of which each names the one below it so many times."""
        entries: list[Entry] = [(BLOB, b"x")]
        below, kind = name_object(BLOB, b"x"), b"100644"
        for _ in range(levels):
            level = tree(*((kind, b"%02d" % each, below) for each in range(width)))
            entries.append((TREE, level))
            below, kind = name_object(TREE, level), b"40000"
        return self.refused(*entries, (COMMIT, commit(below)))

    def test_trees(self) -> None:
        """Trees that are too deep, or name each other so often that they never end, are given up early."""
        for levels, width in ((5, 20), (11, 1)):
            self.assertIn("more than 2000 files, or paths that are too long", self.nested(levels, width))

    def test_long_names(self) -> None:
        """A name of a directory that would be repeated for each file in it is refused before that is done."""
        below = tree(*((b"100644", b"%04d" % each, name_object(BLOB, b"x")) for each in range(999)))
        top = self.at_top((b"40000", b"a" * 500_000, name_object(TREE, below)))
        self.assertIn("paths that are too long", self.refused((BLOB, b"x"), (TREE, below), *top))

    def test_silent(self) -> None:
        """A remote that does not answer is given up, and one is never read without a bound."""
        repository, name = self.repository(*self.at_top())
        remote: Any = repository.transport
        remote.silent, clock = True, Clock()
        silent = evolve(repository, clock=clock)
        for asking in map(Deferred.fromCoroutine, (silent.tags(), silent.fetch(name, ""))):
            clock.advance(119)
            self.assertNoResult(asking)
            clock.pump([2, 120])
            self.failureResultOf(asking, AileronError)
        self.assertEqual([each.max_response_bytes // 1024**2 for each in remote.asked], [16, 32])

    def test_missing(self) -> None:
        """A tree or file that was not sent, or is of another type than it is named as, is refused."""
        blob = name_object(BLOB, b"x")
        for entries in (self.at_top((b"100644", b"a", blob)), self.at_top((b"40000", b"a", blob))):
            self.assertIn("damaged, incomplete", self.refused((TREE, b""), *entries))
        self.assertIn("damaged, incomplete", self.refused((BLOB, b"x")))

    def test_answers(self) -> None:
        """What the remote says in place of a pack is told, a redirect with where it leads; nobody follows it."""
        repository, name = self.repository(*self.at_top())
        remote: Any = repository.transport
        for body, status, headers, why in (
            (packets(b"ERR no\x1b such"), 200, {}, "no␛ such"),
            (packets(None, b"NAK\n", b"\3out of memory\n", None), 200, {}, "out of memory"),
            (packets(None, b"NAK\n"), 200, {}, "NAK"),
            (b"<html>", 200, {}, "whole packets"),
            (packets(None, b"NAK\n", *[b"\1"] * 100_000, None), 200, {}, "too many packets"),
            (b"", 301, {"location": "https://evil.example/x"}, "leads to https://evil.example/x. Redirects"),
            (b"", 404, {}, "status 404."),
        ):
            remote.answer, remote.status, remote.headers, asked = body, status, headers, len(remote.asked)
            failure = self.failureResultOf(Deferred.fromCoroutine(repository.fetch(name, "")), AileronError)
            self.assertIn(why, failure.value.message)
            self.assertEqual([each.url for each in remote.asked[asked:]], [f"{URL}/git-upload-pack"])

    def test_lists(self) -> None:
        """A list of refs that is none, or of a server that cannot send one tag alone, is refused."""
        name = "a" * 40
        for listing, why in (
            (b"nonsense", "not expected"),
            (listed({"refs/tags/1": name}, "git-upload-pack", "side-band-64k"), "lacks shallow"),
            (listed({"refs/tags/1": name}, "git-upload-pack", f"{_CAPABILITIES} object-format=sha256"), "SHA-1"),
        ):
            remote = RemoteRepository(URL, Remote(name, listing=listing), Clock(), private_network=False)
            failure = self.failureResultOf(Deferred.fromCoroutine(remote.tags()), AileronError)
            self.assertIn(why, failure.value.message)


class PackTests(SynchronousTestCase):
    """Packs that no git would write, within bounds."""

    def refused(self, data: bytes) -> None:
        """Have it refused."""
        self.assertRaises(Damaged, read_pack, data, lambda: None)

    def test_bounds(self) -> None:
        """An object that says that it is small, one that is large, and too many of them take no memory."""
        lie = pack((BLOB, b"x" * 100))
        short = bytearray(lie)
        short[12] = BLOB << 4 | 9
        short[13:14] = b""
        self.refused(bytes(short[:-20]) + sha1(short[:-20], usedforsecurity=False).digest())
        self.refused(pack((BLOB, bytes(40 * 1024 * 1024))))
        self.refused(pack(*[(BLOB, b"")] * 50_001))
        self.refused(pack(*((BLOB, bytes([each]) * 20_000_000) for each in range(6))))

    def test_delta_bomb(self) -> None:
        """Deltas that double what they differ from, or say that they do, end at the bound."""
        size, base = 1024 * 1024, bytes(1024 * 1024)
        entries: list[Entry] = [(BLOB, base)]
        while size < 2**40:
            copies = b"".join(
                b"\xff" + at.to_bytes(4, "little") + b"\0\0\1" for at in range(0, min(size, 2**21), 2**16)
            )
            entries.append((NAMED, number(size) + number(size * 2) + copies * 2, name_object(BLOB, base)))
            size *= 2
            base = base * 2 if size < 2**26 else base
        self.refused(pack(*entries))

    def test_deltas_that_lead_nowhere(self) -> None:
        """A delta whose base is not there, or leads back to itself, and one by offset, which nobody asked for."""
        delta = number(1) + number(1) + b"\x01y"
        self.refused(pack((NAMED, delta, "a" * 40)))
        self.refused(pack((NAMED, delta, name_object(BLOB, b"y")), (NAMED, delta, name_object(BLOB, b"z"))))
        self.refused(pack((BLOB, b"x"), (6, delta)))

    def test_damaged(self) -> None:
        """A pack that is cut, has more behind its end, or another digest is refused."""
        whole = pack((BLOB, b"x" * 50))
        self.assertEqual(len(read_pack(whole, lambda: None)), 1)
        longer = whole[:-20] + b"more"
        for each in (b"", whole[:20], whole[:-1] + b"?", longer + sha1(longer, usedforsecurity=False).digest()):
            self.refused(each)
        self.refused(pack((BLOB, b"x"), count=2))


class GitTests(TestCase):
    """Git's own servers."""

    def setUp(self) -> None:
        self.pair = Pair.made(Path(self.mktemp()).absolute())
        for each in range(40):
            self.pair.commit("kit/a.md", "line\n" * 2000 + f"{each}\n", "Change it")
        self.pair.commit("kit/deep/b.toml", "b\n", "Add one")
        git(self.pair.work, "tag", "-a", "-m", "First", "v1.0.0")
        git(self.pair.work, "tag", "light")
        git(self.pair.work, "gc", "-q")
        git(self.pair.work, "push", "-q", "--tags", str(self.pair.bare), "main")
        self.commit = git(self.pair.work, "rev-parse", "HEAD")

    async def check(self, repository: RemoteRepository) -> None:
        """Both kinds of tags lead to the files."""
        tags = await repository.tags()
        self.assertEqual((sorted(tags), tags["light"]), (["light", "v1.0.0"], self.commit))
        for name in tags.values():
            commit_id, files = await repository.fetch(name, "kit")
            self.assertEqual(commit_id, self.commit)
            self.assertEqual(files, {"a.md": b"line\n" * 2000 + b"39\n", "deep/b.toml": b"b\n"})

    async def test_http(self) -> None:
        """Over smart HTTP, without history."""
        reactor = _running_reactor()
        listening = reactor.listenTCP(0, Site(GitServer(self.pair.bare.parent)), interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        url = f"http://127.0.0.1:{listening.getHost().port}/site.git"
        await self.check(RemoteRepository(url, system_transport(reactor, lambda: ()), reactor, private_network=True))

    async def test_ssh(self) -> None:
        """Over SSH, by the same requests."""
        host, reactor = SshHost(self.pair.bare.parent), _running_reactor()
        listening = reactor.listenTCP(0, host, interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        url = f"ssh://git@127.0.0.1:{listening.getHost().port}/site.git"
        opener = system_transport(reactor, lambda: ()).opener
        transport = SshTransport(opener, HostKey.read(public(host.host_key)))
        key = private(host.client_key).decode()
        await self.check(RemoteRepository(url, transport, reactor, private_network=True, private_key=key))
        self.assertEqual({each.split()[0] for each in host.commands}, {"git-upload-pack"})
