"""A real browser, headless, told what to do over a pipe (the Chrome DevTools Protocol; no port, no driver program)."""

import atexit
import base64
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import deferLater
from twisted.python.failure import Failure

from tests.functional.home import Home
from tests.functional.install import BROWSER, browser, place
from tests.functional.process import LEAD, kill_group
from tests.functional.reactor import DeadlinePassedError, IKitReactor, Patience, until

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--window-size=1280,813",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-component-extensions-with-background-pages",
    "--disable-breakpad",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-sync",
    # Nor a process kept ready for a site that nobody opens.
    "--disable-features=SpareRendererForSitePerProcess,MediaRouter,OptimizationHints,Translate",
    # Threads of their own for compiling and collecting cost more than they spare in pages this small.
    "--js-flags=--single-threaded",
    "--remote-debugging-pipe",
)
_COMMANDS, _EVENTS = 3, 4
_CALL_SECONDS = 30.0
_CLICK_SECONDS = 30.0
_AT_REST = """(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const e = WANTED;
  if (e === null) return null;
  e.scrollIntoView({block: "center"});
  await frame();
  const before = e.getBoundingClientRect();
  await frame();
  const after = e.getBoundingClientRect();
  if (!e.isConnected || before.x !== after.x || before.y !== after.y) return null;
  window.clicked = false;
  window.aim = e;
  window.aimed = after;
  e.addEventListener("click", () => { window.clicked = true; }, {capture: true, once: true});
  const line = e.getClientRects()[0];  // of a link that is broken into lines, the first
  return [line.x + line.width / 2, line.y + line.height / 2];
})()"""
_HELD = """(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame();
  await frame();
  const now = aim.getBoundingClientRect();
  if (!aim.isConnected) return "was replaced";
  return now.x === aimed.x && now.y === aimed.y ? "" : `moved by ${now.x - aimed.x}, ${now.y - aimed.y} pixels`;
})()"""
"""What became of a target while the pointer was down on it, two frames later; nothing: it is where it was."""
_KEYS = {
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    "Space": (" ", 32, " "),
    "Escape": ("Escape", 27, ""),
    "End": ("End", 35, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
}


class PageError(AssertionError):
    """The page could not do what it was asked for."""


class Chromium(ProcessProtocol):
    """One browser with a profile of its own, from `start` until the interpreter's end."""

    _shared: ClassVar[dict[bool, "Chromium"]] = {}

    def __init__(self, reactor: IKitReactor) -> None:
        self._reactor = reactor
        self._context: str | None = None
        self._pid: int | None = None
        self._received = bytearray()
        self._errors = bytearray()
        self._calls: dict[int, Deferred[Mapping[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        self._over = False
        self._deaf: list[Any] = []

    @classmethod
    def start(
        cls,
        reactor: IKitReactor,
        profile: Path,
        environment: Mapping[str, str],
        behind: Sequence[str] = (),
        flags: Sequence[str] = (),
        *,
        notifies: bool = False,
    ) -> "Chromium":
        """Start one.

        :param profile: an empty directory, or one that an earlier browser has left.
        :param behind: the command that starts it, and hands its descriptors on.
        :param flags: further flags, such as names that lead to loopback.
        :param notifies: whether a service worker is to show notifications: the headless shell denies them, whatever
            permission is set.
        :raises AssertionError: there is no browser.
        """
        program = BROWSER if notifies else browser(place() / "opencode")
        if not program.exists():
            raise AssertionError(f"{program} is missing: python -m tests.functional.install DIRECTORY")
        started = cls(reactor)
        size = f"--window-size=1280,{900 if program == BROWSER else 813}"  # Chromium's own bars take 87 pixels
        arguments = (*LEAD, *behind, str(program), *_FLAGS, *flags, size, f"--user-data-dir={profile}", "about:blank")
        with open(os.devnull, "rb+") as nothing:
            silent = nothing.fileno()
            descriptors: dict[int, int | str] = {0: silent, 1: silent, 2: "r", _COMMANDS: "w", _EVENTS: "r"}
            started._pid = reactor.spawnProcess(
                started, arguments[0], arguments, dict(environment), str(profile), childFDs=descriptors
            ).pid
        return started

    @classmethod
    async def lend(cls, reactor: IKitReactor, *, notifies: bool = False) -> "Chromium":
        """The one of this process, as a user finds it who has never used it; `give_back` ends that.

        What a browser of its own would cost each test is its start.

        :param notifies: as of L{start}.
        """
        lent = cls._shared.get(notifies)
        if lent is None or lent._over:
            home = Home.make()
            atexit.register(home.remove)
            lent = cls._shared[notifies] = cls.start(reactor, home.user, home.environment(), notifies=notifies)
            atexit.register(lent._kill)
        lent._hear()
        lent._context = (await lent.call("Target.createBrowserContext"))["browserContextId"]
        return lent

    async def give_back(self) -> None:
        """Close all tabs of whoever it was lent to, forget what they kept, and be silent until it is lent again."""
        if not self._over:
            await self.call("Target.disposeBrowserContext", {"browserContextId": self._context})
            self._context = None
            self._pages.clear()
            self._deaf = [pipe for pipe in self._pipes() if pipe in self._reactor.getReaders()]
            for pipe in self._deaf:
                pipe.stopReading()

    def _hear(self) -> None:
        """Read again what was not read since it was given back: trial wants nothing in the reactor between tests."""
        for pipe in self._deaf:
            pipe.startReading()
        self._deaf = []

    def _pipes(self) -> Sequence[Any]:
        transport: Any = self.transport
        return list(transport.pipes.values())

    async def apart(self) -> "Page":
        """A new tab that shares nothing with the others, as if it were another person's browser."""
        return await self.page((await self.call("Target.createBrowserContext"))["browserContextId"])

    async def page(self, context: str | None = None) -> "Page":
        """A new tab.

        :param context: the browser context that it shares with others; the usual one if None.
        """
        chosen = context or self._context
        where = {} if chosen is None else {"browserContextId": chosen}
        target = (await self.call("Target.createTarget", {"url": "about:blank", **where}))["targetId"]
        session = (await self.call("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"]
        page = Page(self._reactor, self, session)
        self._pages[session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.call(f"{domain}.enable")
        return page

    async def permit(self, origin: str, permission: str, setting: str = "granted") -> None:
        """Answer what a page of that origin asks for, as the person would, before it asks."""
        where = {} if self._context is None else {"browserContextId": self._context}
        wanted = {"origin": origin, "permission": {"name": permission}, "setting": setting}
        await self.call("Browser.setPermission", {**wanted, **where})

    async def call(self, method: str, arguments: Mapping[str, Any] | None = None, session: str = "") -> Any:
        """One command of the protocol.

        :raises PageError: the browser refuses it, or does not answer in time.
        """
        number = len(self._calls) + 1
        answer: Deferred[Mapping[str, Any]] = Deferred()
        self._calls[number] = answer
        command = {"id": number, "method": method, "params": arguments or {}}
        text = json.dumps(command | ({"sessionId": session} if session else {}))
        assert self.transport is not None
        self.transport.writeToChild(_COMMANDS, text.encode() + b"\0")
        answer.addTimeout(_CALL_SECONDS, self._reactor)
        try:
            return await answer
        except Exception as error:
            raise PageError(f"{method}: {error!r}; {self._errors[-500:].decode('utf-8', 'replace')}") from error

    async def stop(self) -> None:
        """End it, where it was not lent."""
        self._kill()
        await until(self._reactor, lambda: self._over, 30, "the end of a browser")

    def _kill(self) -> None:
        if not self._over and self._pid is not None:
            kill_group(self._pid)
            assert self.transport is not None
            self.transport.loseConnection()

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Take answers and events."""
        if childFD != _EVENTS:
            self._errors += data
            return
        *ends, rest = data.split(b"\0")
        for end in ends:
            message, self._received = self._received + end, bytearray()
            self._take(json.loads(message))
        self._received += rest

    def processEnded(self, reason: Failure) -> None:
        """Note that it is over; who still waits for an answer gets none."""
        self._over = True
        for answer in self._calls.values():
            if not answer.called:
                answer.errback(reason)

    def _take(self, message: Mapping[str, Any]) -> None:
        if "id" not in message:
            page = self._pages.get(message.get("sessionId", ""))
            if page is not None:
                page.take(message["method"], message["params"])
            return
        answer = self._calls[message["id"]]
        if answer.called:
            return
        if "error" in message:
            answer.errback(PageError(message["error"]["message"]))
        else:
            answer.callback(message["result"])


_DRAWN = """new Promise((done) => {
  requestAnimationFrame(() => requestAnimationFrame(done));
  setTimeout(done, 500);
})"""
"""Comes true once the page was drawn; one that is not in front is not drawn."""


@attrs.define(eq=False)
class Page:
    """One tab.

    :ivar problems: exceptions, errors on the console and violations of the content security policy, so far.
    :ivar requests: method and URL of every request so far.
    :ivar headers: what its scripts put into each of them.
    :ivar dialogs: what a dialog asked.
    :ivar workers: ids of the service workers' registrations by scope, once ``ServiceWorker.enable`` was called.
    :ivar traffic: bytes so far, both ways: headers, and bodies of answers as they were sent.
    """

    _reactor: IKitReactor
    _browser: Chromium
    _session: str
    problems: list[str] = attrs.Factory(list)
    requests: list[tuple[str, str]] = attrs.Factory(list)
    headers: list[Mapping[str, str]] = attrs.Factory(list)
    dialogs: list[str] = attrs.Factory(list)
    workers: dict[str, str] = attrs.Factory(dict)
    traffic: int = 0

    async def call(self, method: str, **arguments: Any) -> Any:
        """One command of the protocol to this tab."""
        return await self._browser.call(method, arguments, self._session)

    async def open(self, url: str) -> None:
        """Go there."""
        await self.call("Page.navigate", url=url)

    async def reload(self) -> None:
        """Load it anew; what was there is gone then."""
        await self.evaluate("void (window.before = true)")
        await self.call("Page.reload")
        await self.until("window.before === undefined")

    async def evaluate(self, expression: str) -> Any:
        """What an expression of JavaScript, or its promise, comes to.

        :raises PageError: it throws.
        """
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise PageError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    async def until(self, expression: str, seconds: float = 30) -> Any:
        """The value of ``expression`` as soon as it is true; meanwhile the page may come and go.

        :raises DeadlinePassedError: it does not come true in time.
        """
        patience, found = Patience(self._reactor, seconds), None
        while not patience.is_over:
            try:
                if found := await self.evaluate(expression):
                    return found
            except PageError as error:
                found = error
            await deferLater(self._reactor, 0.05)
        text = await self.evaluate("location.href + '\\n' + document.body.innerText")
        raise DeadlinePassedError(f"not within {seconds:g} s: {expression} ({found!r}) in {text}")

    async def go_back(self) -> None:
        """Press Back. Nothing of the page is waited for, since it may be another one right away."""
        await self.evaluate("void setTimeout(() => history.back())")

    async def shows(self, words: str, seconds: float = 30) -> None:
        """Wait until the page shows these words."""
        await self.until(f"document.body.innerText.includes({json.dumps(words)})", seconds)

    async def text(self, selector: str) -> str:
        """The text of the first such element, once it is there."""
        found = await self.until(f"document.querySelector({json.dumps(selector)}) !== null")
        assert found
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent"))

    async def click(self, selector: str) -> None:
        """Click the middle of the first such element with the mouse, once it is there, enabled and at rest.

        There is one click: a target that moves, or is replaced, while the button is down, fails the test.

        :raises DeadlinePassedError: the target is not there in time.
        :raises PageError: the click did not reach the target.
        """
        x, y = await self._aim(selector)
        await self._mouse("mousePressed", x, y)
        held = await self.evaluate(_HELD)
        await self._mouse("mouseReleased", x, y)
        await self._assert_clicked(selector, held)

    async def tap(self, selector: str) -> None:
        """Do the same with a finger.

        :raises DeadlinePassedError, PageError: as of L{click}.
        """
        x, y = await self._aim(selector)
        await self._touch("touchStart", {"x": x, "y": y})
        held = await self.evaluate(_HELD)
        await self._touch("touchEnd")
        await self._assert_clicked(selector, held)

    async def _aim(self, selector: str) -> tuple[float, float]:
        """Wait until there is such an element that stands still; return the middle of it."""
        wanted = f"document.querySelector({json.dumps(selector + ':not(:disabled)')})"
        x, y = await self.until(_AT_REST.replace("WANTED", wanted), _CLICK_SECONDS)
        return x, y

    async def _mouse(self, kind: str, x: float, y: float) -> None:
        await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def _touch(self, kind: str, *points: Mapping[str, float]) -> None:
        await self.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    async def _assert_clicked(self, selector: str, held: str) -> None:
        """Fail unless the last click reached what it was meant for; a page that is gone was left by it.

        :raises PageError: it did not.
        """
        try:
            reached = await self.evaluate("window.clicked !== false")
        except PageError:
            return
        if held or not reached:
            says = await self.evaluate("document.querySelector('#trouble')?.textContent")
            raise PageError(f"the click did not reach {selector}: it {held or 'was covered or refused'} ({says!r})")

    async def press(self, *keys: str) -> None:
        """Press keys: ``Tab``, ``Enter``, ``Space``, ``Escape``, ``End``, ``ArrowDown``, or that of a character."""
        for key in keys:
            name, code, text = _KEYS.get(key) or (key, ord(key.upper()), key)
            both = {"key": name, "code": key, "windowsVirtualKeyCode": code}
            await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **both)
            await self.call("Input.dispatchKeyEvent", type="keyUp", **both)

    async def write(self, text: str) -> None:
        """Put text where the focus is."""
        await self.call("Input.insertText", text=text)

    async def look(self, *, width: int = 1100, height: int = 900, dark: bool = False) -> None:
        """Be of that size and colour scheme."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.call("Emulation.setEmulatedMedia", features=scheme)
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        await self.evaluate(_DRAWN)  # a key that is pressed before is lost

    async def picture(self, path: Path, *, whole: bool) -> None:
        """Keep a picture of the whole page, or of what the window shows of it."""
        answer = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def take(self, event: str, given: Mapping[str, Any]) -> None:
        """Note what happens in the tab."""
        noted = _NOTED.get(event)
        if noted is not None:
            noted(self, given)

    def _log(self, given: Mapping[str, Any]) -> None:
        entry = given["entry"]
        if entry["level"] in ("error", "warning"):
            self.problems.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")

    def _console(self, given: Mapping[str, Any]) -> None:
        if given["type"] in ("error", "warning", "assert"):
            self.problems.append(f"console: {_words(given['args'])}")

    def _exception(self, given: Mapping[str, Any]) -> None:
        self.problems.append(f"exception: {given['exceptionDetails']}")

    def _request(self, given: Mapping[str, Any]) -> None:
        self.requests.append((given["request"]["method"], given["request"]["url"]))
        self.headers.append(given["request"]["headers"])

    def _sent(self, given: Mapping[str, Any]) -> None:
        self.traffic += sum(len(name) + len(value) + 4 for name, value in given["headers"].items())

    def _received(self, given: Mapping[str, Any]) -> None:
        self.traffic += max(0, int(given.get("encodedDataLength", 0)))

    def _answered(self, given: Mapping[str, Any]) -> None:
        self.traffic += max(0, int(given["response"]["encodedDataLength"]))

    def _registered(self, given: Mapping[str, Any]) -> None:
        self.workers.update({each["scopeURL"]: each["registrationId"] for each in given["registrations"]})

    def _dialog(self, given: Mapping[str, Any]) -> None:
        self.dialogs.append(str(given["message"]))


_NOTED: Mapping[str, Callable[[Page, Mapping[str, Any]], None]] = {
    "Log.entryAdded": Page._log,
    "Runtime.consoleAPICalled": Page._console,
    "Runtime.exceptionThrown": Page._exception,
    "Network.requestWillBeSent": Page._request,
    "Network.requestWillBeSentExtraInfo": Page._sent,
    "Network.responseReceived": Page._answered,
    "Network.dataReceived": Page._received,
    "Page.javascriptDialogOpening": Page._dialog,
    "ServiceWorker.workerRegistrationUpdated": Page._registered,
}


def _words(values: Sequence[Mapping[str, Any]]) -> str:
    return " ".join(str(each.get("value", each.get("description"))) for each in values)
