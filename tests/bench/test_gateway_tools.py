"""Tests of what the gateway's benchmark tells its tools and reads from them."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from bench.gateway._contenders import Pinned, nginx_configuration
from bench.gateway._endurance import PARTS, REQUESTS, kinds
from bench.gateway._processes import cpu_seconds
from bench.gateway._tools import Load, Upstream, figures


class ArgumentsTests(SynchronousTestCase):
    """What the client is told."""

    def test_all(self) -> None:
        """Everything that is asked of it stands behind its option; a connection for each request is a flag."""
        load = Load("s5,150,20", 50, 2.5, warm_up=1.0, ramp=0.5, most=7)
        self.assertEqual(load.arguments(8080), "-p 8080 -c 50 -x s5,150,20 -d 2.5 -w 1.0 -r 0.5 -m 7".split())
        self.assertEqual(Load("j300", 1, 1, renew=True).arguments(1)[-1], "-n")


class FiguresTests(SynchronousTestCase):
    """What the client prints."""

    def test_numbers(self) -> None:
        """Its JSON is read as numbers by name; a client that ended before it had said all is an error."""
        self.assertEqual(figures('{"errors": 0, "event_p99": 12.5}\n'), {"errors": 0.0, "event_p99": 12.5})
        self.assertRaises(RuntimeError, figures, '{"errors": 0, "event')
        self.assertRaises(RuntimeError, figures, "")
        self.assertRaises(json.JSONDecodeError, figures, "segmentation fault}\n")


class UpstreamTests(SynchronousTestCase):
    """How an upstream is named."""

    def test_urls(self) -> None:
        """It is at an address of loopback, or has the name that its certificate has, which is trusted."""
        upstream = Upstream(9000, 9000)
        self.assertEqual((upstream.url, upstream.environment), ("http://127.0.0.1:9000", {}))
        upstream = Upstream(9001, 9000, Path("/there/certificate.pem"))
        self.assertEqual(upstream.url, "https://localhost:9001")
        self.assertEqual(upstream.environment, {"SSL_CERT_FILE": "/there/certificate.pem"})


class NginxTests(SynchronousTestCase):
    """Its configuration is written for one run."""

    pinned = Pinned(Path("/made"), 0, 4096)

    def test_lines(self) -> None:
        """It passes on without buffers, to kept connections, and verifies whom it speaks to, as the others do."""
        plain = nginx_configuration(self.pinned, Upstream(9000, 9000), 8080)
        tls = nginx_configuration(self.pinned, Upstream(9001, 9000, Path("/there/certificate.pem")), 8080)
        for line in ("listen 127.0.0.1:8080", "server 127.0.0.1:9000;", "http://provider;", "proxy_buffering off;"):
            self.assertIn(line, plain)
        self.assertNotIn("$", plain)
        self.assertNotIn("proxy_ssl", plain)
        for line in ("https://provider;", "certificate /there/certificate.pem;", "proxy_ssl_verify on;"):
            self.assertIn(line, tls)


class ProcessorTimeTests(SynchronousTestCase):
    """The system's account of a process."""

    def test_any_name(self) -> None:
        """A name with spaces and parentheses moves no field."""
        stat = f"12 (a (b) c) S {' '.join(str(number) for number in range(4, 53))}"
        self.assertEqual(cpu_seconds(stat) / cpu_seconds(stat.replace("a (b) c", "abc")), 1)
        self.assertEqual(cpu_seconds(stat.replace(" 14 15 ", " 28 30 ")), 2 * cpu_seconds(stat))


class EnduranceTests(SynchronousTestCase):
    """The load of the long run."""

    def test_sum(self) -> None:
        """Its parts add up to what the row says."""
        self.assertEqual(sum(load.most for load in kinds(REQUESTS // PARTS)) * PARTS, REQUESTS)
