"""The page that a browser comes back to after a sign-in takes one answer, and shows and keeps nothing of it."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.python import log
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.errors import CommandError
from aileron.cli.vault.callback import WAIT_SECONDS, CallbackListener
from aileron.credentials import NotOurCallback, SignInRefused
from tests.cli.callback import Answered, CallbackReactor

MINE = "/callback?code=canary-code&state=mine"


def read(query: str) -> str:
    """Read a query as a sign-in would whose state is C{mine}."""
    if "state=mine" not in query:
        raise NotOurCallback
    if "error" in query:
        raise SignInRefused("canary-error <b>")
    return "canary-code"


class _Taken(CallbackReactor):
    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Any:
        raise CannotListenError(interface, port, OSError())


class CallbackTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.reactor = CallbackReactor()
        self.lines: list[object] = []
        log.addObserver(self.lines.append)
        self.addCleanup(log.removeObserver, self.lines.append)
        self.listener = CallbackListener(self.reactor, 0)

    def wait(self) -> Deferred[str]:
        """Wait for the browser."""
        return Deferred.fromCoroutine(self.listener.wait(read))

    def follow(self) -> Answered:
        """Follow to the last page."""
        answered = self.reactor.visit("/callback")
        self.reactor.advance(0.2)
        return answered

    def test_loopback(self) -> None:
        """It listens on loopback alone, on the port that was asked for or a free one."""
        self.assertEqual((self.reactor.tcpServers[0][0], self.reactor.tcpServers[0][3]), (0, "127.0.0.1"))
        self.assertEqual(self.listener.redirect_uri, "http://127.0.0.1:4711/callback")
        fixed = CallbackListener(self.reactor, 8123)
        self.assertEqual((self.reactor.tcpServers[1][0], fixed.redirect_uri[-14:]), (8123, ":8123/callback"))
        self.assertRaises(CommandError, CallbackListener, _Taken(), 8123)

    def test_code(self) -> None:
        """The code goes to who waits, the browser to an address without it; no page and no log holds it."""
        waiting = self.wait()
        status, headers, body = self.reactor.visit(MINE)
        self.assertEqual((status, headers["location"]), (303, "/callback"))
        self.assertNoResult(waiting)
        self.assertEqual(self.reactor.stopped, 0)
        second = self.reactor.visit("/callback")
        self.assertEqual((second[0], "close this window" in second[2]), (200, True))
        self.assertNoResult(waiting)  # the page leaves first
        self.reactor.advance(0.2)
        self.assertEqual(self.successResultOf(waiting), "canary-code")
        self.assertGreater(self.reactor.stopped, 0)
        for text in (str(headers), body, str(second), str(self.lines)):
            self.assertNotIn("canary", text)

    def test_headers(self) -> None:
        """No answer is stored, framed, run as a script or tells where it came from."""
        self.wait()
        for target in ("/callback", MINE, "/other"):
            _, headers, body = self.reactor.visit(target)
            self.assertEqual((headers["cache-control"], headers["referrer-policy"]), ("no-store", "no-referrer"))
            policy = headers["content-security-policy"]
            self.assertTrue("default-src 'none'" in policy and "frame-ancestors 'none'" in policy, policy)
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            self.assertNotIn("<script", body)

    def test_browser_gone(self) -> None:
        """A browser that does not follow to the last page costs five seconds, and not the code."""
        waiting = self.wait()
        self.reactor.visit(MINE)
        self.reactor.advance(4)
        self.assertNoResult(waiting)
        self.reactor.advance(1)
        self.assertEqual(self.successResultOf(waiting), "canary-code")

    def test_wrong(self) -> None:
        """Another path, method or host, or an answer that is not ours, changes nothing."""
        waiting = self.wait()
        for status, target, method, host in (
            (404, MINE.replace("callback", "callback/"), "GET", None),
            (404, MINE.replace("callback", "Callback"), "GET", None),
            (404, "/", "GET", None),
            (404, "http://127.0.0.1:4711" + MINE, "GET", None),
            (404, MINE, "POST", None),
            (404, MINE, "HEAD", None),
            (404, MINE, "OPTIONS", None),
            (404, MINE, "GET", "evil.example"),
            (404, MINE, "GET", "127.0.0.1:1"),
            (404, MINE, "GET", ""),
            (400, "/callback", "GET", None),
            (400, "/callback?code=evil&state=other", "GET", None),
            (400, "/callback?error=evil&state=other", "GET", None),
        ):
            self.assertEqual(self.reactor.visit(target, method=method, host=host)[0], status, (method, target, host))
        self.assertNoResult(waiting)
        self.reactor.visit(MINE, visits=2)
        self.follow()
        self.assertEqual(self.successResultOf(waiting), "canary-code")

    def test_early(self) -> None:
        """Who comes before there is a sign-in finds nothing."""
        self.assertEqual(self.reactor.visit(MINE)[0], 404)

    def test_second(self) -> None:
        """A second answer, even one that would be ours, changes nothing: the first counts."""
        waiting = self.wait()
        self.reactor.visit(MINE)
        for again in (MINE, "/callback?error=no&state=mine"):
            self.assertEqual(self.reactor.visit(again)[0], 400)
        self.follow()
        self.assertEqual(self.successResultOf(waiting), "canary-code")

    def test_refused(self) -> None:
        """A refusal ends the wait; its words are for the terminal, and on no page."""
        waiting = self.wait()
        first = self.reactor.visit("/callback?error=canary&state=mine")
        second = self.follow()
        self.assertEqual(str(self.failureResultOf(waiting, SignInRefused).value), "canary-error <b>")
        self.assertNotIn("canary", str(first) + str(second))

    def test_late(self) -> None:
        """After five minutes nobody waits any more, and nothing listens."""
        waiting = self.wait()
        self.reactor.advance(WAIT_SECONDS - 1)
        self.assertNoResult(waiting)
        self.reactor.advance(1)
        self.failureResultOf(waiting, SignInRefused)
        self.assertGreater(self.reactor.stopped, 0)
        self.assertEqual(self.reactor.visit(MINE)[0], 404)

    def test_cancelled(self) -> None:
        """Who gives up, as with Ctrl-C, leaves nothing listening."""
        waiting = self.wait()
        waiting.cancel()
        self.failureResultOf(waiting)
        self.assertGreater(self.reactor.stopped, 0)
