"""One session of a real agent that sends a mail, opens a pull request and posts to a channel, each approved."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.extent import seldom
from tests.functional import opencode
from tests.functional.loopback import LoopbackSite, headers_of, json_of
from tests.functional.operated import GATED, PASSPHRASE, SHIP
from tests.functional.script import Call, Say
from tests.functional.test_mail import MailTestCase

_KEY = "github-canary-5d1b20e7"
_MAIL = {"to": ["bob@other.example"], "subject": "Parser", "text": "The parser is out."}
_PULL = {"owner": "ada", "repo": "parser", "title": "Parser", "head": "fast", "base": "main", "body": "Twice as fast."}


class _GitHub(Resource):
    """Opens pull requests."""

    isLeaf = True

    def __init__(self) -> None:
        Resource.__init__(self)
        self.opened: list[Mapping[str, Any]] = []
        self.keys: list[str] = []

    def render_POST(self, request: Request) -> bytes:
        """Open one."""
        body = json_of(request)
        assert body is not None
        self.keys.append(headers_of(request)["authorization"])
        self.opened.append({"path": request.path.decode(), **body})
        request.setResponseCode(201)
        number = len(self.opened)
        return json.dumps({"number": number, "html_url": f"https://github.invalid/ada/parser/pull/{number}"}).encode()


class ServicesTests(MailTestCase):
    """OpenCode with three services."""

    async def connect_github(self, url: str) -> None:
        """The built-in connector's copy for another address, its action, and a key."""
        builtin = files("aileron.connectors") / "builtin"
        text = (builtin / "github.toml").read_text("utf-8")
        address = url.removeprefix("http://")
        for old, new in (
            ("builtin://github", "local://me/github"),
            ("https://api.github.com", url),
            ('"api.github.com:443"]', f'"{address}"]\nprivate_network = true'),
        ):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self._put_connector("github", text)
        name = "github-open-pull-request.md"
        path = self.home.project / name
        action = (builtin / "actions" / "github" / name).read_text("utf-8")
        path.write_text(action.replace("builtin://github", "local://me/github"))
        await self.add(path)
        await self.feed(_KEY, "binding", "setup", "local://me/github")

    @seldom  # test_mail sends mail, and test_gateway_agents has the agent at its work
    async def test_each_approved(self) -> None:
        """Nothing leaves before it is approved; then each arrives once, and the agent is told what came of it."""
        github = _GitHub()
        site = LoopbackSite.listen(self.reactor, github)
        self.finally_(site.stop)
        await self.connect()
        self.write_connector()
        await self.add(self.action_file(GATED, gated=True))
        await self.bind()
        await self.connect_github(site.url)
        calls = [Call("_send_mail", _MAIL), Call("_github_open_pull_request", _PULL), Call("_ship_update", SHIP)]
        llm = self.llm([*calls, Say("all done")])
        opencode.configure_user(self.home, opencode.configuration(llm.url))
        agent = self.launch()
        for sent in ((0, 0, 0), (1, 0, 0), (1, 1, 0)):
            (approval,) = await self.waiting(seconds=120)
            arrived = (len(self.server.received), len(github.opened), len(self.workspace.messages))
            self.assertEqual(arrived, sent)
            await self.approve(approval["id"])
        finished = await agent.finish(150)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["all done"]))
        ((recipient, message),) = self.server.received
        self.assertEqual((recipient, b"The parser is out." in message), ("bob@other.example", True))
        (pull,) = github.opened
        self.assertEqual(
            (pull["path"], pull["head"], github.keys), ("/repos/ada/parser/pulls", "fast", [f"Bearer {_KEY}"])
        )
        self.assertEqual(len(self.workspace.messages), 1)
        mailed, opened, posted = llm.script.received[-1].tool_results
        self.assertIn("message_id", mailed)
        self.assertEqual(json.loads(opened)["number"], 1)
        self.assertIn("ts", json.loads(posted))
        for secret in (_KEY, self.workspace.token, PASSPHRASE):
            self.assertNotIn(secret, finished.stdout + finished.stderr + json.dumps(llm.script.received[-1].body))
