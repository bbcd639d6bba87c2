"""One message to one push service: where it may go, what is sent there, and what the answers mean."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import ConnectionOpener, HttpTransport
from aileron.features.push._browsers import MOST_ENDPOINT, check_endpoint
from aileron.features.push._encryption import make_key, read_key
from aileron.features.push._sender import ATTEMPT_SECONDS, BrowserGone, PushRefused, PushSender
from aileron.features.push.values import PushMessage, Subscription
from tests.connectors.certificate import Certificate
from tests.connectors.service import Service, answer

from .case import ENDPOINT, BrowserDouble, check_vapid

PUBLIC = "203.0.114.7"
MESSAGE = PushMessage("01JA0000000000000000000001", 3, 900)

FORBIDDEN = (
    "http://push.example/send/1",
    "https://push.example:8443/send/1",
    "https://user@push.example/send/1",
    "https://push.example/send/1#x",
    "https://localhost/send/1",
    "https://x.localhost/",
    "https://wdjbmjhtkc.aileron.localhost/",
    "https://127.0.0.1/",
    "https://10.0.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://100.64.0.1/",
    "https://0.0.0.0/",
    "https://[::1]/",
    "https://[fe80::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://printer.local/",
    "https://router.lan/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://127.1/",
    "https://push.example./send",
    "https://push.example\\@127.0.0.1/",
    "ssh://git@push.example/",
    "file:///etc/passwd",
    "push.example/send",
    "",
    "https://push.example/\n",
    "https://push.example/" + "x" * MOST_ENDPOINT,
)
"""Endpoints that no browser is registered with."""


class EndpointTests(SynchronousTestCase):
    def test_allowed(self) -> None:
        """The services of the browsers that there are."""
        for endpoint in (
            ENDPOINT,
            "https://fcm.googleapis.com/fcm/send/abc:APA91b_x-y",
            "https://updates.push.services.mozilla.com/wpush/v2/gAAAA",
            "https://web.push.apple.com/QGuQyavXutnMH",
            "https://wns2-par02p.notify.windows.com/w/?token=BQYAAA%3d",
        ):
            self.assertIn(".", check_endpoint(endpoint))

    def test_forbidden(self) -> None:
        """Neither another scheme or port, nor this machine, a private network or a cloud's metadata in any spelling."""
        for endpoint in FORBIDDEN:
            with self.assertRaises(ValueError, msg=endpoint):
                check_endpoint(endpoint)


class SenderTests(SynchronousTestCase):
    """A push service behind a certificate, at a public address."""

    def setUp(self) -> None:
        certificate = Certificate.made("push.example")
        self.service = Service(names={"push.example": [PUBLIC]}, certificate=certificate, trusted=certificate)
        self.service.reactor.advance(1_700_000_000)
        self.browser = BrowserDouble()
        self.key = read_key(make_key())
        self.lookups: list[str] = []

    def resolve(self, host: str) -> Deferred[Sequence[str]]:
        """Note each look-up."""
        self.lookups.append(host)
        return succeed(self.service.names.get(host, [host]))

    def start(self, endpoint: str = ENDPOINT, *, urgent: bool = True) -> Deferred[None]:
        """Begin to send."""
        assert self.service.trusted is not None
        opener = ConnectionOpener(
            self.service.reactor, self.resolve, self.service.trusted.verifying, lambda: self.service.own_ports
        )
        sender = PushSender(
            post=HttpTransport(opener).send, clock=self.service.reactor, randomness=lambda count: b"s" * count
        )
        subscription = Subscription(endpoint, self.browser.point, self.browser.auth)
        sending = Deferred.fromCoroutine(sender.send(MESSAGE, subscription, self.key, urgent=urgent))
        self.service.advance(0)
        return sending

    def refused(self, endpoint: str = ENDPOINT) -> PushRefused:
        """Why it was not accepted."""
        value = self.failureResultOf(self.start(endpoint), PushRefused).value
        assert isinstance(value, PushRefused)
        self.assertNotIn("send", value.problem)
        return value

    def test_sent(self) -> None:
        """It is posted once, by TLS that was verified, for the service's own origin and the time that is left."""
        self.service.replies += [answer(b"", 201), answer(b"", 200)]
        self.successResultOf(self.start())
        head, _, body = self.service.requests[0].partition(b"\r\n\r\n")
        lines = head.decode("ascii").split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:])
        self.assertEqual(lines[0], "POST /send/1 HTTP/1.1")
        told = {name.lower(): value for name, value in fields.items()}
        self.assertEqual((told["ttl"], told["topic"], told["urgency"]), ("900", "pending", "high"))
        self.assertEqual((told["content-encoding"], told["content-length"]), ("aes128gcm", "615"))
        check_vapid(told["authorization"], "https://push.example", 1_700_000_000)
        self.assertEqual(self.browser.open(body), b'{"id":"01JA0000000000000000000001","n":3}')
        self.successResultOf(self.start(urgent=False))
        self.assertIn(b"Urgency: normal", self.service.requests[1])

    def test_answers(self) -> None:
        """404 and 410: the browser is gone. Anything else but 2xx: not accepted; a redirect is not followed."""
        for status in (404, 410):
            self.service.replies.append(answer(b"", status))
            self.failureResultOf(self.start(), BrowserGone)
        for status in (301, 302, 307, 308, 400, 401, 403, 413, 500, 503):
            self.service.replies.append(answer(b"", status, {"Location": "https://127.0.0.1/", "Retry-After": "5"}))
            self.assertEqual(self.refused().retry_seconds, 0)
        for told, seconds in (("7", 7), ("99999", 3600), ("-1", 0), ("9" * 30, 0), ("soon", 0)):
            self.service.replies.append(answer(b"", 429, {"Retry-After": told}))
            self.assertEqual(self.refused().retry_seconds, seconds)
        self.assertEqual({address for address, _ in self.service.connected}, {PUBLIC})
        self.assertEqual({port for _, port in self.service.connected}, {443})

    def test_not_there(self) -> None:
        """A service that does not answer is given up, and so is one with an endless answer or another certificate."""
        self.service.replies += [None, answer(b"x" * 20_000)]
        slow = self.start()
        self.service.advance(ATTEMPT_SECONDS - 1)
        self.assertNoResult(slow)
        self.service.advance(1.5)
        self.failureResultOf(slow, PushRefused)
        self.refused()
        self.service.trusted = Certificate.made("nobody.invalid")
        self.refused()

    def test_forbidden(self) -> None:
        """An endpoint that may not be registered is not sent to either, whatever the vault holds."""
        for endpoint in FORBIDDEN:
            self.refused(endpoint)
        self.assertEqual((self.service.connected, self.lookups), ([], []))

    def test_names(self) -> None:
        """A public name that leads to this machine, a private network or metadata is not connected to."""
        for address in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "0.0.0.0", "::ffff:10.0.0.1"):
            self.service.names["push.example"] = [address]
            self.refused()
        self.assertEqual(self.service.connected, [])

    def test_rebinding(self) -> None:
        """The name is looked up once a message, and the address that was checked is connected to."""
        self.service.names["push.example"] = ["127.0.0.1", PUBLIC, "10.0.0.1"]
        self.service.replies.append(answer(b"", 201))
        self.successResultOf(self.start())
        self.assertEqual((self.service.connected, self.lookups), ([(PUBLIC, 443)], ["push.example"]))
        self.service.names["push.example"] = ["127.0.0.1"]
        self.refused()
        self.assertEqual((len(self.service.connected), len(self.lookups)), (1, 2))
