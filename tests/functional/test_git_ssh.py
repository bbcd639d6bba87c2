"""A push over SSH by the real daemon, with a key that is bound from its file, to git behind an SSH server."""

import json
from pathlib import Path
from typing import Any

from tests.connectors.repository import Pair, git
from tests.connectors.sshhost import SshHost, private, public
from tests.functional import canary
from tests.functional.operated import PASSPHRASE, OperatedTestCase

_CONNECTOR = """
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
repository = "{repository}"
branches = ["main"]
host_key = "{host_key}"
"""
_ACTION = """\
+++
name = "push-site"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/site"
version = "1.0.0"
capabilities = ["push"]

[[inputs]]
name = "commit"
type = "string"
description = "What to push"

[[inputs]]
name = "expected"
type = "string"
description = "Where the branch is"

[[execute]]
id = "push"
connector = "local://me/site"
op = "push"
inputs = { branch = "main", commit = "${args.commit}", expected = "${args.expected}" }
+++
# Push the site

Pushes the site.
"""


class GitSshTests(OperatedTestCase):
    """A home with one connector over SSH."""

    async def test_push(self) -> None:
        """The key that was bound pushes, and is in no file, answer or process."""
        pair = Pair.made(Path(self.mktemp()).absolute())
        host = SshHost(pair.bare.parent)
        reactor: Any = self.reactor
        listening = reactor.listenTCP(0, host, interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        old = git(pair.work, "rev-parse", "HEAD")
        new = pair.commit("src/a.txt", "one\n", "Add a file")
        await self.operator("vault", "init")
        text = _CONNECTOR.format(port=listening.getHost().port, repository=pair.work, host_key=public(host.host_key))
        self._put_connector("site", text)
        path = self.home.project / "push-site.md"
        path.write_text(_ACTION)
        await self.add(path)
        key = private(host.client_key).decode()
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": key}
        setup = ("binding", "setup", "local://me/site")
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)
        ran = await self.run_action(await self.session(), "push-site", {"commit": new, "expected": old}, wait=30)
        self.assertIn(new, ran.text)
        self.assertEqual(pair.remote(), new)
        said = f"{ran.text} {json.dumps(await self.audit())} {json.dumps(await self.told('binding', 'list'))}"
        for line in key.split("\n")[1:-2]:
            self.assertNotIn(line, said)
            self.assertEqual(canary.in_files(self.home.root, line), [])
