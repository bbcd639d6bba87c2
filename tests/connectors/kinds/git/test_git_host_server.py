"""Of the connector to a git host against git itself, over loopback: pushes of a real git are shown and sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.trial.unittest import TestCase
from twisted.web.server import Site

from aileron.connectors import SHOW_PUSH, system_transport
from aileron.model.connectors import FORWARD, READ, Outcome, Sought
from aileron.testing import MemoryCredential
from tests.connectors.githost import Contents, HoldingServer, host_connector, inputs_of, pushed
from tests.connectors.kinds.git.test_git_server import LONG_AGO, _running_reactor
from tests.connectors.repository import Pair, git

CREDENTIAL = MemoryCredential(b"YW5uOnNlY3JldA==", "Basic {key}")


class PushTests(TestCase):
    """A repository, its remote, and the pushes of git to it."""

    def setUp(self) -> None:
        self.pair = Pair.made(Path(self.mktemp()).absolute())
        git(self.pair.bare, "config", "uploadpack.allowFilter", "true")
        git(self.pair.bare, "config", "receive.advertisePushOptions", "true")
        self.server = HoldingServer(self.pair.bare.parent)
        reactor = _running_reactor()
        listening = reactor.listenTCP(0, Site(self.server), interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        self.port = listening.getHost().port
        self.contents = Contents()
        self.connector = host_connector(system_transport(reactor, lambda: ()), reactor, self.contents, self.port)
        self.base_url = f"http://127.0.0.1:{self.port}"

    async def capture(self, *arguments: str) -> dict[str, Any]:
        """Push with git, and return the inputs of what it sent, which was not carried out."""
        self.server.holds = True
        said = await pushed(self.pair.work, self.port, *arguments)
        self.assertTrue(self.server.bodies, said)
        body = self.server.bodies.pop()
        self.server.bodies.clear()
        self.server.holds = False
        self.contents.keep(body)
        return inputs_of(body, f"127.0.0.1:{self.port}")

    async def send(self, operation: str, inputs: Mapping[str, Any]) -> Outcome:
        """Send a request, with a credential."""
        request = self.connector.prepare(operation, inputs, self.base_url, "effect-1")
        send = self.connector.read if request.effect == READ else self.connector.invoke
        outcome: Outcome = await send(request, CREDENTIAL, 20)
        return outcome

    async def show(self, inputs: Mapping[str, Any]) -> Any:
        """Return what a push would change."""
        outcome = await self.send(SHOW_PUSH, inputs)
        self.assertIsNone(outcome.fault)
        return outcome.output

    async def test_forward(self) -> None:
        """A push forward is shown with its commits and its patch, and arrives whole."""
        lines = "".join(f"line {number}\n" for number in range(500))
        self.pair.commit("src/deep/long.txt", lines, "Add a long file")
        git(self.pair.work, "push", "-q", str(self.pair.bare), "main")
        self.pair.commit("src/deep/long.txt", lines.replace("line 7\n", "line seven\n"), "Change a line")
        new = self.pair.commit("b.txt", "b\n", "Add another")
        inputs = await self.capture("main")
        shown = await self.show(inputs)
        self.assertEqual((None, None), (shown["warning"], shown["irreversible"]))
        self.assertIn("-line 7\n+line seven\n", shown["patch"])
        self.assertIn("Change a line", shown["commits"])
        self.assertNotIn("Add a long file", shown["commits"])
        self.assertIn("2 files changed, 2 lines added, 1 lines removed", shown["diffstat"])
        outcome = await self.send(FORWARD, inputs)
        assert isinstance(outcome.output, Mapping), outcome
        self.assertEqual({"refs/heads/main": "ok"}, outcome.output["report"])
        self.assertEqual(new, self.pair.remote())
        git(self.pair.bare, "fsck", "--strict")

    async def test_branch(self) -> None:
        """A new branch and a new tag are shown from where they leave what the remote has."""
        self.pair.commit("a.txt", "a\n", "Add a")
        git(self.pair.work, "tag", "-a", "-m", "The first", "v1")
        inputs = await self.capture("main:agent/x", "v1")
        self.assertEqual("create agent/x, create tags/v1", inputs["changes"])
        shown = await self.show(inputs)
        self.assertIn("new file mode", shown["patch"])
        self.assertIn("The first", shown["commits"])
        self.assertNotIn("Begin", shown["commits"])
        self.assertIsNone(shown["warning"])

    async def test_forced(self) -> None:
        """A forced push is shown with the commits that would be lost; one that loses none is not warned of."""
        old = git(self.pair.work, "rev-parse", "HEAD")
        self.pair.commit("a.txt", "a\n", "To be lost 1")
        self.pair.commit("a.txt", "b\n", "To be lost 2")
        git(self.pair.work, "push", "-q", str(self.pair.bare), "main")
        git(self.pair.work, "reset", "-q", "--hard", old)
        self.pair.commit("c.txt", "c\n", "Another way")
        shown = await self.show(await self.capture("--force", "main"))
        self.assertIn("no longer be on the branch", shown["warning"])
        self.assertIn("To be lost 1", shown["warning"])
        self.assertIn("To be lost 2", shown["warning"])
        self.assertEqual("Commits would be lost: refs/heads/main.", shown["irreversible"])
        self.assertIn("Another way", shown["commits"])

    async def test_known(self) -> None:
        """A branch that moves to a commit that the remote has already is compared, and is no forced push."""
        self.pair.commit("a.txt", "a\n", "Add a")
        git(self.pair.work, "push", "-q", str(self.pair.bare), "main", "main~1:refs/heads/slow")
        self.pair.commit("a.txt", "b\n", "Change a")
        git(self.pair.work, "push", "-q", str(self.pair.bare), "main")
        shown = await self.show(await self.capture("main:slow"))
        self.assertIsNone(shown["warning"])
        self.assertIn("+b\n", shown["patch"])

    async def test_deleted(self) -> None:
        """A deletion is warned of, and carried out."""
        git(self.pair.work, "push", "-q", str(self.pair.bare), "main:gone")
        inputs = await self.capture("--delete", "gone")
        shown = await self.show(inputs)
        self.assertIn("Deleted: refs/heads/gone.", shown["warning"])
        self.assertEqual("Deleted: refs/heads/gone.", shown["irreversible"])
        self.assertIn("refs/heads/gone: deleted, was at", shown["refs"])
        await self.send(FORWARD, inputs)
        self.assertIsNone(self.pair.remote("refs/heads/gone"))

    async def test_options(self) -> None:
        """An atomic push with an option of a shallow clone is read whole."""
        self.pair.commit("a.txt", "a\n", "Add a")
        inputs = await self.capture("--atomic", "-o", "ci.skip", "main", "main:two")
        self.assertIn("atomic", inputs["capabilities"])
        self.assertEqual(["ci.skip"], inputs["options"])
        outcome = await self.send(FORWARD, inputs)
        self.assertIsNone(outcome.fault)

    async def test_shallow(self) -> None:
        """A push from a shallow clone is shown and sent."""
        self.pair.commit("a.txt", "a\n", "Add a")
        git(self.pair.work, "push", "-q", str(self.pair.bare), "main")
        clone = self.pair.work.parent / "shallow"
        git(self.pair.work, "clone", "-q", "--depth", "1", f"file://{self.pair.bare}", str(clone))
        self.pair.work = clone
        new = self.pair.commit("b.txt", "b\n", "Add b")
        inputs = await self.capture("main")
        self.assertEqual(1, len(inputs["shallow"]))
        shown = await self.show(inputs)
        self.assertIn("Add b", shown["commits"])
        self.assertNotIn("Add a", shown["commits"])
        await self.send(FORWARD, inputs)
        self.assertEqual(new, self.pair.remote())

    async def test_without_filters(self) -> None:
        """From a server without filters all is fetched."""
        self.pair.commit("a.txt", "a\n", "Add a")
        git(self.pair.bare, "config", "uploadpack.allowFilter", "false")
        inputs = await self.capture("main")
        self.assertIn("+a\n", (await self.show(inputs))["patch"])

    async def test_hidden(self) -> None:
        """A push whose pack is damaged is shown by its refs, and it is said why."""
        self.pair.commit("a.txt", "a\n", "Add a")
        inputs = await self.capture("main")
        body = self.contents.kept[inputs["content"]]
        damaged = body[:-30] + bytes(30)
        self.contents.keep(damaged)
        shown = await self.show(inputs_of(damaged, inputs["host"]))
        self.assertIn("The commits cannot be shown: its pack is damaged, or too large.", shown["warning"])
        self.assertIn("refs/heads/main: ", shown["refs"])
        self.assertIsNone(shown["patch"])

    async def test_binary(self) -> None:
        """Several long files, of which some are no text, are shown and arrive."""
        for number in range(5):
            self.pair.commit(f"b/{number}.bin", bytes(range(256)) * 3000 + bytes([number]), f"Add {number}")
        inputs = await self.capture("main")
        self.assertIn("Binary files differ", (await self.show(inputs))["patch"])
        outcome = await self.send(FORWARD, inputs)
        self.assertIsNone(outcome.fault)
        git(self.pair.bare, "fsck", "--strict")

    async def test_hook(self) -> None:
        """A push that a hook declines fails with the reason, and updated nothing."""
        hook = self.pair.bare / "hooks" / "update"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        self.pair.commit("a.txt", "a\n", "Add a")
        outcome = await self.send(FORWARD, await self.capture("main"))
        assert outcome.fault is not None
        self.assertIn("hook declined", outcome.fault.message)
        self.assertTrue(outcome.classified)

    async def test_dies(self) -> None:
        """A server that dies during a push leaves it unknown; a look finds out which it was."""
        self.pair.commit("a.txt", "a\n", "Add a")
        inputs = await self.capture("main")
        for fault, happened in (("dies_before", False), ("dies_after", True)):
            self.server.fault = fault
            outcome = await self.send(FORWARD, inputs)
            self.assertEqual((outcome.sent, outcome.classified), (True, False), fault)
            self.server.fault = ""
            sought = Sought(FORWARD, inputs, self.base_url, "effect-1", LONG_AGO, LONG_AGO)
            found = await self.connector.reconcile(sought, CREDENTIAL, 10)
            self.assertEqual(found.happened, happened, fault)
