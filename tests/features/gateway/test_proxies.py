"""Which proxy stands before which upstream."""

from __future__ import annotations

from base64 import b64encode

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.addresses import Origin
from aileron.features.gateway._proxies import Proxies, Proxy, Unusable, read_proxies
from aileron.features.gateway._unreachable import Cause, UpstreamUnreachable
from tests.extent import examples


def proxy_at(host: str, port: int) -> Proxy:
    """A proxy that asks for no credentials."""
    return Proxy(Origin("http", host, port))


CORP = proxy_at("proxy.corp", 3128)
API = Origin("https", "api.example.com", 443)


def corp(no_proxy: str = "") -> Proxies:
    """An environment with a proxy for all."""
    return read_proxies({"all_proxy": "http://proxy.corp:3128", "no_proxy": no_proxy})


class ChoosingTests(SynchronousTestCase):
    """The variables are read in curl's order."""

    def before(self, scheme: str = "https", **environment: str) -> Proxy | None:
        """What stands before an upstream of that scheme."""
        return read_proxies(environment).before(Origin(scheme, "api.example.com", 443))

    def test_by_variable(self) -> None:
        """Each scheme has its own variable, and one for all stands in; lower case comes first, unless it is empty."""
        a, b, every = "http://a:1", "http://b:2", "http://c:3"
        for scheme, environment, proxy in (
            ("https", {}, None),
            ("https", {"https_proxy": "", "HTTPS_PROXY": " "}, None),
            ("https", {"HTTPS_PROXY": a, "HTTP_PROXY": b}, proxy_at("a", 1)),
            ("http", {"HTTPS_PROXY": a, "HTTP_PROXY": b}, proxy_at("b", 2)),
            ("http", {"HTTPS_PROXY": a}, None),
            ("http", {"HTTPS_PROXY": a, "ALL_PROXY": every}, proxy_at("c", 3)),
            ("https", {"HTTPS_PROXY": a, "all_proxy": every}, proxy_at("a", 1)),
            ("https", {"https_proxy": a, "HTTPS_PROXY": b}, proxy_at("a", 1)),
            ("https", {"https_proxy": "", "HTTPS_PROXY": b}, proxy_at("b", 2)),
            ("https", {"ALL_PROXY": every, "NO_PROXY": "api.example.com"}, None),
        ):
            self.assertEqual(self.before(scheme, **environment), proxy, environment)

    def test_shapes(self) -> None:
        """Scheme and port may be missing; the host may be an address."""
        for value, proxy in (
            ("proxy.corp:3128", CORP),
            ("HTTP://Proxy.corp:3128/", CORP),
            ("http://proxy.corp", proxy_at("proxy.corp", 80)),
            ("http://10.0.0.1:8080", proxy_at("10.0.0.1", 8080)),
            ("http://[fd00::1]:8080", proxy_at("fd00::1", 8080)),
        ):
            self.assertEqual(self.before(https_proxy=value), proxy, value)

    def test_authority(self) -> None:
        """Host and port are written as a URL writes them."""
        self.assertEqual(CORP.authority, "proxy.corp:3128")
        self.assertEqual(proxy_at("fd00::1", 8080).authority, "[fd00::1]:8080")


class CredentialsTests(SynchronousTestCase):
    """User and password reach the proxy and nobody else."""

    def test_line(self) -> None:
        """They are unquoted and become one line of the head, which no line end in them ends; a password may miss."""
        for user_info, encoded in (
            ("Aladdin:open%20sesame", b"QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("a:b%0d%0aX-Evil:1", b64encode(b"a:b\r\nX-Evil:1")),
            ("me", b"bWU6"),
        ):
            proxy = read_proxies({"https_proxy": f"http://{user_info}@proxy.corp:3128"}).before(API)
            assert proxy is not None
            self.assertEqual(proxy.credentials, b"Proxy-Authorization: Basic " + encoded + b"\r\n")

    def test_not_shown(self) -> None:
        """No text about a proxy holds them, nor about one that is unusable."""
        for value in (
            "http://canary:canary@proxy.corp:3128",
            "socks5://canary:canary@proxy.corp:1080",
            "http://canary:canary/@proxy.corp",
            "http://canary:canary#@proxy.corp",
            "http://canary:cana ry@proxy.corp",
        ):
            proxies = read_proxies({"https_proxy": value})
            self.assertNotIn("cana", repr(proxies), value)


class UnusableTests(SynchronousTestCase):
    """A proxy that nobody can use is an error where it would be used, and only there."""

    def refused(self, value: str) -> str:
        """The message of the refusal."""
        proxies = read_proxies({"HTTPS_PROXY": value, "NO_PROXY": "elsewhere.example"})
        self.assertIsNone(proxies.before(Origin("http", "api.example.com", 80)))
        self.assertIsNone(proxies.before(Origin("https", "elsewhere.example", 443)))
        error = self.assertRaises(UpstreamUnreachable, proxies.before, API)
        self.assertEqual(error.cause, Cause.PROXY)
        return str(error)

    def test_other_kinds(self) -> None:
        """SOCKS and proxies behind TLS are refused by name; the variable is named too."""
        for kind in ("socks5", "socks5h", "socks4", "https"):
            message = self.refused(f"{kind}://proxy.corp:1080")
            self.assertIn(f"{kind}://", message)
            self.assertIn("HTTPS_PROXY", message)

    def test_no_url(self) -> None:
        """What is no plain URL of a host is refused, never half read."""
        for value in (
            "http://",
            "http://:3128",
            "http://proxy corp",
            "http://proxy.corp:port",
            "http://proxy.corp:0",
            "http://proxy.corp:99999",
            "http://proxy.corp/path",
            "http://proxy.corp?x",
            "http://u:p#w@proxy.corp",
            "http://u:p/w@proxy.corp",
            "http://pr\\oxy.corp",
            "http://pröxy.corp",
            "http://127.1:3128",
            "http://proxy.corp.:3128",
            "http://proxy.corp:",
            "http://[proxy.corp",
            "http://a,b",
        ):
            self.assertIn("HTTPS_PROXY is not the URL of a proxy", self.refused(value), value)

    @settings(deadline=None, max_examples=examples(200))
    @given(st.text(max_size=40))
    def test_anything(self, value: str) -> None:
        """Whatever a variable holds, reading it does not fail."""
        found = read_proxies({"https_proxy": value, "no_proxy": value}).by_scheme.get("https")
        self.assertIsInstance(found, Proxy | Unusable | None)


class ExemptionTests(SynchronousTestCase):
    """C{NO_PROXY} says what is reached directly."""

    def test_exempt(self) -> None:
        """Names are exempt with all below them, addresses and networks however written, with a port for that alone.

        Entries are parted by commas, blanks or both; empty ones mean nothing.
        """
        names, others = "example.com api.example.com", "badexample.com example.com.evil.net com"
        for entry, exempt, proxied in (
            ("example.com", names, others),
            (".example.com", names, others),
            ("*.example.com", names, others),
            ("EXAMPLE.com", names, others),
            ("example.com.", names, others),
            ("a.example, b.example,,c.example d.example", "a.example b.example c.example d.example", ""),
            (" , ,", "", "a.example"),
            (".", "", "a.example"),
            ("*", "a.example 10.0.0.1 2001:db8::1", ""),
            ("x.example,*", "a.example", ""),
            ("10.0.0.1", "10.0.0.1", "10.0.0.11 110.0.0.1 a.10.0.0.1"),
            ("2001:db8::1", "2001:db8:0:0::1", ""),
            ("[2001:db8::1]", "2001:db8::1", ""),
            ("10.0.0.0/8", "10.9.8.7", "11.0.0.1 10.example 2001:db8::1"),
            ("10.1.2.3/8", "10.9.8.7", ""),
            ("2001:db8::/32", "2001:db8:9::1", ""),
            ("example.com:443", names, others),
            ("example.com:8443", "", "example.com"),
            ("10.0.0.1:443", "10.0.0.1", ""),
            ("[2001:db8::1]:443", "2001:db8::1", ""),
            ("[2001:db8::1]:80", "", "2001:db8::1"),
        ):
            for hosts, proxy in ((exempt, None), (proxied, CORP)):
                for host in hosts.split():
                    self.assertEqual(corp(entry).before(Origin("https", host, 443)), proxy, f"{entry!r} {host}")


class LoopbackTests(SynchronousTestCase):
    """What is on this machine stays on this machine."""

    HOSTS = ("localhost", "llm.localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:7f00:1", "0.0.0.0")

    def test_remote_proxy(self) -> None:
        """An upstream on loopback is not asked of another machine's proxy, where it would be another one."""
        for host in self.HOSTS:
            for scheme in ("http", "https"):
                self.assertIsNone(corp().before(Origin(scheme, host, 8000)), host)

    def test_proxy_here(self) -> None:
        """A proxy on loopback serves upstreams on loopback too, as with curl, unless they are exempt."""
        for value in ("http://127.0.0.1:3128", "http://localhost:3128", "http://[::1]:3128"):
            proxies = read_proxies({"http_proxy": value, "no_proxy": "127.0.0.1"})
            self.assertIsNotNone(proxies.before(Origin("http", "localhost", 8000)))
            self.assertIsNone(proxies.before(Origin("http", "127.0.0.1", 8000)))
