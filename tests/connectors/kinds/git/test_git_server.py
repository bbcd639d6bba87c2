"""Of the connector to a git repository against git itself, over loopback: what memory transports cannot show."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase
from twisted.web.server import Site

from aileron.base.json import JSON
from aileron.connectors import system_transport
from aileron.connectors.kinds.git import GitConnector
from aileron.model.connectors import READ, Finding, Outcome, Sought
from aileron.testing import MemoryCredential
from tests.connectors.repository import GitServer, Pair, connector, git
from tests.connectors.service import NOW

LONG_AGO = NOW.replace(year=2025)


def _running_reactor() -> Any:
    """Trial's."""
    from twisted.internet import reactor

    return reactor


class ServerTests(TestCase):
    """A repository, its remote, and git's own server for it."""

    pair: Pair
    connector: GitConnector

    def setUp(self) -> None:
        self.pair = Pair.made(Path(self.mktemp()).absolute())
        self.server = GitServer(self.pair.bare.parent)
        reactor = _running_reactor()
        listening = reactor.listenTCP(0, Site(self.server), interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        self.port = listening.getHost().port
        self.connector = connector(self.pair, system_transport(reactor, lambda: ()), reactor, self.port)
        self.old = git(self.pair.work, "rev-parse", "HEAD")
        self.new = self.pair.commit("src/a.txt", "one\ntwo\n", "Add a file")

    def send(self, operation: str, **inputs: JSON) -> Deferred[Outcome]:
        """Send one, with a credential."""
        request = self.connector.prepare(operation, inputs, self.base_url, "effect-1")
        send = self.connector.read if request.effect == READ else self.connector.invoke
        return Deferred.fromCoroutine(send(request, MemoryCredential(b"YW5uOnNlY3JldA==", "Basic {key}"), 20))

    @property
    def base_url(self) -> str:
        """The remote's."""
        return f"http://127.0.0.1:{self.port}/site.git"

    def look(self, operation: str, **inputs: JSON) -> Deferred[Finding]:
        """Look for an effect of long ago."""
        sought = Sought(operation, inputs, self.base_url, "effect-1", LONG_AGO, LONG_AGO)
        return Deferred.fromCoroutine(self.connector.reconcile(sought, MemoryCredential(b"x"), 10))

    @property
    def forward(self) -> Mapping[str, JSON]:
        """Inputs of a push."""
        return {"branch": "main", "commit": self.new, "expected": self.old}

    async def test_push(self) -> None:
        """A push arrives whole, once, and says what was moved."""
        for number in range(30):
            self.new = self.pair.commit(f"deep/{number}/b.bin", bytes([number]) * 9000, f"Add {number}")
        outcome = await self.send("push", **self.forward)
        self.assertEqual(outcome.output, {"ref": "refs/heads/main", "old": self.old, "new": self.new})
        self.assertEqual(self.pair.remote(), self.new)
        git(self.pair.bare, "fsck", "--strict")
        again = await self.send("push", **self.forward)
        assert again.fault is not None
        self.assertIn("Nothing was changed", again.fault.message)
        self.assertFalse(again.sent)

    async def test_packed(self) -> None:
        """A repository whose objects and refs are packed is read as one whose are not, deltas and all."""
        lines = "".join(f"line {number}\n" for number in range(2000))
        self.pair.commit("long.txt", lines, "Add a long file")
        self.new = self.pair.commit("long.txt", f"{lines}more\n", "Change it")
        git(self.pair.work, "gc", "-q", "--prune=now")
        git(self.pair.work, "pack-refs", "--all")
        git(self.pair.work, "multi-pack-index", "write")
        compared = await self.send("compare", commit="main", branch="main")
        assert isinstance(compared.output, Mapping), compared
        self.assertEqual(compared.output["commit"], self.new)
        await self.send("push", **self.forward)
        self.assertEqual(self.pair.remote(), self.new)
        git(self.pair.bare, "fsck", "--strict")

    async def test_branches_and_tags(self) -> None:
        """Branches are made and deleted, and tags made, with a tag object as well as without."""
        await self.send("create_branch", branch="agent/a", commit=self.new)
        self.assertEqual(self.pair.remote("refs/heads/agent/a"), self.new)
        await self.send("delete_branch", branch="agent/a", expected=self.new)
        self.assertIsNone(self.pair.remote("refs/heads/agent/a"))
        await self.send("create_tag", tag="v1", commit=self.new)
        git(self.pair.work, "tag", "-a", "-m", "Second", "v2", self.new)
        tag = git(self.pair.work, "rev-parse", "v2")
        await self.send("create_tag", tag="v2", commit=tag)
        self.assertEqual([self.pair.remote(f"refs/tags/v{each}") for each in (1, 2)], [self.new, tag])

    async def test_force(self) -> None:
        """A forced push moves a branch where it was not going, from where it was shown to be alone."""
        await self.send("push", **self.forward)
        git(self.pair.work, "reset", "-q", "--hard", self.old)
        other = self.pair.commit("other.txt", "x\n", "Another way")
        refused = await self.send("push", branch="main", commit=other, expected=self.new)
        self.assertFalse(refused.sent)
        moved = await self.send("force_push", branch="main", commit=other, expected=self.old)
        assert moved.fault is not None
        self.assertEqual(self.pair.remote(), self.new)
        await self.send("force_push", branch="main", commit=other, expected=self.new)
        self.assertEqual(self.pair.remote(), other)

    async def test_hook(self) -> None:
        """A hook of the remote's that declines is told, and nothing was changed; one of the local is not run."""
        hook = self.pair.bare / "hooks" / "update"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        ours = self.pair.work / ".git" / "hooks" / "pre-push"
        ours.write_text(f"#!/bin/sh\ntouch {self.pair.work}/ran\n")
        ours.chmod(0o755)
        outcome = await self.send("push", **self.forward)
        assert outcome.fault is not None
        self.assertIn("hook declined", outcome.fault.message)
        self.assertTrue(outcome.classified)
        self.assertEqual((self.pair.remote(), os.path.exists(self.pair.work / "ran")), (self.old, False))

    async def test_dies(self) -> None:
        """A server that dies during an update leaves it unknown; a look finds out which it was."""
        for fault, happened in (("dies_before", False), ("dies_after", True)):
            self.server.fault = fault
            outcome = await self.send("push", **self.forward)
            self.assertEqual((outcome.sent, outcome.classified), (True, False), fault)
            self.assertEqual((await self.look("push", **self.forward)).happened, happened, fault)

    async def test_redirect(self) -> None:
        """A redirect is not followed, and the credential goes nowhere else."""
        self.server.fault = "redirects"
        outcome = await self.send("push", **self.forward)
        assert outcome.fault is not None
        self.assertEqual((outcome.sent, outcome.status, len(self.server.asked)), (False, 302, 1))

    async def test_lies(self) -> None:
        """A report that is about another ref, or too long, leaves the update unknown."""
        for body in (b"000eunpack ok\n0017ok refs/heads/other\n0000", b"x" * (17 * 1024 * 1024)):
            self.server.fault = body
            outcome = await self.send("push", **self.forward)
            self.assertEqual((outcome.sent, outcome.classified), (True, False))
            git(self.pair.bare, "update-ref", "refs/heads/main", self.old)

    async def test_credential(self) -> None:
        """Both requests of an update carry the credential."""
        self.server.fault = "refuses"
        outcome = await self.send("push", **self.forward)
        self.assertIsNone(outcome.fault)
        self.assertEqual({given for *_, given in self.server.asked}, {"Basic YW5uOnNlY3JldA=="})

    async def test_refs(self) -> None:
        """The remote's refs are listed."""
        outcome = await self.send("refs")
        listed = {"ref": "refs/heads/main", "commit": self.old}
        assert isinstance(outcome.output, Mapping)
        self.assertIn(listed, outcome.output["refs"])
        one = await self.send("remote_branch", branch="main")
        self.assertEqual(one.output, listed)
        gone = await self.send("remote_branch", branch="agent/x")
        self.assertEqual(gone.output, {"ref": "refs/heads/agent/x", "commit": None})
