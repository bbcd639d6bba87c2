"""C{doc/git.md}, played: its files, with the test's addresses in place of GitHub's, push over HTTP and over SSH."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.web.server import Site

from tests.connectors.repository import GitServer, Pair
from tests.connectors.sshhost import SshHost, public
from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play

SECRET = "ada:canary-70311"
_TEXT = re.compile(r"^ *```text\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class GitTests(PageTestCase):
    """A user with a repository, and a remote of it."""

    page = "git.md"

    def setUp(self) -> None:
        """Make both, and serve the remote over HTTP."""
        super().setUp()
        self.pair = Pair.made(self.home.root / "repositories")
        self.address = f"127.0.0.1:{self.listen(Site(GitServer(self.pair.bare.parent)))}"

    def listen(self, factory: Any) -> int:
        """Serve something on this machine; its port."""
        reactor: Any = self.reactor
        listening = reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        return int(listening.getHost().port)

    def texts(self) -> Sequence[str]:
        """The files of the page, for the test's own remote."""
        names = {
            "https://github.com/me/site.git": f"http://{self.address}/site.git",
            'hosts = ["github.com:443"]': f'hosts = ["{self.address}"]\nprivate_network = true',
            "/home/me/site": str(self.pair.work),
        }
        found = self.page_text()
        for name, ours in names.items():
            found = found.replace(name, ours)
        return [re.sub(r"(?m)^   ", "", each) for each in _TEXT.findall(found)]

    async def push(self, text: str) -> None:
        """A commit that an agent asks to push, and the user approves; it is on the remote then."""
        commit = self.pair.commit("said.txt", text, f"Say {text}")
        asked = await self.run_action(await self.session(), "push-site", {"branch": "main"})
        self.assertEqual(asked.status, 202, asked.text)
        await self.approve(str(asked.body["run_id"]), "--wait", "30")
        self.assertEqual(self.pair.remote(), commit)

    def over_ssh(self, text: str, host: SshHost) -> str:
        """The connector's file with what the page has for SSH in its place."""
        name = f"127.0.0.1:{self.listen(host)}"
        ours = text.replace("git@github.com/me", f"git@{name}").replace("github.com:22", name)
        ours = re.sub('host_key = ".*"', f'host_key = "{public(host.host_key)}"', ours)
        head = '[connector]\nname = "local://me/site"\nversion = "1.0.0"\nkind = "git"\nprivate_network = true\n'
        return head + ours

    @seldom
    async def test_played(self) -> None:
        """What is approved is pushed with the token, and then with the key that was made for it."""
        await self.operator("vault", "init")
        connector, action, ssh = self.texts()[:3]
        (self.home.project / "site.toml").write_text(connector)
        (self.home.project / "push-site.md").write_text(action)
        self.secrets.append(SECRET)
        await self.play(
            Play("aileron connector add site.toml", answers=[LOG_IN, YES], shows=["Trusted: local://me/site"]),
            Play("aileron action add push-site.md", answers=[LOG_IN, YES], shows=["Trusted: push-site"]),
            Play("aileron credential setup local://me/site", answers=[LOG_IN, (r"\(not shown\): ", SECRET)]),
        )
        await self.push("once")
        await self.play(Play("ssh-keygen -t ed25519 -N '' -f site_key"))
        host = self.host_for(self.home.project / "site_key")
        changed = self.home.project / "site.toml"
        changed.write_text(self.over_ssh(ssh, host))
        await self.operator("connector", "add", str(changed), "--force", "--yes")
        await self.operator("binding", "revoke", "basic/site/default")
        await self.play(
            Play("aileron credential setup local://me/site --secret-fd 3 3< site_key", answers=[LOG_IN]),
            Play("rm site_key"),
        )
        await self.push("twice")
        self.assertTrue(host.commands)

    def host_for(self, path: Path) -> SshHost:
        """A server that lets this key in."""
        from twisted.conch.ssh.keys import Key

        return SshHost(self.pair.bare.parent, client_key=Key.fromString(path.read_bytes()))
