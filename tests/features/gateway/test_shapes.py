"""The gateway in the operator's API: what is shown of a proxy."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.gateway.shapes import proxy_shown
from tests.extent import examples


class ProxyTests(SynchronousTestCase):
    """User and password are never shown, however oddly they are written."""

    def test_plain(self) -> None:
        """Scheme, host and port are shown, nothing before or after, and nothing of what cannot be told apart."""
        for text in ("http://proxy.test:3128", "proxy.test:3128", "proxy.test", "http://[::1]:80", "socks5h://p"):
            self.assertEqual(proxy_shown("all_proxy", text), text)
        for text, place in (
            ("http://u:canary@proxy.test:1", "http://proxy.test:1"),
            ("http://canary@proxy.test", "http://proxy.test"),
            ("u:canary@proxy.test:1", "proxy.test:1"),
            ("http://u:p@canary@proxy.test", "http://proxy.test"),
            ("http://u:can/ary@proxy.test/", "http://proxy.test"),
            ("http://proxy.test/canary?canary#canary", "http://proxy.test"),
            ("http://u:can?ary@proxy.test", "http://proxy.test"),
        ):
            self.assertEqual(proxy_shown("https_proxy", text), place)
        for text in (
            "http://u:canary",
            "http://canary@",
            "u:canary@http://proxy.test",
            "http://u:canary://proxy.test",
            "canary proxy.test",
            "canary\x1b[0m",
            "@",
        ):
            self.assertEqual(proxy_shown("http_proxy", text), "(unreadable)")

    def test_exceptions(self) -> None:
        """A list of exceptions is shown whole, but for what could be none."""
        text = "localhost, 127.0.0.0/8,.x.test,*,[::1]:80,x.test:8080"
        self.assertEqual(proxy_shown("no_proxy", text), text.replace(" ", ""))
        self.assertEqual(proxy_shown("no_proxy", "u:canary@x.test,,a b,\x1bc"), "(unreadable),a,b,(unreadable)")

    @settings(deadline=None, max_examples=examples(200))
    @given(st.text(st.sampled_from("ab:/@?#[].1 "), max_size=12), st.text(st.sampled_from("ab:/@?#[].1 "), max_size=12))
    def test_wild(self, before: str, after: str) -> None:
        """Whatever stands before the last C{@} of a proxy is not shown."""
        for scheme in ("", "http://"):
            self.assertNotIn("canary", proxy_shown("https_proxy", f"{scheme}{before}canary{after}@proxy.test"))
