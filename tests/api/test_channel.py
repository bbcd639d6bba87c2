"""The channel: what it refuses, when it closes, what it lets through; over bytes, without a socket."""

from __future__ import annotations

import json
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.interfaces import IPushProducer, ITCPTransport
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, globalLogPublisher
from twisted.test.iosim import FakeTransport, IOPump, connect
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from zope.interface import directlyProvides

from aileron.api import API_PATHS, HEADERS, Answer, Channel, GuardedSite, OtherNames, SiteRules
from aileron.api.channels.channel import LINGER_SECONDS
from aileron.api.channels.checks import MAX_BODY_BYTES
from aileron.base.http1 import RequestHead
from tests.base.http1.corpus import CHUNKED_REQUESTS, REQUESTS
from tests.extent import examples

HOST = "localhost:7001"
TYPE = "Content-Type: application/json"


class Echo(Resource):
    """Answers with the length of what it got, or holds the answer back."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[bytes] = []
        self.held: list[Any] = []
        self.hold = False
        self.gone = 0

    def render(self, request: Any) -> bytes | int:
        """Remember the body; answer."""
        self.seen.append(request.content.read())
        if not self.hold:
            return b"%s %d" % (request.uri, len(self.seen[-1]))
        self.held.append(request)
        request.notifyFinish().addErrback(lambda _: setattr(self, "gone", self.gone + 1))
        return NOT_DONE_YET


class Proving(Echo):
    """Keeps the place of who names itself."""

    def render(self, request: Any) -> bytes | int:
        """As every guard does."""
        name = request.getHeader(b"X-Name")
        if name is not None:
            request.keep_place(name.decode("ascii"))
        return super().render(request)


class Turns(Clock):
    """A clock whose turns of the reactor can be asked for one by one."""

    def turn(self) -> None:
        """Let no time pass: call what is due now, and nothing that follows of it."""
        for call in [call for call in self.calls if call.getTime() <= self.seconds()]:
            self.calls.remove(call)
            call.called = 1
            call.func(*call.args, **call.kw)


class Collector(Protocol):
    """A client that keeps what it hears."""

    def __init__(self) -> None:
        self.heard = b""

    def dataReceived(self, data: bytes) -> None:
        self.heard += data


class Wire(FakeTransport):
    """A transport that knows whether it was told to read on."""

    paused = False

    def pauseProducing(self) -> None:
        self.paused = True

    def resumeProducing(self) -> None:
        self.paused = False


class Line:
    """One connection to a site."""

    def __init__(self, site: GuardedSite) -> None:
        self.client = Collector()
        server = site.buildProtocol(None)
        self.server = cast("Any", Wire(server, isServer=True))
        directlyProvides(self.server, ITCPTransport, IPushProducer)
        self._pump: IOPump = connect(server, self.server, self.client, FakeTransport(self.client, isServer=False))
        self._pump.flush()

    def say(self, data: bytes) -> bytes:
        """Send, and have everything that was heard since the last time."""
        assert self.client.transport is not None
        self.client.transport.write(data)
        self._pump.flush()
        return self.hear()

    def hear(self) -> bytes:
        """What came since the last time."""
        self._pump.flush()
        heard, self.client.heard = self.client.heard, b""
        return heard

    def leave(self) -> None:
        """Close the client's end."""
        assert self.client.transport is not None
        self.client.transport.loseConnection()
        self._pump.flush()

    @property
    def closed(self) -> bool:
        """Whether the site has closed."""
        self._pump.flush()
        return bool(self.server.disconnecting)


def head(*lines: str, method: str = "GET", target: str = "/x", host: str | None = HOST, version: str = "1.1") -> bytes:
    """A request head."""
    fields = [] if host is None else [f"Host: {host}"]
    return "\r\n".join([f"{method} {target} HTTP/{version}", *fields, *lines, "", ""]).encode("latin-1")


def status(heard: bytes) -> int:
    """The status of the first answer."""
    return int(heard.split(b" ", 2)[1]) if heard else 0


class ChannelCase(SynchronousTestCase):
    """A site over an L{Echo}."""

    def setUp(self) -> None:
        self.clock = Turns()
        self.echo = Echo()
        self.site = self.make_site()

    def make_site(self, **rules: Any) -> GuardedSite:
        """A site with these rules."""
        given = {"hosts": (HOST, "127.0.0.1:7001"), "form_posts": frozenset((b"/handover",)), **rules}
        return GuardedSite(self.echo, SiteRules(**given), self.clock)

    def say(self, data: bytes) -> bytes:
        """Say it on a fresh line."""
        return Line(self.site).say(data)

    def refused(self, data: bytes, wanted: int) -> bytes:
        """Assert that it is refused in the envelope, dressed, closed, and never rendered; the answer."""
        line = Line(self.site)
        before = len(self.echo.seen)
        heard = line.say(data)
        self.assertEqual(status(heard), wanted, data[:200])
        first, _, body = heard.partition(b"\r\n\r\n")
        kind = "not_found" if wanted == 404 else "invalid_request"
        self.assertEqual(json.loads(body)["error"]["class"], kind)
        for name, value in {**HEADERS, "Content-Type": "application/json", "Connection": "close"}.items():
            self.assertIn(f"\r\n{name}: {value}".encode(), first)
        self.assertIn(b"\r\nContent-Length: %d" % len(body), first)
        self.assertEqual(line.say(head()), b"", "something more was answered")
        self.clock.advance(LINGER_SECONDS)
        self.assertTrue(line.closed)
        self.assertEqual(len(self.echo.seen), before)
        return heard

    def accepted(self, data: bytes) -> None:
        """Assert that it is rendered."""
        self.assertEqual(status(self.say(data)), 200, data[:200])


class AddressTests(ChannelCase):
    """Host, target, version."""

    def test_ours(self) -> None:
        """Each name that we bound is ours, in any case; any other Host is refused, and all while none is known."""
        for host in (HOST, "127.0.0.1:7001", "LocalHost:7001"):
            self.accepted(head(host=host))
        for host in (
            "localhost",
            "localhost:7002",
            "evil.example:7001",
            "",
            "localhost:7001.",
            "[::1]:7001",
            HOST + "@x",
        ):
            self.refused(head(host=host), 400)
        self.refused(head(host=None), 400)
        self.refused(head(f"Host: {HOST}"), 400)
        self.refused(head(f"host: {HOST}", host="evil:1"), 400)
        self.site.rules = SiteRules()
        self.refused(head(), 400)

    def test_targets(self) -> None:
        """Only origin-form is a target, and HTTP/1.1 the version."""
        for target in (f"http://{HOST}/x", "*", f"{HOST}/x", "x"):
            self.refused(head(target=target), 400)
        self.refused(head(target=HOST, method="CONNECT"), 400)
        for version in ("1.0", "2.0", "1.10", "0.9"):
            self.refused(head(version=version), 400)
        self.refused(b"GET /x\r\n\r\n", 400)


class BrowserTests(ChannelCase):
    """Pages of other origins."""

    def test_origins(self) -> None:
        """The page's own origin passes; a foreign, null or repeated one does not."""
        self.accepted(head(f"Origin: http://{HOST}"))
        for origin in (
            "null",
            "http://evil.example",
            f"https://{HOST}",
            "http://127.0.0.1:7001",
            "http://localhost",
            "",
        ):
            self.refused(head(f"Origin: {origin}"), 403)
        for second in (f"http://{HOST}", "null", ""):
            self.refused(head(f"Origin: http://{HOST}", f"Origin: {second}"), 403)
            self.refused(head(f"Origin: {second}", f"origin: http://{HOST}"), 403)

    def test_fetch_sites(self) -> None:
        """Same origin, or a person's own navigation; nothing else."""
        self.accepted(head("Sec-Fetch-Site: same-origin"))
        self.accepted(head("Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"))
        for site in ("cross-site", "same-site", "", "none"):
            self.refused(head(f"Sec-Fetch-Site: {site}"), 403)
        self.refused(head("Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", TYPE, method="POST"), 403)
        self.refused(head("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"), 403)

    def test_service_workers(self) -> None:
        """The script of a service worker is asked for in vain, also by our own page."""
        for value in ("script", "", "other"):
            own = (f"Origin: http://{HOST}", "Sec-Fetch-Site: same-origin")
            self.refused(head(*own, f"Service-Worker: {value}"), 403)
            self.refused(head(*own, f"service-worker: {value}", target="/static/page.js"), 403)

    def test_left_workers(self) -> None:
        """Where pages keep their address, a worker that is not ours is removed with what it stored; ours is served."""
        self.site.rules = SiteRules((HOST,), removes_workers=True, workers=frozenset({b"/worker.js"}))
        own = (f"Origin: http://{HOST}", "Sec-Fetch-Site: same-origin", "Service-Worker: script")
        for lines in (own, own[2:]):
            answer = self.refused(head(*lines, target="/static/page.js"), 404)
            self.assertIn(b'Clear-Site-Data: "cache", "storage"\r\n', answer)
        for other in ("Sec-Fetch-Site: same-site", "Origin: http://evil.example"):
            answer = self.refused(head(other, own[2], target="/static/page.js"), 403)
            self.assertNotIn(b"Clear-Site-Data", answer)
        self.accepted(head(*own, target="/worker.js"))

    def test_types(self) -> None:
        """What may change something must say that it is JSON; a DELETE may be bare where that is said."""
        for method in ("POST", "PUT", "PATCH", "DELETE", "BREW"):
            self.refused(head(method=method), 415)
            for kind in (
                "text/plain",
                "application/x-www-form-urlencoded",
                "application/jsonx",
                "application/json; a=b",
            ):
                self.refused(head(f"Content-Type: {kind}", method=method), 415)
        self.accepted(head("content-type: Application/JSON; charset=UTF-8", method="POST"))
        self.site = self.make_site(bare_deletes=frozenset((b"/mcp",)))
        self.accepted(head(method="DELETE", target="/mcp"))
        self.refused(head("Content-Length: 2", method="DELETE", target="/mcp"), 415)
        self.refused(head("Transfer-Encoding: chunked", method="DELETE", target="/mcp"), 415)
        self.refused(head(method="DELETE", target="/mcp/x"), 415)
        self.refused(head(method="POST", target="/mcp"), 415)
        self.refused(head("Origin: http://evil.test", method="DELETE", target="/mcp"), 403)

    def test_handover(self) -> None:
        """The one form: it comes from a private file, which has no origin, or from our own page, and must be a form."""
        form, own = "Content-Type: application/x-www-form-urlencoded", f"Origin: http://{HOST}"
        self.accepted(head(form, method="POST", target="/handover"))
        self.accepted(head(form, "Origin: null", "Sec-Fetch-Site: cross-site", method="POST", target="/handover"))
        whole = ("Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")
        self.accepted(head(form, *whole, method="POST", target="/handover"))
        self.accepted(head(form, own, "Sec-Fetch-Site: same-origin", method="POST", target="/handover"))
        self.accepted(head(f"{form};charset=UTF-8", own, method="POST", target="/handover"))
        foreign: tuple[tuple[str, ...], ...] = (
            ("Origin: http://evil.test", "Sec-Fetch-Site: cross-site"),
            (f"Origin: http://{HOST.replace('7001', '7002')}",),
            (f"Origin: https://{HOST}",),
            ("Origin: null", "Sec-Fetch-Site: same-site"),
            ("Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: empty"),
            ("Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"),
            (own, "Sec-Fetch-Site: same-site"),
            (own, "Sec-Fetch-Site: cross-site"),
        )
        for fields in foreign:
            self.refused(head(form, *fields, method="POST", target="/handover"), 403)
        self.refused(head(TYPE, method="POST", target="/handover"), 415)
        self.refused(head(form, method="POST", target="/handover/x"), 415)
        self.refused(head(form, "Origin: null", method="PUT", target="/handover"), 403)
        self.refused(head("Origin: null", target="/handover"), 403)
        self.site = self.make_site(form_posts=frozenset())
        self.refused(head(form, method="POST", target="/handover"), 415)

    def test_repeated(self) -> None:
        """What decides stands once."""
        for field in (
            "Authorization: Bearer x",
            "Cookie: a=b",
            TYPE,
            "X-Aileron-Proof: x",
            "Sec-Fetch-Site: same-origin",
            "Sec-Fetch-Mode: navigate",
        ):
            self.refused(head(field, field.upper()), 400)


class LandingTests(ChannelCase):
    """A link of another site."""

    LINK = ("Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document")

    def setUp(self) -> None:
        super().setUp()
        answer = Answer(200, b"<p>empty", {"Content-Security-Policy": "script-src 'self'"}, "text/html")
        self.site = self.make_site(landing=lambda: answer)

    def test_landed(self) -> None:
        """Whoever follows it gets the landing, whatever the path, and no resource hears of it."""
        for where in ("cross-site", "same-site"):
            for target in ("/x", "/", "/approvals/1?x=2", "/v1/runs", "/static/key.js"):
                heard = self.say(head(f"Sec-Fetch-Site: {where}", *self.LINK, "Cookie: a=b", target=target))
                first, _, body = heard.partition(b"\r\n\r\n")
                self.assertEqual((status(heard), body), (200, b"<p>empty"))
                for line in (
                    b"Content-Security-Policy: script-src 'self'",
                    b"Content-Type: text/html",
                    b"X-Frame-Options: DENY",
                    b"Cache-Control: no-store",
                    b"Cross-Origin-Opener-Policy: same-origin",
                ):
                    self.assertEqual(first.count(line), 1, line)
        self.assertEqual(self.echo.seen, [])

    def test_not_landed(self) -> None:
        """In a frame, by a script, with a body, to another name, or where there is no landing, it is refused."""
        foreign = "Sec-Fetch-Site: cross-site"
        for lines in (
            [foreign],
            [foreign, "Sec-Fetch-Mode: navigate"],
            [foreign, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
            [foreign, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: document"],
            [foreign, *self.LINK, "Origin: http://evil.example"],
        ):
            self.refused(head(*lines), 403)
        self.refused(head(foreign, *self.LINK, TYPE, method="POST"), 403)
        self.refused(head(foreign, *self.LINK, method="HEAD"), 403)
        self.refused(head(foreign, *self.LINK, host="evil.example:7001"), 400)
        self.site = self.make_site()
        self.refused(head(foreign, *self.LINK), 403)
        self.accepted(head("Sec-Fetch-Site: same-origin", *self.LINK))


class OtherNamesTests(ChannelCase):
    """Names by which a site with a name of its own is called too."""

    def setUp(self) -> None:
        super().setUp()
        self.paths: list[bytes] = []

        def make_page(path: bytes) -> Answer:
            self.paths.append(path)
            return Answer(421, b"<p>moved", {}, "text/html")

        others = OtherNames(["Old.example:7001"], ".aileron.localhost:7001", API_PATHS, make_page)
        self.site = self.make_site(other_names=others)

    def test_api(self) -> None:
        """Programs may call the API by them, with the same checks of their origin."""
        for target in ("/v1/runs", "/v1", "/docs", "/metrics?x"):
            self.accepted(head(host="old.example:7001", target=target))
        self.refused(head("Origin: http://evil.example", host="old.example:7001", target="/v1/runs"), 403)

    def test_path(self) -> None:
        """The page is made for the path of the request, without its query."""
        self.say(head(host="bcdfghjklm.aileron.localhost:7001", target="/approvals/x?y=z"))
        self.assertEqual(self.paths, [b"/approvals/x"])

    def test_no_page(self) -> None:
        """Whatever else is asked for by them, or anything by a name of an earlier start, gets the one page."""
        asked = [
            head(*lines, host="OLD.example:7001", target=target, method=method)
            for target in ("/", "/approvals", "/v2", "/%76%31/runs", "/static/page.js", "/handover", "/fragments/v1")
            for method, lines in (("GET", ()), ("POST", (TYPE, "Content-Length: 2", "Origin: null")))
        ]
        for host in ("bcdfghjklm.aileron.localhost:7001", "a.b.aileron.localhost:7001"):
            asked += [head(host=host, target=target) for target in ("/", "/v2", "/handover/state")]
        for said in asked:
            heard = self.say(said)
            first, _, body = heard.partition(b"\r\n\r\n")
            self.assertEqual((status(heard), body), (421, b"<p>moved"), said)
            for line in (b"Cache-Control: no-store", b"Connection: close", HEADERS["Content-Security-Policy"].encode()):
                self.assertIn(line, first)
        self.assertEqual(self.echo.seen, [])

    def test_login_ended(self) -> None:
        """A program that calls the API by a name of an earlier start is refused as one whose login has ended."""
        for target in ("/v1/runs", "/metrics"):
            heard = self.say(head(host="bcdfghjklm.aileron.localhost:7001", target=target))
            told = json.loads(heard.partition(b"\r\n\r\n")[2])["error"]
            self.assertEqual((status(heard), told["class"]), (421, "unauthorized"))
            self.assertIn("restarted", told["message"])
        self.assertEqual(self.echo.seen, [])

    def test_unknown(self) -> None:
        """No name that only looks like one of them is known, nor any without such names."""
        names = ("aileron.localhost:7001", "x.aileron.localhost:7002", "xaileron.localhost:7001", "old.example")
        for host in names:
            self.refused(head(host=host, target="/v1/runs"), 400)
        self.site = self.make_site()
        for host in ("x.aileron.localhost:7001", "old.example:7001"):
            self.refused(head(host=host, target="/v1/runs"), 400)


class FramingTests(ChannelCase):
    """Heads and bodies that could be read in two ways."""

    def test_malformed(self) -> None:
        """Bodies of either framing arrive whole, in whatever pieces; who asks first is told to go on."""
        for name, message in {**REQUESTS, **CHUNKED_REQUESTS}.items():
            typed = message.replace(b"\r\n", f"\r\n{TYPE}\r\n".encode(), 1)
            self.assertEqual((status(Line(self.site).say(typed)), self.echo.seen), (400, []), name)
        for lines in (["Space : a"], ["NoColon"], ["A: b\x00"], ["A: b\rC: d"], ["A: b\nC: d"]):
            self.refused(head(TYPE, *lines, method="POST"), 400)
        self.refused(head(TYPE, "Transfer-Encoding: chunked", method="POST") + b"1\r\nh\r\n0\r\nT: v\r\n\r\n", 400)
        self.refused(head("A: " + "b" * 16384), 431)
        self.refused(head("A: " + "b" * 16384)[:-4], 431)
        self.refused(head(*["A: b"] * 200), 400)

    def test_bodies(self) -> None:
        """Bodies of either framing arrive whole, in whatever pieces; who asks first is told to go on after its head."""
        fixed = head(TYPE, "Content-Length: 5", method="POST") + b"hello"
        chunked = head(TYPE, "Transfer-Encoding: chunked", method="POST") + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"
        for whole in (fixed, chunked):
            for size in (1, 7, len(whole)):
                self.echo.seen.clear()
                line = Line(self.site)
                heard = b"".join(line.say(whole[at : at + size]) for at in range(0, len(whole), size))
                self.assertEqual((status(heard), self.echo.seen), (200, [b"hello"]))
        line = Line(self.site)
        asks = head(TYPE, "Content-Length: 2", "Expect: 100-Continue", method="POST")
        self.assertEqual(line.say(asks), b"HTTP/1.1 100 Continue\r\n\r\n")
        self.assertEqual((status(line.say(b"hi")), self.echo.seen[-1]), (200, b"hi"))

    def test_seen(self) -> None:
        """A resource sees each field once and as it came, and a body in memory; no form is parsed out of any body."""
        self.echo.hold = True
        self.say(head("X-One: \t a  b ", "x-two:1", "X-TWO: 2", "Empty:", "Cookie: a=b; c=d"))
        json_type, form_type = "application/json; charset=utf-8", "application/x-www-form-urlencoded"
        self.say(head(f"content-TYPE: {json_type}", "Content-Length: 3", method="POST") + b"a=b")
        form = [f"Content-Type: {form_type}", "Content-Length: 500000"]
        self.say(head(*form, method="POST", target="/handover") + b"a=b" + b"x" * 499_997)
        plain, *posted = self.echo.held
        seen = {name: plain.requestHeaders.getRawHeaders(name) for name in (b"x-one", b"X-Two", b"Empty")}
        self.assertEqual(seen, {b"x-one": [b"a  b"], b"X-Two": [b"1", b"2"], b"Empty": [b""]})
        self.assertEqual([plain.getCookie(b"a"), plain.getCookie(b"c")], [b"b", b"d"])
        self.assertEqual((plain.method, plain.uri, plain.clientproto), (b"GET", b"/x", b"HTTP/1.1"))
        self.assertEqual([each.getHeader("Content-Type") for each in posted], [json_type, form_type])
        self.assertEqual([(each.args, type(each.content).__name__) for each in posted], [({}, "BytesIO")] * 2)

    def test_own_headers(self) -> None:
        """An answer carries each header of every answer once; a resource may say another value, but not who serves."""
        self.echo.hold = True
        line = Line(self.site)
        line.say(head())
        (request,) = self.echo.held
        request.setHeader("content-security-policy", "default-src 'self'")
        request.setHeader("server", "other")
        request.finish()
        lines = line.hear().split(b"\r\n")
        for name, value in {**HEADERS, "Content-Security-Policy": "default-src 'self'", "Server": "aileron"}.items():
            found = [line for line in lines if line.lower().startswith(name.lower().encode() + b":")]
            self.assertEqual(found, [f"{name}: {value}".encode()])

    def test_pipelined(self) -> None:
        """Requests in one piece are answered in order, the second only after the first."""
        self.echo.hold = True
        line = Line(self.site)
        self.assertEqual(line.say(head(target="/1") + head(target="/2")), b"")
        self.assertEqual(len(self.echo.held), 1)
        self.echo.hold = False
        self.echo.held[0].write(b"one")
        self.echo.held[0].finish()
        heard = line.hear()
        self.assertLess(heard.index(b"one"), heard.index(b"/2 0"))

    def test_many_in_one_piece(self) -> None:
        """While they wait for their turns little is read of what else is sent, and all are answered in the end."""
        line = Line(self.site)
        line.say(head() * 1000)
        self.assertTrue(line.server.paused)
        self.assertEqual(len(self.echo.seen), 1)
        self.clock.advance(0)
        self.assertEqual((len(self.echo.seen), line.server.paused), (1000, False))

    def test_body_behind_another_request(self) -> None:
        """A body whose beginning waited for its turn is read on to its end."""
        line = Line(self.site)
        length = 200_000
        line.say(head() + head(TYPE, f"Content-Length: {length}", method="POST") + b"x" * 30_000)
        self.assertTrue(line.server.paused)
        self.clock.advance(0)
        self.assertFalse(line.server.paused)
        self.assertEqual(status(line.say(b"x" * (length - 30_000))), 200)
        self.assertEqual([len(body) for body in self.echo.seen], [0, length])

    def test_turn_of_who_left(self) -> None:
        """Nothing more is begun for a client that left, or was refused, before its turn came."""
        for last in (b"", b"nonsense\r\n\r\n"):
            line = Line(self.site)
            line.say(head() + head() + last)
            seen = len(self.echo.seen)
            if last:
                self.clock.advance(0)
                self.clock.advance(0)
                self.assertIn(b"/x 0HTTP/1.1 400 ", line.hear())
                self.assertEqual(len(self.echo.seen), seen + 1)
            else:
                line.leave()
                self.clock.advance(1)
                self.assertEqual(len(self.echo.seen), seen)

    def test_unread_answers(self) -> None:
        """No request is begun before the client has read the answers to those before it."""
        line = Line(self.site)
        line.say(head())
        line.server.protocol.pauseProducing()
        self.assertEqual(line.say(head(target="/2")), b"")
        line.say(head() * 500)
        self.assertTrue(line.server.paused)
        self.clock.advance(1)
        self.assertEqual(len(self.echo.seen), 1)
        line.server.protocol.resumeProducing()
        self.clock.advance(0)
        self.assertEqual((len(self.echo.seen), line.server.paused), (502, False))

    def test_unread_bytes(self) -> None:
        """What waits for a client to read is counted, if its place is kept, until it was read."""
        self.echo.hold = True
        line, limiter = Line(self.site), self.site.limiter
        line.say(head())
        channel, request = line.server.protocol, self.echo.held[0]
        channel.keep("ann")
        channel.pauseProducing()
        request.write(b"x" * 1000)
        request.write(b"x" * 1000)
        self.assertGreater(limiter._proven_bytes, 2000)
        request.finish()
        self.assertGreater(limiter._proven_bytes, 2000)
        channel.resumeProducing()
        self.assertEqual(limiter._proven_bytes, 0)

    def test_flood(self) -> None:
        """A client that sends on while its answer is due is read no further until it has it."""
        self.echo.hold = True
        line = Line(self.site)
        line.say(head())
        line.say(head()[:20] + b"x" * 10_000)
        self.assertFalse(line.server.paused)
        line.say(b"x" * 10_000)
        self.assertTrue(line.server.paused)
        line.server.protocol.resumeProducing()
        self.assertTrue(line.server.paused, "what was written having been sent changes nothing")
        self.echo.held[0].finish()
        self.assertEqual([status(line.hear()), line.server.paused], [200, False])


class CapTests(ChannelCase):
    """A body has 1 MiB, counted as framed."""

    def test_announced(self) -> None:
        """A longer body is refused before a byte of it came, and its client is not asked to go on; 1 MiB passes."""
        lines = [TYPE, f"Content-Length: {MAX_BODY_BYTES + 1}", "Expect: 100-continue"]
        self.refused(head(*lines, method="POST"), 413)
        self.accepted(head(TYPE, f"Content-Length: {MAX_BODY_BYTES}", method="POST") + b"x" * MAX_BODY_BYTES)
        self.assertEqual(len(self.echo.seen[-1]), MAX_BODY_BYTES)

    def test_chunked(self) -> None:
        """Chunks are counted with their framing; a refused client may go on sending for a moment, and none is kept."""
        line = Line(self.site)
        line.say(head(TYPE, "Transfer-Encoding: chunked", method="POST"))
        piece = b"1\r\nx\r\n" * 10_000
        heard = b""
        for _ in range(18):
            heard += line.say(piece)
        self.assertEqual(status(heard), 413)
        self.assertEqual(self.echo.seen, [])
        line = Line(self.site)
        self.assertEqual(status(line.say(head(TYPE, "Content-Length: 9999999", method="POST"))), 413)
        self.assertEqual(line.say(b"x" * 100_000), b"")
        self.assertFalse(line.closed)
        self.assertEqual(line.server.protocol._unread, b"")
        self.clock.advance(LINGER_SECONDS)
        self.assertTrue(line.closed)


class TimeTests(ChannelCase):
    """Slow clients."""

    def test_slow_head(self) -> None:
        """A head that comes a byte at a time has 30 seconds in all, and so has a body."""
        line = Line(self.site)
        for byte in (b"G", b"E", b"T"):
            line.say(byte)
            self.clock.advance(9.9)
        self.assertEqual(line.hear(), b"")
        self.clock.advance(0.4)
        self.assertEqual(status(line.hear()), 408)
        line = Line(self.site)
        line.say(head(TYPE, "Content-Length: 100", method="POST"))
        for _ in range(4):
            line.say(b"x")
            self.clock.advance(7.6)
        self.assertEqual(status(line.hear()), 408)
        self.assertEqual(self.echo.seen, [])

    def test_slow_answer(self) -> None:
        """A request that is complete may wait for its answer as long as it takes; its connection is idle only then."""
        self.echo.hold = True
        line = Line(self.site)
        line.say(head())
        for _ in range(100):
            self.clock.advance(30)
        self.assertFalse(line.closed)
        self.echo.held[0].finish()
        self.assertEqual(status(line.hear()), 200)
        self.clock.advance(59)
        self.assertFalse(line.closed)
        self.clock.advance(2)
        self.assertTrue(line.closed)

    def test_unread_at_the_end(self) -> None:
        """Nor is one for which an answer waits that nobody reads, also where it was to be closed after that answer."""
        for field in ("X: y", "Connection: close"):
            line = Line(self.site)
            line.server.abortConnection = lambda each=line: setattr(each, "dropped", True)
            line.server.loseConnection = lambda: None  # it waits until all is sent
            line.say(head(field))
            self.clock.advance(59)
            self.assertFalse(hasattr(line, "dropped"), field)
            self.clock.advance(2)
            self.assertTrue(hasattr(line, "dropped"), field)

    def test_nothing_left_behind(self) -> None:
        """A client that leaves takes every timer with it, and ends what waits for it."""
        self.echo.hold = True
        line = Line(self.site)
        line.say(head())
        line.leave()
        self.assertEqual(self.echo.gone, 1)
        half = Line(self.site)
        half.say(head()[:10])
        half.leave()
        refused = Line(self.site)
        refused.say(head(host="evil:1"))
        refused.leave()
        self.assertEqual(self.clock.getDelayedCalls(), [])


class PeerTests(ChannelCase):
    """Only our own user's processes."""

    def test_users(self) -> None:
        """Our own user and those that were named are served; another, or one that cannot be told, hears nothing."""
        table: list[tuple[int | None, int, bool]] = [
            (501, 1, True),
            (7, 7, True),
            (7, 8, False),
            (0, 8, False),
            (None, 7, False),
        ]
        for uid, other, admitted in table:
            self.site = self.make_site(peer_uid=lambda _, uid=uid: uid, own_uid=501, other_uids=frozenset({other}))
            line = Line(self.site)
            self.assertEqual((line.closed, bool(line.say(head()))), (not admitted, admitted), (uid, other))
        self.assertEqual(len(self.echo.seen), 2)


class QuietTests(ChannelCase):
    """What a site does not do."""

    def test_no_log(self) -> None:
        """A site keeps no access log and no clock for one."""
        events: list[Any] = []
        observe = cast("ILogObserver", events.append)
        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        self.site.startFactory()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.accepted(head(target="/canary"))
        self.assertEqual([event for event in events if "canary" in str(event)], [])
        self.site.stopFactory()


class Diverting(Channel):
    """A channel that takes one path away, as a relay would."""

    taken = b""

    def divert(self, head: RequestHead, rest: bytes) -> int:
        """Take C{/relay} and everything after it."""
        if head.path != b"/relay":
            return -1
        self.taken = head.raw + rest
        self.transport.write(b"relayed")
        return len(rest)


class DoorTests(ChannelCase):
    """A subclass may take requests before their bodies."""

    def test_divert(self) -> None:
        """It gets head and rest before the browser's checks and the cap, after the address's."""
        self.site.protocol = Diverting
        line = Line(self.site)
        raw = head("Content-Length: 9999999", method="POST", target="/relay")
        self.assertEqual(line.say(raw + b"rest"), b"relayed")
        self.assertEqual(line.server.protocol.taken, raw + b"rest")
        self.refused(head(host="evil:1", target="/relay"), 400)
        self.accepted(head())


class GarbageTests(ChannelCase):
    """Anything at all."""

    @settings(deadline=None, max_examples=examples(150))
    @given(
        st.lists(
            st.one_of(
                st.binary(max_size=60),
                st.sampled_from(
                    [
                        head(),
                        head(TYPE, "Content-Length: 3", method="POST"),
                        head(TYPE, "Transfer-Encoding: chunked", method="POST"),
                        b"3\r\nabc\r\n0\r\n\r\n",
                        b"abc",
                        b"\r\n\r\n",
                        b"Content-Length: 5\r\n",
                        b"Host: localhost:7001\r\n",
                    ]
                ),
            ),
            max_size=8,
        )
    )
    def test_garbage(self, pieces: list[bytes]) -> None:
        """Whatever comes, every answer is one of ours, dressed, and nothing is logged."""
        line = Line(self.site)
        heard = b"".join(line.say(piece) for piece in pieces)
        self.clock.advance(31)
        heard += line.hear()
        self.assertFalse(heard and not heard.startswith(b"HTTP/1.1 "))
        self.assertNotIn(b"400 Bad Request\r\n\r\n", heard, "twisted.web answered by itself")
        line.leave()
        self.clock.advance(61)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.flushLoggedErrors(), [])

    @settings(deadline=None, max_examples=examples(150))
    @given(
        st.sampled_from(
            ["Host", "Origin", "Sec-Fetch-Site", "Content-Type", "Authorization", "X-Aileron-Proof", "Prefer"]
        ),
        st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\x00"), max_size=40),
    )
    def test_field_garbage(self, name: str, value: str) -> None:
        """No value of a field that decides gets past unless it is the one that is meant."""
        heard = self.say(head(f"{name}: {value}", TYPE if name != "Content-Type" else "A: b", method="POST"))
        legal = all(character == "\t" or " " <= character != "\x7f" for character in value)
        free = legal and name in {"Authorization", "X-Aileron-Proof", "Prefer"}
        self.assertIn(status(heard), {200} if free else {200, 400, 403, 415})
        if name in {"Host", "Origin"} and value.strip().lower() != f"http://{HOST}":
            self.assertIn(status(heard), {400, 403})
