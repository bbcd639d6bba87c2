"""Packages from git's own server: installed, updated, fetched anew into an empty home, and removed."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.web.server import Site

from tests.connectors.repository import GitServer, Pair, git
from tests.extent import seldom
from tests.features.packages.kit import ACTION, CONNECTOR, FILES, Publisher, package, write
from tests.functional.install import install_signer
from tests.functional.operated import PASSPHRASE, OperatedTestCase


class PackageTests(OperatedTestCase):
    """A repository with a package in one of its directories, and a daemon."""

    def setUp(self) -> None:
        super().setUp()
        self.pair = Pair.made(Path(self.mktemp()).absolute())
        reactor: Any = self.reactor
        listening = reactor.listenTCP(0, Site(GitServer(self.pair.bare.parent)), interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        self.url = f"http://127.0.0.1:{listening.getHost().port}/site.git//kit"
        self.publisher = Publisher()

    def release(self, version: str, files: Mapping[str, bytes] = FILES) -> None:
        """Publish a version, signed."""
        write(self.pair.work / "kit", self.publisher.package(files, version))
        self.pair.commit("kit/CHANGES", version, f"Release {version}")
        git(self.pair.work, "tag", "-f", f"v{version}")
        git(self.pair.work, "push", "-q", "-f", "--tags", str(self.pair.bare), "main")

    async def test_life(self) -> None:
        """A package is installed by its tag, updated with what it can do more, and removed with its trust."""
        await self.operator("vault", "init")
        self.release("1.0.0")
        installing = self.on_terminal("connector", "install", f"{self.url}@1.0.0")
        await installing.expect("Passphrase of the vault: ")
        installing.send(PASSPHRASE)
        await installing.expect("signed by +RW")
        await installing.expect("It comes with the package")
        await installing.expect(r"\+ local://kit/tracker: connects to tracker.example:443")
        await installing.expect(r"Install this\? \[y/N\] ")
        self.assertFalse((self.state.root / "packages.json").exists())
        installing.send("y")
        await installing.expect(r"Trust all 2, exactly as shown\? \[y/N\] ")
        installing.send("y")
        await installing.expect("tracker 1.0.0 is installed")
        self.assertEqual((await installing.finish(30)).exit_code, 0)
        kept = json.loads((self.state.root / "packages.json").read_text())
        self.assertEqual(kept["publishers"], [f"{self.publisher.key} {self.url}"])
        self.assertEqual(kept["packages"][0]["commit"], git(self.pair.work, "rev-parse", "HEAD"))

        ungated = ACTION.replace("required = true", "required = false").encode()
        wider = CONNECTOR.replace('["tracker.example:443"]', '["tracker.example:443", "other.example:443"]').encode()
        self.release("1.1.0", {"tracker.toml": wider, "file-ticket.md": ungated})
        done = await self.operator("action", "update", "--yes")
        self.assertIn("+ local://kit/tracker: connects to other.example:443", done.stdout)
        self.assertIn("+ action file-ticket: runs without your approval", done.stdout)
        self.assertIn("tracker 1.1.0 is installed", done.stdout)
        self.assertIn("file-ticket", (await self.aileron("action", "list")).stdout)

        self.release("1.2.0", {"tracker.toml": wider})
        await self.operator("action", "update", "--yes")
        write(self.state.actions, {"file-ticket.md": ungated})
        while "Not trusted" not in (listed := await self.command("action", "list")).stderr:
            self.assertNotIn("file-ticket", listed.stdout)  # not seen yet
            await self.pause(0.2)
        (self.state.actions / "file-ticket.md").unlink()

        done = await self.operator("action", "uninstall", "tracker", "--yes")
        self.assertEqual((list(self.state.actions.iterdir()), list(self.state.connectors.iterdir())), ([], []))
        items = json.loads((await self.operator("action", "trust", "--yes", "--all", "--json")).stdout)
        self.assertEqual(items, {"trusted": []})

        write(self.state.actions, {"mine.md": ACTION.encode()})
        refused = await self.operator("action", "install", f"{self.url}@1.0.0", "--yes", "--force", code=1)
        self.assertIn("The action file-ticket is in actions/mine.md already", refused.stderr)
        self.assertEqual([path.name for path in self.state.actions.iterdir()], ["mine.md"])

    async def test_sync(self) -> None:
        """In an empty home packages.json, once it is trusted, brings back the very same files."""
        await self.operator("vault", "init")
        self.release("1.0.0")
        key = self.publisher.key
        await self.operator("action", "install", self.url, "--yes", code=1)
        await self.operator("action", "install", self.url, "--yes", "--publisher-key", key)
        kept, files = (
            (self.state.root / "packages.json").read_bytes(),
            sorted(path.name for path in self.state.actions.iterdir()),
        )
        await self.command("daemon", "stop")
        shutil.rmtree(self.home.aileron)
        await self.operator("vault", "init")
        write(self.home.aileron, {"packages.json": kept})
        refused = await self.operator("sync", "--yes", code=1)
        self.assertIn("packages.json is not trusted as it is now", refused.stderr)
        self.assertEqual(list(self.state.actions.iterdir()), [])
        await self.operator("config", "trust", "packages.json", "--yes")
        done = await self.operator("sync", "--yes")
        self.assertIn("All packages match packages.json.", done.stdout)
        self.assertEqual(sorted(path.name for path in self.state.actions.iterdir()), files)
        self.assertIn("file-ticket", (await self.aileron("action", "list")).stdout)
        self.release("1.0.0", {**FILES, "other.toml": CONNECTOR.replace("kit/tracker", "kit/other").encode()})
        (self.state.actions / "file-ticket.md").unlink()
        moved = await self.operator("sync", "--yes", code=1)
        self.assertIn("The tag 1.0.0 of tracker was moved", moved.stderr)
        self.assertIn("has other contents now", moved.stderr)
        self.assertEqual(list(self.state.actions.iterdir()), [])

    @seldom
    async def test_killed(self) -> None:
        """A command that is killed before the answer leaves nothing in force, and the next one finishes its work."""
        await self.operator("vault", "init")
        self.release("1.0.0")
        installing = self.on_terminal("action", "install", self.url)
        await installing.expect("Passphrase of the vault: ")
        installing.send(PASSPHRASE)
        await installing.expect(r"Install this\? \[y/N\] ")
        installing.send("y")
        await installing.expect(r"Trust all 2, exactly as shown\? \[y/N\] ")
        await installing.kill()
        self.assertIn("Not trusted", (await self.aileron("action", "list")).stderr)
        await self.operator("config", "trust", "--yes")
        await self.operator("action", "install", self.url, "--yes")
        self.assertIn("file-ticket", (await self.aileron("action", "list")).stdout)

    @seldom
    async def test_minisign(self) -> None:
        """What the real minisign signs, by its file or by its hash, is installed; a changed manifest is not."""
        program = install_signer()
        await self.operator("vault", "init")
        directory = write(self.home.project / "kit", package())
        manifest, public, secret = (directory / name for name in ("aileron-package.toml", "key.pub", "key"))
        subprocess.run((program, "-G", "-W", "-p", public, "-s", secret), check=True, capture_output=True)
        key = public.read_text().splitlines()[1]
        for legacy in ((), ("-l",)):
            subprocess.run(
                (program, "-S", "-W", *legacy, "-m", manifest, "-s", secret), check=True, capture_output=True
            )
            done = await self.operator("action", "install", str(directory), "--yes", "--publisher-key", key)
            self.assertIn(f"signed by    {key}", done.stdout)
        manifest.write_bytes(manifest.read_bytes() + b"#\n")
        refused = await self.operator("action", "install", str(directory), "--yes", code=1)
        self.assertIn("The signature is wrong", refused.stderr)
