"""Gateway keys: whom a call belongs to, and that no key goes further than here."""

from __future__ import annotations

from typing import cast

from twisted.logger import ILogObserver, LogEvent, globalLogPublisher

from aileron.features.gateway.values import Ending
from aileron.model.errors import StoreUnavailable
from tests.features.gateway.case import KEY, OK, GatewayCase, get, request

GOOD, OTHER = "ail_g_" + "g" * 43, "ail_g_" + "o" * 43


class LogCase(GatewayCase):
    """A log that is read."""

    def watch_the_log(self) -> list[LogEvent]:
        """All that is logged from now on."""
        events: list[LogEvent] = []
        observer = cast(ILogObserver, events.append)
        globalLogPublisher.addObserver(observer)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        return events


class KeyTests(GatewayCase):
    """Where keys stand."""

    def test_places(self) -> None:
        """A key may begin the path, which counts, or stand in a field, whatever Connection says; it is cut."""
        self.session()
        field, keyed = f"X-Aileron-Gateway-Key: {KEY}", f"/s/{KEY}/v1/messages"
        for session, target, *lines in (
            (None, "/v1/messages"),
            ("ses1", keyed),
            ("ses1", f"/s/{KEY}/anthropic/v1/messages"),
            ("ses1", "/v1/messages", field),
            ("ses1", "/v1/messages", f"x-aileron-gateway-KEY:{KEY}  "),
            ("ses1", "/v1/messages", "Connection: x-aileron-gateway-key", field),
            ("ses1", keyed, f"X-Aileron-Gateway-Key: {OTHER}"),
        ):
            _, there = self.ask(request(str(target), *map(str, lines)), "anthropic")
            heard = there.take()
            self.assertIn(b"POST /v1/messages HTTP/1.1\r\n", heard)
            self.assertNotIn(b"ail_", heard)
            self.assertNotIn(b"aileron", heard.lower())
            self.assertEqual(self.meters.all[-1].begun[1], session, (target, lines))

    def test_from_the_store(self) -> None:
        """A key that is not in memory is looked for, while the request collects."""
        self.session(at_hand=False)
        self.keys.slow = True
        line = self.line()
        line.say(request(f"/s/{KEY}/v1/messages", body=b"12345678")[:-4])
        self.assertEqual(self.reached(), [])
        line.say(b"5678")
        self.keys.waiting[0].callback(None)
        self.net.run()
        there = self.places["anthropic"].peers[0]
        self.assertTrue(there.take().endswith(b"\r\n\r\n12345678"))
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)

    def test_left_while_looked_for(self) -> None:
        """A client that leaves meanwhile asks nobody for anything."""
        self.session(at_hand=False)
        self.keys.slow = True
        line = self.line()
        line.say(get(f"/s/{KEY}/openai/x"))
        line.end.loseConnection()
        self.net.run()
        self.keys.waiting[0].callback(None)
        self.net.run()
        self.assertEqual(self.reached(), [])
        self.assertEqual(self.meters.all, [])


class RefusedKeyTests(LogCase):
    """Keys that open nothing."""

    def test_forbidden(self) -> None:
        """No key, one that never was and one of a session that has ended are refused, whatever stands in the field."""
        self.session(live=False)
        self.session(key=GOOD)
        for target, *lines in (
            (f"/s/{OTHER}/v1/messages",),
            ("/v1/messages", f"X-Aileron-Gateway-Key: {OTHER}"),
            ("/v1/messages", "X-Aileron-Gateway-Key: something"),
            ("/v1/messages", "X-Aileron-Gateway-Key:"),
            ("/s/dummy/v1/messages",),
            (f"/s/{GOOD}x/v1/messages",),
            (f"/s/{KEY}/v1/messages",),
            (f"/s/{OTHER}/v1/messages", f"X-Aileron-Gateway-Key: {GOOD}"),
        ):
            body = self.refused(self.line().say(request(target, *lines)), 403, "forbidden")
            self.assertEqual(body["error"]["type"], "permission_error")
        self.assertEqual(self.reached(), [])

    def test_store(self) -> None:
        """A store that cannot tell is no permission."""
        self.keys.slow = True
        line = self.line()
        line.say(request(f"/s/{KEY}/v1/messages"))
        self.keys.waiting[0].errback(StoreUnavailable("It is gone."))
        self.refused(self.after(line), 503, "store_unavailable")
        self.assertEqual(self.reached(), [])

    def test_bug(self) -> None:
        """A failure of our own is logged without the key, and refused."""
        self.keys.slow = True
        events = self.watch_the_log()
        line = self.line()
        line.say(request(f"/s/{KEY}/v1/messages"))
        self.keys.waiting[0].errback(ValueError("oops"))
        self.refused(self.after(line), 500, "internal_error")
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertNotIn(KEY, repr(events))

    def test_twice(self) -> None:
        """Two keys in fields are no key."""
        heard = self.line().say(request("/v1/messages", *[f"X-Aileron-Gateway-Key: {KEY}"] * 2))
        self.assertIn(b" 400 ", heard.splitlines()[0])
        self.assertEqual(self.reached(), [])


class SecrecyTests(LogCase):
    """Nothing of a call is told to anybody else."""

    def test_nothing_is_logged(self) -> None:
        """No key, header, path or body of any call, good or bad, is in a log."""
        events = self.watch_the_log()
        self.session()
        for target in (f"/s/{KEY}/v1/messages?canary", f"/s/{OTHER}/v1/messages?canary", f"/s/{KEY}/canary"):
            line = self.line()
            line.say(request(target, "X: canary", "Content-Type: application/json", body=b"canary"))
            for peer in self.places["anthropic"].peers:
                peer.end.write(b"HTTP/1.1 500 canary\r\nContent-Length: 6\r\n\r\ncanary")
            self.net.run()
            line.end.abortConnection()
            self.net.run()
        said = repr(events)
        self.assertNotIn("canary", said)
        self.assertNotIn("ail_g_", said)

    def test_meters(self) -> None:
        """A meter hears of a call's whole course, and ends once."""
        self.session()
        line, there = self.ask(request(f"/s/{KEY}/v1/messages"), "anthropic")
        there.end.write(b"HTTP/1.1 201 Made\r\nContent-Length: 4\r\n\r\nma")
        self.net.run()
        there.end.write(b"de")
        self.after(line)
        meter = self.meters.all[0]
        self.assertEqual(meter.told, ["sent", "arrived", "answered"])
        self.assertEqual((meter.code, meter.body, meter.uploads, meter.ending), (201, b"made", 2, Ending.COMPLETE))
