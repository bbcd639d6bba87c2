"""Requests made by hand to both sites: with all that an agent was given, and with tricks of paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
from twisted.internet.defer import Deferred

from aileron.features import FeatureSet
from aileron.web._table import fragments, shown
from tests.attacks.case import AttackTestCase
from tests.functional.operated import GATED, SHIP, AgentSession

_JSON = "Content-Type: application/json"
_MARK = "CANARY-of-a-waiting-call"
_NAVIGATES = "Sec-Fetch-Mode: navigate"
_PARAMETER = re.compile(r"[<{](?:\w+:)?\w+[>}]")


# Sends each request of a file on a connection of its own; the status of each (0: none came), and the whole answer.
_SEND = """
import json, socket, sys
def answered(port, request):
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as connection:
            connection.sendall(request.encode("latin-1"))
            came = connection.makefile("rb").read()
    except ConnectionError:
        return [0, ""]
    words = came.split(b" ", 2)
    return [int(words[1]) if len(words) > 1 else 0, came.decode("utf-8", "replace")]
with open(sys.argv[1]) as asked:
    print(json.dumps([answered(*each) for each in json.load(asked)]))
"""


@attrs.frozen
class Asked:
    """One request.

    :ivar lines: of its head, below the request line; Host and Connection are added.
    """

    site: str
    target: str
    lines: tuple[str, ...] = ()
    method: str = "GET"
    body: str = ""

    def text(self) -> str:
        """The bytes, a character each."""
        host = f"Host: {urlsplit(self.site).netloc}"
        length = (f"Content-Length: {len(self.body)}",) if self.body else ()
        lines = (
            f"{self.method} {self.target} HTTP/1.1",
            host,
            "Connection: close",
            *length,
            *self.lines,
            "",
            self.body,
        )
        return "\r\n".join(lines)


@attrs.frozen
class Answered:
    """What came back; C{status} is 0 where nothing did."""

    status: int
    text: str


class RequestsCase(AttackTestCase):
    """A user with a call that waits, and the agent that asked for it."""

    given: AgentSession
    run_id: str

    def setUp(self) -> Any:
        """Begin."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def begin(self) -> None:
        """Have the agent ask."""
        await self.furnish()
        self.given = await self.session()
        asked = await self.run_action(self.given, GATED, {**SHIP, "summary": _MARK})
        self.run_id = str(asked.body["run_id"])
        self.agents, self.operators = self.sites()

    def keys(self) -> Sequence[str]:
        """All that the agent was given, or can read, each the way in which a credential is shown."""
        found = self.home.discovery()
        keys = (self.given.token, self.given.gateway_key, str(found["launch_key"]))
        token, browser = (
            "Authorization: Bearer {0}",
            f"Cookie: aileron_{found['instance']}={{0}}\r\nX-Aileron-Proof: {{0}}",
        )
        shown = (token, browser, f"{token}\r\n{browser}")
        return [way.format(key) for key in keys for way in shown]

    async def assert_untouched(self) -> None:
        """The call waits still, the vault is open, nothing left."""
        (waits,) = await self.waiting()
        self.assertEqual((waits["id"], (await self.status())["vault_state"]), (self.run_id, "unlocked"))
        self.assertEqual(self.workspace.requests, [])

    def assert_told_nothing(self, asked: Sequence[Asked], answers: Sequence[Answered]) -> None:
        """No answer holds a word of the call."""
        told = [each for each, answer in zip(asked, answers, strict=True) if _MARK in answer.text]
        self.assertEqual(told, [])

    def decision(self) -> str:
        """The body of an approval."""
        return json.dumps({"approved": True})

    async def send(self, asked: Sequence[Asked]) -> list[Answered]:
        """The answer to each."""
        path = Path(self.home.project) / "asked.json"
        path.write_text(json.dumps([[urlsplit(each.site).port, each.text()] for each in asked]))
        found = [Answered(*each) for each in await self.attack(_SEND, str(path), seconds=120)]
        self.assertEqual(len(found), len(asked))
        return found

    def sites(self) -> tuple[str, str]:
        """The agent's, and the operator's."""
        found = self.home.discovery()
        return str(found["url"]), str(found["operator_url"])


class RouteTests(RequestsCase):
    """Every route of the operator's site, with all that an agent has."""

    async def test_operators_routes(self) -> None:
        """None is open to any credential of the agent's, however it is shown."""
        asked = [
            Asked(self.operators, path, (key, *((_JSON,) if method != "GET" else ())), method, self.body(method))
            for key in (*self.keys(), "X-Nothing: x")
            for method, path in await self.closed()
        ]
        self.assertGreater(len(asked), 500)
        answers = await self.send(asked)
        opened = [each for each, answer in zip(asked, answers, strict=True) if answer.status not in (401, 403)]
        self.assertEqual(opened, [])
        self.assert_told_nothing(asked, answers)
        await self.assert_untouched()

    async def test_pages(self) -> None:
        """A page that a navigation gets holds no word of what it is about."""
        asked = [
            Asked(self.operators, self.filled(rule), ("Sec-Fetch-Site: none", _NAVIGATES, *key))
            for rule in shown(FeatureSet())
            for key in ((), *((each,) for each in self.keys()))
        ]
        self.assert_told_nothing(asked, await self.send(asked))

    def body(self, method: str) -> str:
        """What is sent with it."""
        return "" if method == "GET" else self.decision()

    def filled(self, rule: str) -> str:
        """A path of the call that waits."""
        return _PARAMETER.sub(self.run_id, rule)

    async def routes(self, site: str) -> set[tuple[str, str]]:
        """Each method and path of a site that asks for a credential."""
        described = (await self.web.ask("GET", f"{site}/v1/openapi.json")).body
        return {
            (method.upper(), self.filled(path))
            for path, operations in described["paths"].items()
            for method, operation in operations.items()
            if operation["security"]
        }

    async def closed(self) -> list[tuple[str, str]]:
        """The operator's, fragments of pages among them."""
        drawn = [("GET", self.filled(rule)) for rule in (*fragments(FeatureSet()), "/handover/state")]
        return [*sorted(await self.routes(self.operators)), *drawn]


class PathTests(RequestsCase):
    """Other ways to write a path."""

    async def test_tricks(self) -> None:
        """None leads around the guard, to data or to a decision, on either site."""
        targets = ("/v1/runs", "/v1/action-approvals", f"/fragments/approvals/{self.run_id}", "/v1/audit")
        decide = f"/v1/action-approvals/{self.run_id}/decide"
        keys = ((), *((each,) for each in self.keys()[::3]))
        asked = [
            *(
                Asked(s, t, k)
                for s, k in product(self.sites(), keys)
                for t in self.tricks(*targets)
                if s != self.agents
            ),
            *(Asked(self.agents, t, k) for k in keys[:1] for t in self.tricks(*targets)),
            *(
                Asked(s, t, (*k, _JSON), "POST", self.decision())
                for s in self.sites()
                for k in keys
                for t in self.tricks(decide)
            ),
        ]
        answers = await self.send(asked)
        self.assert_told_nothing(asked, answers)
        done = [e for e, a in zip(asked, answers, strict=True) if e.method == "POST" and 200 <= a.status < 300]
        self.assertEqual(done, [])
        await self.assert_untouched()

    async def test_across_sites(self) -> None:
        """The agent's own route, by no trick, leads to what only the operator's site has."""
        bearer = f"Authorization: Bearer {self.given.token}"
        prefixes = (
            "/v1/actions/..",
            "/v1/runs/../..",
            "/s/x/..",
            f"/s/{self.given.gateway_key}/..",
            "/v1/actions/%2e%2e",
        )
        closed = ("/v1/action-approvals", "/v1/audit", "/fragments/approvals", "/v1/bindings", "/approvals")
        asked = [Asked(self.agents, f"{before}{path}", (bearer,)) for before, path in product(prefixes, closed)]
        answers = await self.send(asked)
        self.assertLessEqual({answer.status for answer in answers}, {400, 401, 403, 404, 405})
        self.assert_told_nothing(asked, answers)

    def tricks(self, *paths: str) -> Iterator[str]:
        """Each path, written so that somebody might take it for another."""
        for path in paths:
            first, _, rest = path[1:].partition("/")
            yield from (f"/{path}", f"/.{path}", f"/x/..{path}", f"{path}/.", f"{path}/", f"{path}//", f"{path}.")
            yield from (f"/{first}//{rest}", f"/{first}/./{rest}", f"/{first}/x/../{rest}", f"/{first}%2f{rest}")
            yield from (f"/%2e{path}", f"/{first.upper()}/{rest.upper()}", f"{path}%00", f"{path}%00.css", f"{path}%20")
            yield from (f"{path};x=y", f"{path}?x", f"{path}%3fx", f"{path}%23", f"\\{first}\\{rest}", f"{path}\\..")
            yield from (
                f"/static/..{path}",
                f"/static/%2e%2e{path}",
                f"/static/..%2f{first}/{rest}",
                f"{path}%0d%0aX:y",
            )
            yield from (f"http://{self.operators[7:]}{path}", f"{self.operators[7:]}{path}", f"*{path}", path[1:])
            yield from ("".join(f"%{ord(each):02x}" for each in path), f"/{first}/%C0%AF{rest}", f"{path}%E2%80%AE")
