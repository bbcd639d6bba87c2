"""A browser's login that may only read, used for what it may not."""

import json
import re

from twisted.internet.threads import deferToThread

from aileron.api._sites import operator_routes
from aileron.api.guard import Who
from aileron.client import Connections
from tests.attacks.test_operator_door import DoorTestCase
from tests.functional.browser import Browser, come, exchange


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
