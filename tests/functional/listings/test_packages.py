"""C{doc/packages.md}, played: packages from GitHub and by SSH are installed, updated, removed, and fetched anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.web.server import Request, Site

from tests.connectors.repository import GitServer, Pair, git
from tests.connectors.sshhost import SshHost, private, public
from tests.extent import seldom
from tests.features.packages.kit import FILES, manifest, write
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.operated import PASSPHRASE

SSH = 22
TOKEN = "token-canary-b10d"
INSTALLING = (LOG_IN, YES, YES)


@attrs.define(slots=False, eq=False)
class _GitHub(GitServer):
    """Serves public repositories, and one that is private."""

    def render(self, request: Request) -> int:
        """Refuse the private one to whom has no token."""
        self.fault = "refuses" if b"/private.git" in request.uri else ""
        return super().render(request)


@attrs.frozen
class _Repository:
    """A repository with one package."""

    pair: Pair
    name: str

    @classmethod
    def make(cls, directory: Path, place: Path, name: str) -> _Repository:
        """Make it; its bare half is where a server looks for it."""
        pair = Pair.made(directory / name)
        place.parent.mkdir(parents=True, exist_ok=True)
        pair.bare.rename(place)
        pair.bare = place
        return cls(pair, name)

    def release(self, version: str) -> None:
        """Publish a version: files that no other package has."""
        files = {self._own(path): self._own(text.decode()).encode() for path, text in FILES.items()}
        files[f"file-{self.name}.md"] += f"Since {version}.\n".encode()
        write(self.pair.work, {**files, "aileron-package.toml": manifest(files, version, self.name)})
        self.pair.commit("CHANGES", version, f"Release {version}")
        git(self.pair.work, "tag", f"v{version}")
        git(self.pair.work, "push", "-q", "--tags", str(self.pair.bare), "main")

    def _own(self, text: str) -> str:
        return text.replace("tracker", self.name).replace("file-ticket", f"file-{self.name}")


class PackagesTests(PageTestCase):
    """A user of three packages."""

    page = "packages.md"

    async def serve(self) -> Mapping[str, _Repository]:
        """Have GitHub, and a host with SSH."""
        directory = Path(self.mktemp()).absolute()
        places = {
            "tracker": directory / "github" / "acme" / "aileron-tracker.git",
            "private": directory / "github" / "acme" / "private.git",
            "repo": directory / "ssh" / "team" / "repo.git",
        }
        made = {name: _Repository.make(directory, place, name) for name, place in places.items()}
        self.host = SshHost(directory / "ssh")
        github = cast(IProtocolFactory, Site(_GitHub(directory / "github")))
        services = {HTTPS: github, SSH: cast(IProtocolFactory, self.host)}
        self.behind = (await Internet.open(self, ["github.com", "git.example.com"], services)).prefix
        return made

    async def operate(self, *arguments: str) -> None:
        """Run a command that the page does not have, in the same network; it must succeed."""
        command = self.home.with_passphrase(PASSPHRASE, "aileron", *arguments)
        self._expect(await self.run_command(command.behind(*self.behind)), 0)

    def installed(self) -> Mapping[str, str]:
        """The packages, and their versions."""
        return {
            each["name"]: each["version"]
            for each in json.loads((self.state.root / "packages.json").read_text())["packages"]
        }

    @seldom
    async def test_played(self) -> None:
        """Each package comes by its own way; the newest versions follow, and another machine gets the same files."""
        repositories = await self.serve()
        for name, each in repositories.items():
            each.release("1.2.0")
            self.assertEqual(each.name, name)
        identity = self.home.user / ".ssh" / "id_ed25519"
        write(identity.parent, {identity.name: private(self.host.client_key)})
        (self.home.project / "token.txt").write_text(TOKEN)
        self.secrets.append(TOKEN)
        await self.operate("vault", "init")
        await self.play(
            Play(
                "aileron package install github://acme/aileron-tracker@1.2.0",
                answers=INSTALLING,
                shows=["tracker 1.2.0 is installed"],
            ),
            Play(
                "aileron package install ssh://git@git.example.com/team/repo.git --identity ~/.ssh/id_ed25519 "
                '--host-key "ssh-ed25519 AAAA..."',
                replace={"ssh-ed25519 AAAA...": public(self.host.host_key)},
                answers=INSTALLING,
                shows=["repo 1.2.0 is installed"],
            ),
            Play(
                "aileron package install github://acme/private --secret-fd 5 5<token.txt",
                answers=INSTALLING,
                shows=["private 1.2.0 is installed"],
            ),
        )
        self.assertEqual(self.installed(), dict.fromkeys(("private", "repo", "tracker"), "1.2.0"))
        for each in repositories.values():
            each.release("1.2.1")
        repositories["tracker"].release("1.3.0")
        await self.play(
            Play(
                "aileron package update",
                code=1,
                answers=INSTALLING,
                shows=[
                    "Private repositories need --secret-fd",
                    "tracker 1.3.0 is installed",
                    "package update private repo",
                ],
            ),
            Play("aileron package update tracker@1.3.0", answers=[LOG_IN, YES], shows=["tracker 1.3.0 is installed"]),
            Play(
                "aileron package update --identity ~/.ssh/id_ed25519 --secret-fd 5 5<token.txt",
                answers=INSTALLING,
                shows=["private 1.2.1 is installed", "repo 1.2.1 is installed"],
            ),
        )
        self.assertEqual(self.installed(), {"private": "1.2.1", "repo": "1.2.1", "tracker": "1.3.0"})
        await self.operate("action", "uninstall", "private", "repo", "--yes")
        kept, files = (self.state.root / "packages.json").read_bytes(), self.files()
        await self.play(Play("aileron package uninstall tracker", answers=[LOG_IN, YES]))
        self.assertEqual((self.installed(), self.files()), ({}, {}))
        await self.kill_daemon()
        shutil.rmtree(self.home.aileron)
        await self.operate("vault", "init")
        write(self.home.aileron, {"packages.json": kept})
        await self.play(
            Play("aileron config trust packages.json", answers=[LOG_IN, YES]),
            Play("aileron package sync", answers=[LOG_IN, YES], shows=["All packages match packages.json."]),
        )
        self.assertEqual(self.files(), files)

    def files(self) -> Mapping[str, bytes]:
        """The files of actions and connectors."""
        directories = (self.state.actions, self.state.connectors)
        return {path.name: path.read_bytes() for directory in directories for path in directory.iterdir()}
