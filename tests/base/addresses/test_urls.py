"""Every URL of the corpus is read as it must be, and what is read no other reader takes for another."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.python.url import URL
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import URI

from aileron.base.addresses import (
    Origin,
    base_url_problem,
    bracketed,
    host_shown,
    read_base_url,
    read_host,
    read_host_and_port,
    read_origin,
    read_url,
)
from tests.extent import examples

CORPUS: dict[str, list[list[Any]]] = json.loads(Path(__file__).with_name("corpus.json").read_text("utf-8"))
_PORTS = {"http": 80, "https": 443}


class CorpusTests(SynchronousTestCase):
    """The cases of the WHATWG URL standard that matter to us, and more."""

    def test_origins(self) -> None:
        """A URL leads where the corpus says, or is refused."""
        for text, plain, why in CORPUS["origins"]:
            if plain is None:
                self.assertRaises(ValueError, read_origin, text)
            else:
                self.assertEqual(read_origin(text).url, plain, why)

    def test_base_urls(self) -> None:
        """A base URL comes out in its plainest form, which comes out as itself, or is refused."""
        for text, plain, why in CORPUS["base_urls"]:
            if plain is None:
                self.assertRaises(ValueError, read_base_url, text)
            else:
                self.assertEqual((read_base_url(text).url, read_base_url(plain).url), (plain, plain), why)
        for text, plain, why in CORPUS["origins"]:
            if plain is None:
                error = self.assertRaises(ValueError, read_base_url, text)
                self.assertTrue(str(error).startswith("must "), why)

    def test_ssh(self) -> None:
        """A URL of SSH is read only where one may be, and names a user, and no password."""
        text = "ssh://git@Git.example/me/site.git"
        for read in (read_origin, read_base_url):
            self.assertRaises(ValueError, read, text)
        base = read_base_url(text, ssh=True)
        self.assertEqual((base.url, base.origin.port), ("ssh://git@git.example/me/site.git", 22))
        self.assertEqual(read_origin("ssh://git@[::1]:2222/a", ssh=True).url, "ssh://git@[::1]:2222")
        self.assertEqual(host_shown(text), "git.example")
        for user in ("", "@", "git:canary@", "-oProxyCommand=x@", "Git@", "a@b@"):
            error = self.assertRaises(ValueError, read_base_url, f"ssh://{user}git.example/a.git", ssh=True)
            self.assertNotIn("canary", str(error))

    def test_nothing_is_repeated(self) -> None:
        """What is refused may hold a secret, and none of it is in the message."""
        for text in (
            "https://canary:x@a.test",
            "https://a.test/?canary",
            "https://canary_.test",
            "canary",
            "https://[canary]",
        ):
            self.assertNotIn("canary", str(self.assertRaises(ValueError, read_base_url, text)))

    def test_length(self) -> None:
        """A base URL has 600 characters at most, a host 253."""
        self.assertEqual(len(read_base_url("https://x.test/" + "a" * 585).url), 600)
        self.assertIn("600", str(self.assertRaises(ValueError, read_base_url, "https://x.test/" + "a" * 586)))
        host = ".".join(["a" * 49] * 5) + ".abc"
        self.assertEqual(len(read_host(host)), 253)
        self.assertRaises(ValueError, read_host, "b" + host)

    def test_parts(self) -> None:
        """A URL is taken apart; a password shows in no text about it."""
        url = read_url("http://me:canary@proxy.test:3128/a?b#c")
        self.assertEqual((url.origin, url.path), (Origin("http", "proxy.test", 3128), "/a"))
        self.assertEqual((url.query, url.fragment, url.user_info), ("b", "c", "me:canary"))
        self.assertNotIn("canary", repr(url))
        bare = read_url("http://proxy.test")
        self.assertEqual((bare.path, bare.query, bare.fragment, bare.user_info), ("", None, None, None))


class KeptTests(SynchronousTestCase):
    """Base URLs and hosts that are kept, and put under digests, as they are written."""

    def test_plain(self) -> None:
        """What is in its plainest form is fine, with a slash at its end too."""
        for text in ("https://x.test", "https://x.test/", "https://x.test:8443/a/", "https://[2001:db8::1]"):
            self.assertIsNone(base_url_problem(text), text)

    def test_not_plain(self) -> None:
        """What is not is told its plain form, and what is none what it must be."""
        for text, problem in (
            ("https://X.test", "must be written as https://x.test"),
            ("https://x.test:443/a", "must be written as https://x.test/a"),
            ("https://[2001:db8:0::1]", "must write its address as [2001:db8::1]"),
            ("https://[::ffff:192.0.2.1]", "must write its address as [::ffff:c000:201]"),
            ("https://0x7f.1", "must have a proper address: four decimal numbers, or a name that ends in no number"),
        ):
            self.assertEqual(base_url_problem(text), problem, text)

    def test_exact(self) -> None:
        """An IPv6 address under a digest must be plain; letters and the default port may be as they like."""
        self.assertEqual(read_base_url("HTTPS://[2001:DB8::1]:443/", exact=True).url, "https://[2001:db8::1]")
        self.assertRaises(ValueError, read_base_url, "https://[2001:db8:0::1]", exact=True)

    def test_host_and_port(self) -> None:
        """A host with its port is read in any case and comes out in lower case."""
        for text in ("api.example:443", "API.example:1", "192.0.2.1:65535", "[2001:DB8::1]:443", "a_b.example:80"):
            self.assertEqual(read_host_and_port(text), text.lower())
        for text in (
            *("", ":", ":443", "api.example", "api.example:", "api.example:0", "api.example:65536", "api.example:x"),
            *("api.example:0443", "a:b:443", "2001:db8::1:443", "[2001:db8::1]", "[2001:db8:0::1]:443", "[x]:443"),
            *("127.1:443", "0x7f.1:443", "api.example.:443", "a b:443", "*:443", "me@api.example:443", "https://a:443"),
        ):
            self.assertRaises(ValueError, read_host_and_port, text)


class ShownTests(SynchronousTestCase):
    """The host of a URL, for a person."""

    def test_shown(self) -> None:
        """The host is shown as it is read, and that of a URL that is refused as it is written."""
        for url, host in (
            ("https://me:canary@API.example:8443/a", "api.example"),
            ("https://127.1/a", "127.1"),
            ("https://a b:1?c", "a b:1"),
            ("socks5://proxy.test:1080", "proxy.test:1080"),
            ("nothing", ""),
        ):
            self.assertEqual(host_shown(url), host, url)

    def test_nobody_can_tell(self) -> None:
        """Where an @ may make a password of it, or another host, nothing is shown."""
        for url in ("socks5://me:canary@proxy.test", "http://me:canary/x@proxy.test", "https://127.1/a@b.example"):
            self.assertEqual(host_shown(url), "", url)


_CHARACTERS = st.sampled_from("htps:/.[]@?#%\\01x27af\t-_~ G\u00e9\u3002")
_HOSTS = st.one_of(
    st.ip_addresses().map(lambda address: bracketed(str(address))),
    st.ip_addresses(v=6).map(lambda address: f"[{address.exploded.upper()}]"),
    st.from_regex(r"[a-zA-Z0-9_]{1,3}([.-]{1,2}[a-zA-Z0-9]{1,3}){0,3}", fullmatch=True),
    st.from_regex(r"(0[xX])?[0-9a-f]{1,3}(\.(0[xX])?[0-9]{1,3}){0,3}\.?", fullmatch=True),
    st.from_regex(r"xn--[a-z0-9-]{0,6}(\.[a-z]{1,3})?", fullmatch=True),
)
_PORT_TEXTS = st.one_of(st.just(""), st.integers(-1, 70000).map(lambda port: f":{port}"), st.just(":"))


def _read_by_others(text: str) -> set[tuple[str, str, int]]:
    """Scheme, host and port as the standard library, hyperlink and Twisted's client read them."""
    scheme, colon, rest = text.partition(":")
    # Twisted's URL, which is hyperlink's, alone tells schemes by their case
    split, link = urlsplit(text), URL.fromText(scheme.lower() + colon + rest)
    uri = URI.fromBytes(text.encode("ascii"))
    return {
        (split.scheme, _plain(split.hostname or ""), split.port or _PORTS[split.scheme]),
        (link.scheme, _plain(link.host), link.port or 0),
        (uri.scheme.decode("ascii"), _plain(uri.host.decode("ascii").strip("[]")), uri.port),
    }


def _plain(host: str) -> str:
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower()
    return read_host(bracketed(address.exploded if address.version == 6 else str(address)))


class AgreementTests(SynchronousTestCase):
    """What is read here, others read as the same."""

    def agreed(self, text: str) -> None:
        """Assert that a URL is refused, or read alike by all."""
        try:
            origin = read_origin(text)
        except ValueError:
            return
        self.assertEqual(_read_by_others(text), {(origin.scheme, origin.host, origin.port)}, text)
        self.assertEqual(_read_by_others(origin.url), {(origin.scheme, origin.host, origin.port)}, text)
        self.assertEqual(read_origin(origin.url), origin, text)

    def test_corpus(self) -> None:
        """So it is with the corpus."""
        for text, *_ in (*CORPUS["origins"], *CORPUS["base_urls"]):
            self.agreed(text)

    @settings(deadline=None, max_examples=examples(300))
    @given(st.sampled_from(["https", "HTTP"]), _HOSTS, _PORT_TEXTS, st.sampled_from(["", "/", "/a@b", "?a", "#a"]))
    def test_built(self, scheme: str, host: str, port: str, rest: str) -> None:
        """So it is with whatever is built of hosts, ports and what may follow."""
        self.agreed(f"{scheme}://{host}{port}{rest}")

    @settings(deadline=None, max_examples=examples(300))
    @given(st.text(_CHARACTERS, max_size=30))
    @example("[::1]:443")
    def test_wild(self, tail: str) -> None:
        """So it is with any text, and a base URL comes out in a form that comes out as itself."""
        for text in (tail, f"https://{tail}", f"http://127.0.0.1{tail}", f"https://x.test{tail}"):
            self.agreed(text)
            try:
                plain = read_base_url(text).url
            except ValueError:
                continue
            self.assertEqual(read_base_url(plain).url, plain)
            self.assertNotIn("@", plain)
