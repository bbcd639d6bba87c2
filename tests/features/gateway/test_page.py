"""The page of the gateway."""

from __future__ import annotations

from aileron.features.gateway.values import GatewaySettings, Histogram, Traffic
from aileron.model.usage import Usage
from tests.api.case import running
from tests.web.case import WebCase, read

from .running import relaying


class GatewayPageTests(WebCase):
    """C{/gateway}."""

    def test_counted(self) -> None:
        """What was counted is drawn, and stands there in numbers as well; before anything went through it says so."""
        self.build(features=running(relaying()))
        text = self.fragment("/gateway").text
        self.assertIn("No requests since the daemon started", text)
        self.assertIn("https://api.anthropic.com", text)
        added = Histogram((0.001, 0.01), (7, 0, 2))
        traffic = Traffic(begun=10, answers={"2xx": 8, "5xx": 1}, usage=Usage(1234, 56), added=added)
        self.build(features=running(relaying(providers={"openai": traffic})))
        text = self.fragment("/gateway").text
        self.assertIn("1,234", text)
        charts = [each for tag, each in read(text).tags if tag == "svg"]
        self.assertEqual(len(charts), 2)
        self.assertIn("2xx 8, 5xx 1", charts[0]["aria-label"])
        self.assertIn("up to 1 ms 7, longer 2", charts[1]["aria-label"])

    def test_proxies(self) -> None:
        """Of a proxy the host is shown, and however it is written no user and no password."""
        for value, host in (
            ("http://me:canary@proxy.test:3128/", "http://proxy.test:3128"),
            ("me:canary@proxy.test:3128", "proxy.test:3128"),
            ("http://me:canary/x@proxy.test", "http://proxy.test"),
            ("http://me:canary@proxy test", "(unreadable)"),
        ):
            environment = (("https_proxy", value), ("no_proxy", "10.0.0.0/8"))
            self.build(features=running(relaying(GatewaySettings(environment=environment))))
            text = self.fragment("/gateway").text
            self.assertEqual((host in text, "10.0.0.0/8" in text, "canary" in text), (True, True, False), value)
