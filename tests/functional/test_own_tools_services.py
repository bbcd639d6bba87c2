"""Agents' own tools at other services: C{glab}, the SDKs of GitLab, Slack and Stripe, and curl at any service."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, cast

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.web.resource import Resource
from twisted.web.server import Site
from twisted.web.vhost import NameVirtualHost

from tests.connectors.repository import GitServer, Pair, git
from tests.extent import seldom
from tests.functional import canary
from tests.functional.install import glab, sdks
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.listings.reading import find_listings, pages
from tests.functional.operated import PASSPHRASE, kinds
from tests.functional.process import Finished
from tests.functional.reactor import until
from tests.functional.rest import RestService
from tests.functional.test_own_tools import Inside, OwnToolsTestCase
from tests.functional.test_own_tools_git import CONNECTOR

PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
_CUSTOMERS = "https://api.stripe.com/v1/customers"
_PROJECT = "/api/v4/projects/acme%2Fweb"
_ISSUE: Mapping[str, Any] = {
    "id": 77,
    "iid": 8,
    "title": "Crash",
    "state": "opened",
    "created_at": "2026-11-30T10:00:00Z",
    "author": {"username": "me"},
    "references": {"full": "acme/web#8", "relative": "#8"},
    "web_url": "https://gitlab.com/acme/web/-/issues/8",
}
_GITLAB = """
import gitlab, os
project = gitlab.Gitlab("https://gitlab.com", private_token=os.environ["GITLAB_TOKEN"]).projects.get("acme/web")
print(project.issues.create({"title": "Crash"}).iid)
"""
_SLACK = """
import os, slack_sdk
client = slack_sdk.WebClient(os.environ["SLACK_BOT_TOKEN"])
print(client.conversations_history(channel="C1")["messages"])
print(client.chat_postMessage(channel="C1", text="Hi")["ts"])
"""
_STRIPE = """
import os, stripe
stripe.ca_bundle_path = os.environ["SSL_CERT_FILE"]
client = stripe.StripeClient(os.environ["STRIPE_API_KEY"])
print(len(client.v1.customers.list().data))
print(client.v1.customers.create({"name": "Ada"}).id)
"""


@attrs.frozen
class Added:
    """A service that the user adds.

    :ivar host: the host of its double.
    :ivar file: the text of its connector's file, if it does not come with Aileron.
    """

    name: str
    connector: str
    host: str
    double: Resource
    secret: str
    file: str = ""


class Split(Resource):
    """A host whose API and whose git are served by two."""

    isLeaf = True

    def __init__(self, api: Resource, others: Resource) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.api, self.others = api, others

    def render(self, request: Any) -> Any:
        """Have one of the two answer."""
        return (self.api if request.path.startswith(b"/api/") else self.others).render(request)


class ServicesTestCase(OwnToolsTestCase):
    """A user of other services, which are doubles."""

    skip = None

    async def furnish_services(self, *services: Added) -> None:
        """Have a daemon, and these services with their credentials."""
        self.services = [each.name for each in services]
        hosts: Any = NameVirtualHost()
        for each in services:
            hosts.addHost(each.host.encode(), each.double)
        site = cast(IProtocolFactory, Site(hosts))
        self.behind = (await Internet.open(self, sorted({each.host for each in services}), {HTTPS: site})).prefix
        await self.operator("vault", "init")
        await self.set_config("own_tools: {hold_seconds: 1}\n")
        for each in services:
            if each.file:
                path = self.home.root / f"{each.name}.toml"
                path.write_text(each.file)
                await self.operator("connector", "add", str(path), "--yes")
            words = ("binding", "setup", each.connector, "--secret-fd", "4")
            command = self.home.with_passphrase(PASSPHRASE, "aileron", *words)
            bound = attrs.evolve(command, feeds={**command.feeds, 4: each.secret.encode()})
            self._expect(await self.run_command(bound), 0)
            await self.operator("own-tools", "add", each.name, "--yes")

    def enter(self, *options: str, **environment: str) -> Inside:
        """Launch the agent."""
        inside = ("aileron", "launch", "--sandbox", "--own-tools", ",".join(self.services), *options, "opencode")
        command, programs = self.home.script(*inside), self.write_agent()
        path = f"{programs}:{glab().parent}:{command.environment['PATH']}"
        theirs = {**command.environment, "PATH": path, "PYTHONPATH": str(sdks()), "NO_PROMPT": "1", **environment}
        return Inside(self, self.start(attrs.evolve(command, environment=theirs)))

    def write(self, name: str, text: str) -> str:
        """Put a program into the project, and return the command that runs it."""
        (self.home.project / name).write_text(text)
        return f"{PYTHON} {name}"

    async def ask_and_approve(self, inside: Inside, script: str, double: RestService) -> tuple[Finished, Finished, str]:
        """Have a command wait, approve it and have it run again. Return both, and the approval as it is shown."""
        before = len(double.effects)
        parked = await inside.run(script)
        self.assertEqual(len(double.effects), before, parked)
        (approval,) = await self.pending()
        shown = json.dumps(await self.told("approval", "show", approval["id"]))
        self.assertIn(f"/approvals/{approval['id']}", parked.stdout + parked.stderr)
        await self.approve(approval["id"])
        await until(self.reactor, lambda: len(double.effects) > before, 30, "the effect")
        again = await inside.run(script)
        self.assertEqual(len(double.effects), before + 1, again)
        return parked, again, shown

    async def end(self, inside: Inside, *doubles: RestService) -> None:
        """End the agent, and check that no credential was missing, or is where it should not be."""
        await inside.end()
        events = json.dumps(await self.audit())
        for each in doubles:
            secret = each.credential[1].rpartition(" ")[2]
            self.assertEqual(each.refused, [])
            self.assertNotIn(secret, events)
            self.assertEqual(canary.in_files(self.home.aileron, secret), [])


class AnyServiceTests(ServicesTestCase):
    """The connector that C{doc/own-tools.md} shows, with curl and Stripe's SDK.

    :ivar changed: a part of the connector's file, and what is in its place.
    """

    changed = ("", "")

    async def begin(self, hold_seconds: int = 2) -> None:
        """Add the service, with the page's own file."""
        (text,) = find_listings((pages() / "own-tools.md").read_text("utf-8"), "toml")
        text = text.replace(*self.changed)
        customer = {"id": "cus_1", "object": "customer"}
        answers: dict[str, Any] = {
            "GET /v1/customers": {"object": "list", "data": []},
            "POST /v1/customers": customer,
        }
        self.stripe = RestService(("Authorization", "Bearer sk_canary_51307"), answers)
        service = Added("stripe", "local://me/stripe", "api.stripe.com", self.stripe, "sk_canary_51307", text)
        await self.furnish_services(service)

    async def test_curl(self) -> None:
        """curl reads at once. What it changes waits, as the declared operation that it is, or as it is sent."""
        await self.begin()
        inside = self.enter()
        curl = 'curl -sS -u "$STRIPE_API_KEY:"'
        read = await inside.run(f"{curl} {_CUSTOMERS}")
        self.assertEqual(json.loads(read.stdout)["data"], [])
        parked, again, shown = await self.ask_and_approve(inside, f"{curl} -d name=Ada {_CUSTOMERS}", self.stripe)
        self.assertIn("waits for the user's approval", json.loads(parked.stdout)["error"]["message"])
        self.assertEqual(json.loads(again.stdout)["id"], "cus_1")
        self.assertIn("create_customer", shown)
        _, _, shown = await self.ask_and_approve(inside, f"{curl} -X DELETE {_CUSTOMERS}/cus_1", self.stripe)
        self.assertIn("DELETE api.stripe.com/v1/customers/cus_1", shown)
        refused = await inside.run(f"{curl} -d token=tok_1 {_CUSTOMERS}; {curl} https://api.stripe.com/login")
        self.assertIn("a credential of its own", refused.stdout)
        self.assertIn("Only requests under /v1 and /v2", refused.stdout)
        await self.end(inside, self.stripe)
        self.assertEqual(self.stripe.reads, ["GET /v1/customers"])
        self.assertEqual(self.stripe.effects, ["POST /v1/customers name=Ada", "DELETE /v1/customers/cus_1"])

    @seldom
    async def test_raw_refused(self) -> None:
        """Without C{raw} only declared operations are asked for."""
        self.changed = ('raw = "ask"\n', "")
        await self.begin()
        inside = self.enter()
        curl = 'curl -sS -u "$STRIPE_API_KEY:"'
        refused = await inside.run(f"{curl} -X DELETE {_CUSTOMERS}/cus_1")
        self.assertIn("none of the operations", json.loads(refused.stdout)["error"]["message"])
        await self.ask_and_approve(inside, f"{curl} -d name=Ada {_CUSTOMERS}", self.stripe)
        await self.end(inside, self.stripe)

    @seldom
    async def test_sdk(self) -> None:
        """Stripe's SDK reads and asks. Its key differs when the command runs again, and the answer is the same."""
        await self.begin()
        inside = self.enter()
        parked, again, _ = await self.ask_and_approve(inside, self.write("customers.py", _STRIPE), self.stripe)
        self.assertIn("waits for the user's approval", parked.stderr)
        self.assertEqual(again.stdout.split(), ["0", "cus_1"])
        await self.end(inside, self.stripe)
        self.assertTrue(self.stripe.keys[0])


class GitlabTests(ServicesTestCase):
    """GitLab's API, by curl, C{glab} and python-gitlab, with git at the same host."""

    async def begin(self, hold_seconds: int = 2) -> None:
        """Add the API and git, at one host."""
        answers: dict[str, Any] = {
            f"GET {_PROJECT}": {"id": 5, "path_with_namespace": "acme/web", "issues_enabled": True},
            f"GET {_PROJECT}/issues": [_ISSUE],
            f"GET {_PROJECT}/variables": [{"key": "A", "value": "variable-canary"}],
            f"POST {_PROJECT}/issues": _ISSUE,
            "POST /api/v4/projects/5/issues": _ISSUE,
        }
        self.api = RestService(("Private-Token", "glpat-canary_51307"), answers)
        self.pair = Pair.made(self.home.root / "remote")
        git(self.pair.bare, "config", "uploadpack.allowFilter", "true")
        split = Split(self.api, GitServer(self.pair.bare.parent, "refuses"))
        file = CONNECTOR.replace("github.com", "gitlab.com").replace("git-hub", "git-lab")
        await self.furnish_services(
            Added("gitlab", "builtin://gitlab", "gitlab.com", split, "glpat-canary_51307"),
            Added("git-lab", "local://me/git-lab", "gitlab.com", split, "oauth2:glpat-canary_77190", file),
        )

    @seldom
    async def test_curl(self) -> None:
        """A project is one segment of the path. Its variables are asked for. git clones from the same host."""
        await self.begin()
        inside = self.enter()
        url = f"https://gitlab.com{_PROJECT}"
        curl = 'curl -sS -H "Private-Token: $GITLAB_TOKEN"'
        read = await inside.run(
            f"{curl} {url}/issues && cd /tmp && git clone -q https://gitlab.com/site.git && ls site"
        )
        self.assertIn("Crash", read.stdout)
        self.assertIn("README", read.stdout)
        _, _, shown = await self.ask_and_approve(inside, f"{curl} -d title=Crash {url}/issues", self.api)
        self.assertIn(f"POST gitlab.com{_PROJECT}/issues", shown)
        asked = await inside.run(f"{curl} {url}/variables")
        self.assertIn("waits for the user's approval", asked.stdout)
        self.assertNotIn("variable-canary", asked.stdout)
        foreign = await inside.run(f"curl -sS -H 'Job-Token: {'x' * 20}' {url}")
        self.assertIn("a credential of its own", foreign.stdout)
        await self.end(inside, self.api)
        self.assertEqual(self.api.reads, [f"GET {_PROJECT}/issues"])

    @seldom
    async def test_glab(self) -> None:
        """glab lists and opens issues without a login; the file with the user's own is empty."""
        stored = self.home.user / ".config" / "glab-cli"
        stored.mkdir(parents=True)
        (stored / "config.yml").write_text("hosts:\n    gitlab.com:\n        token: glpat-stored\n")
        (stored / "config.yml").chmod(0o600)
        await self.begin()
        inside = self.enter()
        listed = await inside.run(f"glab issue list -R acme/web; cat {stored}/config.yml")
        self.assertIn("Crash", listed.stdout, listed)
        self.assertNotIn("glpat-stored", listed.stdout)
        create = "glab issue create -R acme/web -t Crash -d Body --yes"
        parked, again, shown = await self.ask_and_approve(inside, create, self.api)
        self.assertIn("waits for the user's approval", parked.stderr)
        self.assertIn("Open issue in acme/web: Crash", shown)
        self.assertIn(_ISSUE["web_url"], again.stdout)
        await self.end(inside, self.api)

    test_glab.skip = None if glab().exists() else f"{glab()} is not installed"  # type: ignore[attr-defined]

    @seldom
    async def test_sdk(self) -> None:
        """python-gitlab opens an issue."""
        await self.begin()
        inside = self.enter()
        parked, again, shown = await self.ask_and_approve(inside, self.write("issue.py", _GITLAB), self.api)
        self.assertIn("waits for the user's approval", parked.stderr)
        self.assertEqual(again.stdout, "8\n")
        self.assertIn("Open issue in 5: Crash", shown)
        await self.end(inside, self.api)


class SlackTests(ServicesTestCase):
    """Slack's API by its SDK for Python."""

    @seldom
    async def test_sdk(self) -> None:
        """It reads by POST at once; a message waits, and the program is told so in Slack's way."""
        history = "POST /api/conversations.history"
        answers: dict[str, Any] = {
            history: {"ok": True, "messages": []},
            "POST /api/chat.postMessage": {"ok": True, "ts": "1.2", "channel": "C1"},
        }
        slack = RestService(("Authorization", "Bearer xoxb-canary-51307"), answers, history)
        await self.furnish_services(Added("slack", "builtin://slack", "slack.com", slack, "xoxb-canary-51307"))
        inside = self.enter()
        parked, again, shown = await self.ask_and_approve(inside, self.write("post.py", _SLACK), slack)
        self.assertIn("waits for the user's approval", parked.stderr)
        self.assertIn("Post to C1: Hi", shown)
        self.assertEqual(again.stdout, "[]\n1.2\n")
        by_get = await inside.run("curl -sS 'https://slack.com/api/chat.postMessage?channel=C1&text=Hi'")
        self.assertIn("pending_approval", by_get.stdout)
        await self.end(inside, slack)
        self.assertEqual(kinds(await self.audit()).count("own_tools.read"), 2)
        self.assertEqual(len(slack.effects), 1)
