"""A browser's login that may only read, used for what it may not."""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing

from twisted.internet.threads import deferToThread

from aileron.api._sites import operator_routes
from aileron.api.guard import Who
from aileron.api.roles import ACCOUNT_ONLY
from aileron.client import Connections
from aileron.features import FeatureSet
from aileron.web._table import PAGES
from tests.attacks.test_operator_door import DoorTestCase
from tests.functional.browser import Browser, come, exchange
from tests.functional.operated import GATED

_STREAM = "/v1/events"
_SPELLINGS = (
    "{}/",
    "/{}",
    "/.{}",
    "{};x=1",
    "{}%20",
    "/V1{rest}",
    "/fragments{}",
    "/v1/{}",
    "{}/../decide",
    "/handover/..{}",
)
"""Other spellings of a path, in which a check by the path would find another one."""


class WatchingTests(DoorTestCase):
    """Whoever has the browser of a lapsed login, or a part of what it has."""

    async def page_of_code(self) -> str:
        """The page of a browser that sends a new code."""
        connections = Connections(self.reactor)
        try:
            operator = connections.operator(self.url, await self.operator_token())
            code = (await operator.post("operator", "handover"))["code"]
        finally:
            await connections.close()
        return f'action="{self.url}/handover" name="code" value="{code}"'

    async def let_in(self) -> Browser:
        """A browser whose words were typed."""
        connections = Connections(self.reactor)
        try:
            operator = connections.operator(self.url, await self.operator_token())
            code = (await operator.post("operator", "handover"))["code"]
            browser = await deferToThread(come, f'action="{self.url}/handover" name="code" value="{code}"')
            assert isinstance(browser, Browser)
            words = await deferToThread(browser.words)
            await operator.post("operator", "handover", "confirm", body={"words": words})
        finally:
            await connections.close()
        return browser

    async def test_every_route(self) -> None:
        """After the lock it reads, and every route that does not name it refuses it by a class of its own."""
        await self.begin()
        browser = await self.let_in()
        self.assertEqual((await deferToThread(browser.ask, f"{self.url}/v1/vault/lock", {}))[0], 200)
        self.assertEqual((await deferToThread(browser.ask, f"{self.url}/v1/runs"))[0], 200)
        self.assertEqual((await deferToThread(browser.ask, f"{self.url}/fragments/approvals"))[0], 200)
        tried = 0
        for endpoint, allowed in operator_routes().endpoints:
            if allowed & (Who.WATCHER | Who.ANYONE):
                continue
            url = self.url + re.sub(r"<[^>]+>", "x", endpoint.path)
            body: dict[str, object] | None = None if endpoint.method == "GET" else {}
            status, answer = await deferToThread(browser.ask, url, body, endpoint.method)
            self.assertEqual((status, answer["error"]["class"]), (401, "login_lapsed"), f"{endpoint.method} {url}")
            tried += 1
        self.assertGreater(tried, 25)
        self.assertEqual(len(await self.events("operator.login_lapsed")), 1)

    async def test_stolen_cookie(self) -> None:
        """Who has the cookie of a login, and a code of its own, has nobody else's login decide again."""
        await self.begin()
        victim = await self.let_in()
        action, _, code = re.findall(r'"([^"]+)"', await self.page_of_code())
        headers = {"Origin": "null", "Content-Type": "application/x-www-form-urlencoded"}
        status, cookie, text = await deferToThread(exchange, action, f"code={code}", headers)
        self.assertEqual(status, 200)
        page_key = re.findall(r"page-key&quot;: &quot;([\w-]+)", text)[0]
        body = json.dumps({"page_key": page_key})
        thief = await self.let_in()
        for signing in (thief.signing, None):
            stolen = f"{cookie.partition(';')[0]}; {victim.cookie}={victim.signing.cookie}"
            proof = (
                {} if signing is None else {"X-Aileron-Proof": signing.proof("POST", "/handover/key", body.encode())}
            )
            sent = {"Cookie": stolen, "Content-Type": "application/json", **proof}
            status, _, text = await deferToThread(exchange, f"{self.url}/handover/key", body, sent)
            self.assertEqual(status, 401, text)
        self.assertEqual(await self.events("operator.login_raised"), [])

    async def watching(self) -> tuple[Browser, str, str]:
        """A browser that only reads, with the session and the id of a request that waits."""
        await self.furnish()
        self.url = str(self.home.discovery()["operator_url"])
        self.agent = await self.session("opencode")
        run_id = await self.ask()
        browser = await self.let_in()
        self.assertEqual((await deferToThread(browser.ask, f"{self.url}/v1/vault/lock", {}))[0], 200)
        return browser, self.agent.id, run_id

    def stored(self) -> Mapping[str, list[tuple[object, ...]]]:
        """Every row of the database, by table."""
        with closing(sqlite3.connect(f"file:{self.state.database}?mode=ro", uri=True)) as database:
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}

    async def test_reads_alone(self) -> None:
        """It reads every route and page; nothing is stored, not even that a file changed, and no service is asked."""
        browser, session_id, run_id = await self.watching()
        self.assertEqual((await deferToThread(browser.ask, f"{self.url}/v1/runs"))[0], 200)
        changed = self.action_file(GATED, gated=True, before="Changed: ").read_text()
        (self.state.actions / f"{GATED}.md").write_text(changed)
        posted = len(self.workspace.requests)
        before = self.stored()
        parts = {"run_id": run_id, "approval_id": run_id, "session_id": session_id, "name": GATED}
        found = []
        for name, path in readable():
            filled = re.sub(r"<(?:\w+:)?(\w+)>", lambda part: parts.get(part[1], "x"), path)
            for method in ("GET", "HEAD"):
                headers = browser.signing.headers(browser.cookie, method, filled)
                status, _, _ = await deferToThread(exchange, self.url + filled, None, headers, method)
                self.assertIn(status, (403,) if name in ACCOUNT_ONLY else (200, 404), f"{method} {filled}")
                found.append(status)
        self.assertGreater(found.count(200), 60)
        self.assertEqual(self.stored(), before)
        self.assertEqual(len(self.workspace.requests), posted)

    async def test_other_spellings(self) -> None:
        """No other spelling of the path, method or header decides, snoozes or resumes for it."""
        browser, _, run_id = await self.watching()
        shown = (await deferToThread(browser.ask, f"{self.url}/v1/action-approvals/{run_id}"))[1]
        body = {"approved": True, "digest": shown["digest"]}
        before = self.stored()
        for path in (f"/v1/action-approvals/{run_id}/decide", f"/v1/action-approvals/{run_id}/snooze", "/v1/resume"):
            for spelling in ("{}", *_SPELLINGS):
                address = self.url + spelling.format(path, rest=path.removeprefix("/v1"))
                for method in ("POST", "GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"):
                    status, _ = await deferToThread(browser.ask, address, None if method == "GET" else body, method)
                    self.assertIn(status, (400, 401, 404, 405, 415), f"{method} {address}")
        lapsed = [row for row in self.stored()["audit_events"] if row not in before["audit_events"]]
        self.assertEqual([row for row in lapsed if "operator.refused" not in row], [])
        self.assertEqual((await self.outcome(run_id))[0], "pending_approval")

    async def test_stream_ends(self) -> None:
        """An event stream that it follows goes on after the lapse, and ends with the login."""
        await self.begin()
        browser = await self.let_in()
        headers = browser.signing.headers(browser.cookie, "GET", _STREAM)
        followed = deferToThread(exchange, self.url + _STREAM, None, headers)
        await self.command("vault", "lock")
        await self.pause(1)
        self.assertFalse(followed.called)
        status, _ = await deferToThread(browser.ask, f"{self.url}/v1/operator/logout", {})
        self.assertEqual(status, 200)
        status, _, text = await followed
        self.assertEqual(status, 200)
        self.assertIn("operator.login_lapsed", text)
        self.assertNotIn("operator.logout", text)

    async def test_foreign_cookies(self) -> None:
        """Its cookie under another name, or that of another login, opens nothing; cookies beside its own do no harm."""
        await self.begin()
        browser, other = await self.let_in(), await self.let_in()
        name, own, foreign = browser.cookie, browser.signing.cookie, other.signing.cookie
        for cookies, expected in (
            (f"{name}={own}", 200),
            (f"aileron_0000000000000000={own}", 401),
            (f"__Host-{name}={own}", 401),
            (f"{name.upper()}={own}", 401),
            (f"{name}={foreign}", 401),
            (f"{name}=; {name}=x; {name}={own}", 200),
            (f"{name}={own}; {name}={foreign}", 200),
        ):
            headers = {**browser.signing.headers(name, "GET", "/v1/runs"), "Cookie": cookies}
            status, _, text = await deferToThread(exchange, f"{self.url}/v1/runs", None, headers)
            self.assertEqual(status, expected, f"{cookies}: {text}")


def readable() -> Iterator[tuple[str, str]]:
    """Names and paths of what such a login may read: routes, and pages."""
    for endpoint, allowed in operator_routes().endpoints:
        if endpoint.method == "GET" and Who.WATCHER in allowed and endpoint.path != _STREAM:
            yield endpoint.name, endpoint.path
    yield from ((path, f"/fragments{path}") for path in (*PAGES, *FeatureSet().pages()))
