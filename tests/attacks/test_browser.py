"""What a browser offers beside requests: workers, frames of every kind, cookies of other names, history, timing."""

from __future__ import annotations

import json
from typing import Any

from tests.attacks.test_operator_door import SIBLING, DoorTestCase
from tests.functional.chromium import Page, PageError
from tests.functional.loopback import Neighbour

# Registers a worker, and says what became of it.
_REGISTER = """navigator.serviceWorker.register(%s, %s).then(
  (made) => made.unregister().then(() => "registered"), (error) => error.name)"""
_SCRIPTS = ("/static/page.js", "/static/live.js", "/v1/runs", "/approvals", "/fragments/approvals", "/nothing.js")
_WORKER = """new Promise((done) => {
  const worker = new %s(%s, {type: "module"});
  worker.onerror = () => done("error");
  setTimeout(() => done("runs"), 3000);
})"""
_FRAME = """new Promise((done) => {
  const frame = document.createElement(%s);
  frame.onload = frame.onerror = () => done(null);
  frame.type = "text/html";
  frame[frame.localName === "object" ? "data" : "src"] = %s;
  document.body.append(frame);
  setTimeout(() => done(null), 2000);
})"""
_SPECULATION = """(() => {
  const rules = document.createElement("script");
  rules.type = "speculationrules";
  const urls = %s;
  rules.textContent = JSON.stringify({prerender: [{source: "list", urls}], prefetch: [{source: "list", urls}]});
  document.head.append(rules);
})()"""
_TIMING = """fetch(%s, {mode: "no-cors", credentials: "include"}).catch(() => null).then(() =>
  performance.getEntriesByType("resource").filter((each) => each.name.startsWith(%s)).map(
    (each) => [each.transferSize, each.encodedBodySize, each.responseStatus, each.responseStart]))"""
_OPENED = """(() => {
  window.name = "mine";
  window.heard = [];
  addEventListener("message", ({ data }) => heard.push(data));
  window.ours = window.open(%s, "ours");
  return ours !== null;
})()"""
_MOVED = """(() => { try {
  ours.postMessage("approve", "*");
  ours.moveTo(0, 0);
  ours.resizeTo(300, 300);
  ours.focus();
  return ours.closed ? "apart" : String(ours.length);
} catch (error) { return error.name; } })()"""
_LANDING = "document.readyState !== 'complete' || document.getElementById('stuck') !== null"
_TOSS = "document.cookie = `%s=%s; domain=aileron.localhost; path=%s`"


class BrowserTests(DoorTestCase):
    """The operator's page, logged in, and a page of another origin beside it."""

    page: Page
    foreign: Page
    neighbour: Neighbour

    async def begin_beside(self) -> None:
        """Open both."""
        self.page, self.foreign, self.neighbour = await self.browse()

    async def still_works(self) -> None:
        """The operator's page is as it was, and nobody logged out."""
        await self.page.reload()
        await self.page.shows("No pending approvals.")
        self.assertEqual(await self.events("operator.logout"), [])

    async def test_no_worker(self) -> None:
        """From no page under the operator's address is a service worker registered, nor another worker begun.

        Not from the pages themselves, nor from the page of a link's landing, of an error, or of a static file.
        """
        await self.begin_beside()
        tab = await self.browser.page()
        for path in ("/approvals", "/nothing", "/static/icon.svg", "/v1/health"):
            await tab.open(self.url + path)
            await tab.until(f"location.pathname === {json.dumps(path)} && document.readyState === 'complete'")
            for script in _SCRIPTS:
                for options in ({}, {"scope": "/"}, {"type": "module", "scope": "/static/"}):
                    made = await tab.evaluate(_REGISTER % (json.dumps(script), json.dumps(options)))
                    self.assertIn(made, ("SecurityError", "TypeError"), (path, script, options))
            for kind in ("Worker", "SharedWorker"):
                begun = _WORKER % (kind, json.dumps("/static/view.js"))
                self.assertEqual(await tab.evaluate(begun), "error", (path, kind))
        self.assertEqual(await tab.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)"), 0)
        await self.still_works()

    async def test_no_worker_script(self) -> None:
        """Whatever a browser asks for as the script of a service worker is refused, and nothing widens its scope."""
        await self.begin()
        for path in ("/static/page.js", "/static/worker.js", "/", "/approvals", "/v1/health", "/v1/openapi.json"):
            for site in (self.url, str(self.home.discovery()["url"])):
                refused = await self.web.ask("GET", site + path, Service_Worker="script")
                self.assertEqual(refused.status, 403, (site, path))
                self.assertFalse(refused.headers.hasHeader("Service-Worker-Allowed"))

    async def test_frames(self) -> None:
        """No element of any kind that embeds a document shows one of ours."""
        await self.begin_beside()
        for element in ("object", "embed", "iframe", "frame", "portal", "fencedframe"):
            for path in ("/approvals", "/static/icon.svg"):
                await self.foreign.evaluate(_FRAME % (json.dumps(element), json.dumps(self.url + path)))
        tree = (await self.foreign.call("Page.getFrameTree"))["frameTree"]
        inside = [str(each["frame"]["url"]) for each in tree.get("childFrames", [])]
        self.assertEqual([each for each in inside if each.startswith(self.url)], [])
        targets = (await self.browser.call("Target.getTargets"))["targetInfos"]
        self.assertEqual(
            [each for each in targets if each["type"] == "iframe" and each["url"].startswith(self.url)], []
        )
        await self.still_works()

    async def test_a_window_of_ours(self) -> None:
        """Who opens a window of ours cannot move it under the pointer, send it a message, or learn of it.

        It is cut off from its opener, in both directions.
        """
        await self.begin_beside()
        opening = _OPENED % json.dumps(self.url + "/approvals")
        opened = await self.foreign.call("Runtime.evaluate", expression=opening, userGesture=True, returnByValue=True)
        self.assertTrue(opened["result"]["value"], "no window opened: this shows nothing")
        await self.foreign.until("ours.closed")
        self.assertIn(await self.foreign.evaluate(_MOVED), ("apart", "SecurityError"))
        target = await self.window_at(self.url + "/approvals")
        self.assertEqual(
            await self.evaluate_in(target, "[window.opener, window.name, document.referrer]"), [None, "", ""]
        )
        self.assertEqual(await self.foreign.evaluate("heard"), [])
        await self.still_works()

    async def window_at(self, url: str) -> str:
        """The target of the window at an address that is not the operator's own tab, once a page of ours is there.

        Before that the landing is at the same address.
        """
        mine = await self.page.call("Target.getTargetInfo")
        for _ in range(100):
            targets = (await self.browser.call("Target.getTargets"))["targetInfos"]
            others = [each for each in targets if each["targetId"] != mine["targetInfo"]["targetId"]]
            found = [str(each["targetId"]) for each in others if each["type"] == "page" and each["url"] == url]
            if found and await self.has_arrived(found[0]):
                return found[0]
            await self.pause(0.1)
        raise AssertionError(f"no window is at {url}: {targets}")

    async def has_arrived(self, target: str) -> bool:
        """Whether a page of ours is there whole, neither the landing nor nothing, as between the two."""
        try:
            return not await self.evaluate_in(target, _LANDING)
        except PageError as error:
            if not any(words in str(error) for words in ("execution context", "Inspected target navigated")):
                raise
            return False

    async def evaluate_in(self, target: str, expression: str) -> Any:
        """What an expression comes to there."""
        given = {"targetId": target, "flatten": True}
        session = (await self.browser.call("Target.attachToTarget", given))["sessionId"]
        asked = {"expression": expression, "returnByValue": True}
        return (await self.browser.call("Runtime.evaluate", asked, session))["result"]["value"]

    async def test_timing(self) -> None:
        """What the browser measures of requests to us says neither size nor status, logged in or not."""
        await self.begin_beside()
        told = set()
        for path in ("/v1/runs", "/fragments/approvals", "/nothing", "/v1/events"):
            asked = _TIMING % (json.dumps(self.url + path), json.dumps(self.url))
            told |= {tuple(each) for each in await self.foreign.evaluate(asked)}
        self.assertLessEqual({each[:3] for each in told}, {(0, 0, 0)})

    async def test_fetched_ahead(self) -> None:
        """A page that has ours fetched or drawn ahead of a click changes nothing, and gets no page of ours."""
        await self.begin_beside()
        urls = [self.url + path for path in ("/approvals", "/handover", "/v1/vault/lock", "/")]
        await self.foreign.evaluate(_SPECULATION % json.dumps(urls))
        await self.pause(1)
        targets = (await self.browser.call("Target.getTargets"))["targetInfos"]
        ahead = [each for each in targets if each.get("subtype") == "prerender" and each["url"].startswith(self.url)]
        self.assertEqual(ahead, [])
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        await self.still_works()

    async def test_cookies_of_another_name(self) -> None:
        """A page at a name beside ours sets cookies with our cookie's name for ours: the operator goes on."""
        await self.begin_beside()
        name = self.neighbour.cookies[self.host][-1].partition("=")[0]
        self.assertTrue(name.startswith("aileron_"), name)
        await self.foreign.open((await self.foreign.evaluate("location.href")).replace(self.host, SIBLING))
        await self.foreign.shows("neighbour")
        for path in ("/", "/fragments", "/v1", "/fragments/approvals"):
            await self.foreign.evaluate(_TOSS % (name, "evil", path))
        await self.still_works()

    async def test_after_logout(self) -> None:
        """After the end of a login the button Back leads to a page that shows nothing of it."""
        await self.begin_beside()
        await self.page.open((await self.foreign.evaluate("location.href")).replace(self.host, "127.0.0.1"))
        await self.page.shows("neighbour")
        await self.operator("operator", "revoke", "--all")
        await self.page.go_back()
        await self.page.until(f"location.href.startsWith({json.dumps(self.url)})")
        await self.page.shows("aileron open")
        self.assertNotIn("No pending approvals", await self.page.evaluate("document.body.innerText"))
