"""Connectors to a git repository and to a local program, from an agent's call to what came of it."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast

from twisted.web.server import Site

from tests.connectors.repository import GitServer, Pair
from tests.functional.operated import PASSPHRASE, AgentSession, OperatedTestCase

GIT = """
[connector]
name = "local://me/site"
version = "1.0.0"
kind = "git"
base_url = { default = "https://github.com/me/site.git" }
hosts = ["github.com:443"]

[credential]
kind = "basic"

[git]
repository = "/home/me/site"
branches = ["agent/*", "main"]
tags = ["v*"]
"""
PUSH = """+++
name = "push-site"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/site"
version = "1.0.0"
capabilities = ["compare", "push"]

[[inputs]]
name = "branch"
type = "string"
description = "The branch to push; it has the same name on the remote"

[[execute]]
id = "push"
connector = "local://me/site"
op = "push"
inputs = { branch = "${args.branch}", commit = "${preview.commit}", expected = "${preview.expected}" }

[approval]
required = true

[approval.preview]
op = "compare"
args = { branch = "${args.branch}", commit = "${args.branch}" }
render = { Warning = "warning", Commits = "commits", Files = "diffstat", Patch = "patch" }
multiline = ["Warning", "Commits", "Files", "Patch"]
+++
# Push the site

Pushes a branch of the site.
"""
TOKEN = "ghp-canary-57713"
PROGRAM = """
[connector]
name = "local://me/deploy"
version = "1.0.0"
kind = "command"

[command]
directory = "{directory}"

[credential]
kind = "api_key"
variable = "DEPLOY_TOKEN"

[operations.deploy]
program = "{python}"
arguments = ["-c", "{code}", "${{in.version}}", "${{in.code}}"]
failure = [2]
"""
CODE = "import os, sys; print(sys.argv[1:], len(os.environ['DEPLOY_TOKEN'])); sys.exit(int(sys.argv[2]))"
DEPLOY = """+++
name = "deploy"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/deploy"
version = "1.0.0"
capabilities = ["deploy"]

[[inputs]]
name = "version"
type = "string"
description = "Which"

[[inputs]]
name = "code"
type = "integer"
description = "How it ends"

[[execute]]
id = "deploy"
connector = "local://me/deploy"
op = "deploy"
inputs = { version = "${args.version}", code = "${args.code}" }

[approval]
required = true
+++
# Deploy

Deploys.
"""


class LocalKindsTests(OperatedTestCase):
    """A daemon with one such connector, its credential and its action."""

    async def made_ready(self, connector: str, action: str, secret: str) -> AgentSession:
        """Bring a connector and its action into use, and open an agent's session."""
        (found,) = re.findall(r'^name = "(local://me/\w+)"', connector, re.MULTILINE)
        name = re.findall(r'^name = "([\w-]+)"', action, re.MULTILINE)[0]
        await self.operator("vault", "init")
        self._put_connector(found.rpartition("/")[2], connector)
        path = self.home.project / f"{name}.md"
        path.write_text(action)
        await self.add(path)
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": secret}
        setup = ("binding", "setup", found)
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)
        return await self.session()

    async def begun(self, session: AgentSession, name: str, **arguments: Any) -> Mapping[str, Any]:
        """Let the agent ask; the approval, as soon as its preview is there."""
        reply = await self.run_action(session, name, arguments)
        self.assertEqual(reply.status, 202, reply.text)
        run_id = str(reply.body["run_id"])
        return {**await self.told("approval", "show", run_id), "run_id": run_id}

    async def ended(self, session: AgentSession, run: Mapping[str, Any], wait: int = 20) -> Mapping[str, Any]:
        """How the run ended, as the agent is told."""
        return dict((await self.result(session, str(run["run_id"]), wait)).body)

    async def git_ready(self) -> tuple[AgentSession, Pair, GitServer, str]:
        """A connector and an action for git, with a server; the session, and a commit to push."""
        pair = Pair.made(self.home.project)
        server = GitServer(pair.bare.parent)
        listening: Any = self.reactor.listenTCP(0, cast("Any", Site(server)), interface="127.0.0.1")
        self.addCleanup(listening.stopListening)
        port = listening.getHost().port
        connector = GIT
        for old, new in (
            ("https://github.com/me/site.git", f"http://127.0.0.1:{port}/site.git"),
            ('"github.com:443"]', f'"127.0.0.1:{port}"]\nprivate_network = true'),
            ("/home/me/site", str(pair.work)),
        ):
            self.assertIn(old, connector)
            connector = connector.replace(old, new)
        commit = pair.commit("index.html", "<b>new</b>\n", "Say something new")
        return await self.made_ready(connector, PUSH, f"ann:{TOKEN}"), pair, server, commit

    def check_kept(self) -> None:
        """Nothing that is kept, logged or recorded holds the secret, in any of the forms in which it was sent."""
        forms = (TOKEN.encode(), b64encode(f"ann:{TOKEN}".encode()))
        files = [path for path in self.home.root.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 5)
        self.assertEqual([path for path in files for form in forms if form in path.read_bytes()], [])

    async def test_push(self) -> None:
        """A push shows its patch, happens once it is approved, and what was committed since is asked about anew."""
        session, pair, server, commit = await self.git_ready()
        old = pair.remote()
        run = await self.begun(session, "push-site", branch="main")
        shown = json.dumps(run)
        for words in ("+<b>new</b>", "Say something new", "1 files changed, 1 lines added", commit, str(old)):
            self.assertIn(words, shown)
        self.assertNotIn(TOKEN, shown)
        later = pair.commit("index.html", "<b>newer</b>\n", "Say something newer")
        await self.operator("approval", "approve", str(run["run_id"]), "--yes", code=1)
        self.assertEqual(pair.remote(), old)
        again = dict(await self.told("approval", "show", str(run["run_id"])))
        self.assertIn("+<b>newer</b>", json.dumps(again))
        await self.approve(str(run["run_id"]))
        ended = await self.ended(session, run)
        self.assertEqual(ended["result"]["output"], {"ref": "refs/heads/main", "old": old, "new": later}, ended)
        self.assertEqual(pair.remote(), later)
        self.assertEqual(sum(method == "POST" for method, *_ in server.asked), 1)
        self.assertIn(b64encode(f"ann:{TOKEN}".encode()).decode(), server.asked[-1][2])
        self.check_kept()

    async def test_lost_answer(self) -> None:
        """A push whose answer is lost is unknown at first, and is then found where the branch is."""
        session, pair, server, commit = await self.git_ready()
        run = await self.begun(session, "push-site", branch="main")
        server.fault = "dies_after"
        await self.approve(str(run["run_id"]), code=1)
        await self.until_settled(session, run)
        ended = await self.ended(session, run)
        self.assertEqual((ended["status"], pair.remote()), ("completed", commit), ended)
        types = [each["type"] for each in await self.audit()]
        self.assertIn("execution.unknown", types)

    async def until_settled(self, session: AgentSession, run: Mapping[str, Any]) -> None:
        """Wait until a run in doubt is found out about."""
        for _ in range(40):
            if (await self.ended(session, run, 0))["status"] == "completed":
                return
            await self.pause(0.5)

    async def test_program(self) -> None:
        """A program shows what would run, runs once it is approved, and its end means what the file says."""
        connector = PROGRAM.format(directory=self.home.project, python=sys.executable, code=CODE)
        session = await self.made_ready(connector, DEPLOY, TOKEN)
        shown = (await self.operator("connector", "show", "local://me/deploy")).stdout
        self.assertIn("in the environment variable DEPLOY_TOKEN", shown)
        for code, state in ((0, "completed"), (2, "failed"), (1, "unknown")):
            run = await self.begun(session, "deploy", version="1.0; rm -rf /", code=code)
            text = json.dumps(run)
            for words in ("1.0; rm -rf /", str(self.home.project), "environment variable DEPLOY_TOKEN", "sandbox"):
                self.assertIn(words, text)
            self.assertNotIn(TOKEN, text)
            await self.approve(str(run["run_id"]), code=int(code != 0))
            ended = await self.ended(session, run)
            self.assertEqual(ended["status"], state, ended)
            if code == 0:
                expected = f"['1.0; rm -rf /', '0'] {len(TOKEN)}\n"
                self.assertEqual(ended["result"]["output"]["stdout"], expected)
        self.check_kept()
