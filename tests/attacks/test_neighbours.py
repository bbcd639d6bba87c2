"""Pages of other origins in the operator's own browser, beside the operator's page; cookies are shared by all ports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import Any

from tests.attacks.test_operator_door import SIBLING, DoorTestCase
from tests.extent import seldom
from tests.functional.chromium import Page
from tests.functional.loopback import Neighbour

_TARGETS = ("/v1/runs", "/v1/action-approvals", "/fragments/approvals", "/approvals", "/static/page.js", "/v1/health")
_CHANGES = (
    ("POST", "/v1/vault/lock"),
    ("POST", "/v1/operator/logout"),
    ("DELETE", "/v1/operator/sessions"),
    ("POST", "/v1/pause"),
    ("PUT", "/v1/caps/x"),
)
_TYPES = ("application/json", "text/plain", "application/x-www-form-urlencoded")
_ELEMENTS: Mapping[str, tuple[str, ...]] = {
    "img": ("/static/icon.svg", "/v1/runs"),
    "script": ("/static/page.js", "/v1/runs", "/fragments/approvals"),
    "link": ("/static/style.css",),
    "video": ("/v1/runs",),
}
# The first of these that happens to an element which a page makes.
_MADE = """new Promise((done) => {
  const element = document.createElement(%s);
  element.onload = () => done("load");
  element.onerror = () => done("error");
  element.rel = "stylesheet";
  element[%s] = %s;
  document.body.append(element);
  setTimeout(() => done("nothing"), 5000);
})"""
_SOCKET = """new Promise((done) => {
  const socket = new WebSocket(%s);
  socket.onopen = () => done("open");
  socket.onerror = () => done("error");
})"""
_STREAM = """new Promise((done) => {
  const source = new EventSource(%s, {withCredentials: true});
  source.onopen = () => done("open");
  source.onerror = () => done("error");
})"""
_FRAME = """new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.onload = () => done(frame.contentWindow.length);
  frame.src = %s;
  document.body.append(frame);
})"""

_COOKIES = """for (let n = 0; n < 8; n += 1)
  document.cookie = `c${n}=${"x".repeat(3900)}; domain=aileron.localhost; max-age=%s`"""


class NeighbourTests(DoorTestCase):
    """A page of another origin, which does all that a page can do to ours."""

    page: Page
    foreign: Page
    neighbour: Neighbour

    async def test_another_port(self) -> None:
        """One of the same host name, which browsers call the same site, and give our cookie, gets and does nothing."""
        await self.begin_beside()
        cookie = self.neighbour.cookies[self.host][-1]
        self.assertIn("aileron_", cookie, "no cookie went there: this shows nothing")
        await self.attack_all()
        await self.replay(cookie)
        await self.set_cookies(cookie.partition("=")[0])

    async def test_another_host(self) -> None:
        """One of another host name, which is another site to a browser, gets and does nothing."""
        await self.begin_beside()
        await self.attack_from("127.0.0.1")

    async def test_another_name(self) -> None:
        """One of a name beside ours, which browsers call the same site, gets no cookie, and gets and does nothing."""
        await self.begin_beside()
        await self.attack_from(SIBLING)

    @seldom  # it shows what the attacks' page says of such cookies
    async def test_cookies_for_all_names(self) -> None:
        """One of a name beside ours can set cookies for ours too: too large ones keep the user out, until they go."""
        await self.begin_beside()
        await self.foreign.open((await self.foreign.evaluate("location.href")).replace(self.host, SIBLING))
        await self.foreign.shows("neighbour")
        for age, shown in (("9999", "head is longer than"), ("0", "No pending approvals.")):
            await self.foreign.evaluate(_COOKIES % age)
            await self.page.reload()
            await self.page.shows(shown)

    async def attack_from(self, host: str) -> None:
        """Do everything from a page of another host name, to which no cookie of ours goes."""
        await self.foreign.open((await self.foreign.evaluate("location.href")).replace(self.host, host))
        await self.foreign.until(f"location.hostname === '{host}'")
        await self.foreign.shows("neighbour")
        await self.attack_all()
        told = self.neighbour.cookies[host]
        self.assertTrue(told, "it was not asked under that name: this shows nothing")
        self.assertNotIn("aileron_", " ".join(told))

    async def begin_beside(self) -> None:
        """The operator's page, logged in; another page; who serves it."""
        self.page, self.foreign, self.neighbour = await self.browse()

    async def attack_all(self) -> None:
        """Everything; afterwards the operator's page goes on, the vault is open, nobody logged out."""
        await self.read()
        await self.change()
        await self.listen()
        await self.embed()
        await self.frame()
        await self.look_into_a_window()
        await self.page.reload()
        await self.page.shows("No pending approvals.")
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        self.assertEqual(await self.events("operator.logout"), [])

    async def read(self) -> None:
        """Its fetch gets no answer, and none that the browser would only hide."""
        for path, mode in product(_TARGETS, ("cors", "no-cors", "same-origin")):
            status, text = await self.fetch(self.foreign, self.url + path, mode=mode, credentials="include")
            self.assertEqual((status, "Agents can request" in text), (0, False), (path, mode))

    async def change(self) -> None:
        """Nothing that it sends changes anything, whatever it calls it."""
        for (method, path), kind, mode in product(_CHANGES, _TYPES, ("cors", "no-cors")):
            sent: dict[str, Any] = {"method": method, "mode": mode, "credentials": "include", "body": "{}"}
            sent["headers"] = {"Content-Type": kind}
            self.assertEqual((await self.fetch(self.foreign, self.url + path, **sent))[0], 0, (method, path, kind))

    async def listen(self) -> None:
        """No socket and no event stream opens to it."""
        for path in (*_TARGETS, "/v1/events"):
            target = self.url + path
            socket = json.dumps(target.replace("http", "ws", 1))
            self.assertEqual(await self.foreign.evaluate(_SOCKET % socket), "error", path)
            self.assertEqual(await self.foreign.evaluate(_STREAM % json.dumps(target)), "error", path)

    async def embed(self) -> None:
        """No image, script, style sheet or sound of ours loads in it."""
        for element, paths in _ELEMENTS.items():
            for path in paths:
                place = "href" if element == "link" else "src"
                made = _MADE % tuple(map(json.dumps, (element, place, self.url + path)))
                self.assertEqual(await self.foreign.evaluate(made), "error", (element, path))

    async def frame(self) -> None:
        """No page of ours stands in a frame of it, where clicks could be led to our buttons."""
        paths = ("/approvals", "/trust", "/", "/static/page.js", "/nothing")
        for path in paths:
            await self.foreign.evaluate(_FRAME % json.dumps(self.url + path))
        shown = [*await self.frames_within(), *await self.frames_apart()]
        self.assertEqual(shown, ["chrome-error://chromewebdata/"] * len(paths))

    async def frames_within(self) -> list[str]:
        """What stands in the frames that the page's own process draws."""
        tree = (await self.foreign.call("Page.getFrameTree"))["frameTree"]
        return [str(each["frame"]["url"]) for each in tree.get("childFrames", [])]

    async def frames_apart(self) -> list[str]:
        """What stands in those that another process draws, since they are of another site."""
        targets = (await self.browser.call("Target.getTargets"))["targetInfos"]
        frames = [each["targetId"] for each in targets if each["type"] == "iframe"]
        return [await self.address_in(each) for each in frames]

    async def address_in(self, target: str) -> str:
        """Where a target believes to be."""
        given = {"targetId": target, "flatten": True}
        session = (await self.browser.call("Target.attachToTarget", given))["sessionId"]
        found = await self.browser.call("Runtime.evaluate", {"expression": "location.href"}, session)
        return str(found["result"]["value"])

    async def look_into_a_window(self) -> None:
        """A window of ours that it opens tells it nothing."""
        opening = f"window.ours = window.open({json.dumps(self.url + '/approvals')}); window.ours !== null"
        opened = await self.foreign.call("Runtime.evaluate", expression=opening, userGesture=True)
        self.assertTrue(opened["result"]["value"], "no window opened: this shows nothing")
        looked = "(() => { try { return window.ours.document.body.innerText } catch (e) { return e.name } })()"
        for _ in range(10):
            self.assertIn(await self.foreign.evaluate(looked), ("SecurityError", ""))
            await self.pause(0.1)

    async def replay(self, cookie: str) -> None:
        """Even with a signature that the operator's page sent, and the cookie, nothing is had."""
        proofs = {headers["X-Aileron-Proof"] for headers in self.page.headers if "X-Aileron-Proof" in headers}
        self.assertGreater(len(proofs), 1, "the page signed nothing: this shows nothing")
        for proof, path in product(sorted(proofs)[-3:], ("/fragments/approvals", "/v1/runs", "/v1/vault/lock")):
            body: Mapping[str, Any] | None = {} if path.endswith("lock") else None
            method = "GET" if body is None else "POST"
            url = self.url + path
            answered = await self.web.ask(method, url, None, body, Cookie=cookie, X_Aileron_Proof=proof)
            self.assertEqual(answered.status, 401, path)

    async def set_cookies(self, name: str) -> None:
        """A cookie of the daemon's name that another port sets is never taken for a session."""
        for value, path in product(("guess", "", "ail_o_guess"), ("/", "/v1", "/fragments")):
            await self.foreign.evaluate(f"document.cookie = {json.dumps(f'{name}={value}; path={path}')}")
            answered = await self.web.ask("GET", f"{self.url}/v1/runs", Cookie=f"{name}={value}")
            self.assertEqual(answered.status, 401)
