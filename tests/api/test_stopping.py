"""A daemon that stops while others go on: what it still answers, and what it leaves to them."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.api import GuardedSite, SiteRules

from .case import ApiCase
from .test_channel import HOST, Echo, Line


class RouteTests(ApiCase):
    """Routes, once the daemon stops."""

    def stop(self) -> None:
        self.build(is_stopping=lambda: True)

    def test_ready(self) -> None:
        """A balancer hears that it is not ready, though the store and the vault are; that it lives stays true."""
        self.assertEqual(self.agents.ask("GET", "/v1/ready").status, 200)
        self.stop()
        for site in (self.agents, self.operator):
            heard = site.ask("GET", "/v1/ready")
            self.assertEqual((heard.status, heard.kind), (503, "store_unavailable"))
            self.assertEqual(heard.json["error"]["details"], {"stopping": True, "retry_after": 1})
            self.assertTrue(heard.json["error"]["retriable"])
            self.assertEqual(site.ask("GET", "/v1/health").status, 200)

    def test_wait(self) -> None:
        """A call that waits for a person is answered at once, with the run and that it can be followed elsewhere."""
        token = self.open_session()["token"]
        self.stop()
        heard = self.agents.ask(
            "POST", "/v1/actions/ship-update/run", token, {"args": {"text": "x"}}, headers={"Prefer": "wait=60"}
        )
        self.assertEqual((heard.status, heard.json["retry_after"]), (202, 0), heard.text)
        run = self.agents.ask("GET", f"/v1/runs/{heard.json['run_id']}?wait=60", token)
        self.assertEqual(run.status, 200, run.text)


class SiteTests(SynchronousTestCase):
    """The agent site's connections."""

    def setUp(self) -> None:
        self.clock, self.echo = Clock(), Echo()
        self.site = GuardedSite(self.echo, SiteRules([HOST]), self.clock)
        self.site.startFactory()

    def line(self) -> Line:
        return Line(self.site)

    def ask(self, line: Line, start: str, *fields: str) -> tuple[int, Any]:
        lines = (f"{start} HTTP/1.1", f"Host: {HOST}", *fields)
        heard = line.say("\r\n".join([*lines, "", ""]).encode("ascii"))
        head, _, body = heard.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 "), heard)
        return int(head.split()[1]), body

    def test_refused(self) -> None:
        """New work is refused in the envelope, and its connection ends, whichever line it comes by; reads are not."""
        used = self.line()
        self.assertEqual(self.ask(used, "GET /v1/runs")[0], 200)
        self.site.refuse_work()
        for start in ("POST /v1/actions/a/run", "POST /mcp", "GET /mcp", "POST /v1/sessions", "DELETE /v1/runs/r"):
            for line in (used, self.line()):
                status, body = self.ask(line, start, "Content-Type: application/json", "Content-Length: 0")
                self.assertEqual(status, 503, start)
                error = json.loads(body)["error"]
                self.assertEqual((error["class"], error["retriable"]), ("store_unavailable", True))
            used = self.line()
        self.assertEqual(self.ask(self.line(), "GET /v1/ready")[0], 200)
        self.assertEqual(self.echo.seen, [b"", b""])

    def test_working(self) -> None:
        """It works while an answer to a change is due, and not for a stream or a long poll."""
        self.echo.hold = True
        polling, changing = self.line(), self.line()
        polling.say(f"GET /v1/runs HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        self.assertFalse(self.site.is_working)
        fields = "Content-Type: application/json\r\nContent-Length: 2"
        changing.say(f"POST /v1/x HTTP/1.1\r\nHost: {HOST}\r\n{fields}\r\n\r\n{{}}".encode())
        self.assertTrue(self.site.is_working)
        self.site.refuse_work()
        self.assertTrue(self.site.is_working)
        self.echo.held[-1].finish()
        self.assertFalse(self.site.is_working)
