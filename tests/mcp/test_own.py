"""A client that nobody launched, or an agent elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import to_json
from aileron.client import (
    Connections,
    Daemon,
    DaemonClient,
    DaemonError,
    DaemonFault,
    DaemonUnreachable,
    SessionEnvironment,
)
from aileron.client._session import CA, PLAIN_HOST, URL
from aileron.home.discovery import Discovery
from aileron.mcp._calls import diagnose
from aileron.mcp._daemon import OwnSession, find_daemon, make_own_session
from aileron.mcp._link import DaemonLink
from aileron.mcp._texts import render_error
from aileron.mcp.offering.access import Shortlist
from aileron.model.errors import Forbidden, InvalidRequest
from tests.scripted_site import ScriptedSite

FOUND = Discovery("http://127.0.0.1:9", "http://localhost:8", 7, "life", "1", "2026-01-01T00:00:00Z", "ail_l_key")
OPENED = {"id": "S", "token": "ail_a_secret", "gateway_key": "ail_g"}


class OwnSessionTests(SynchronousTestCase):
    """The session, over a scripted daemon."""

    def setUp(self) -> None:
        self.site, self.clock, self.found = ScriptedSite(), Clock(), FOUND
        self.running: Discovery | None = FOUND
        self.trouble: Exception | None = None
        self.restriction: dict[str, Any] | InvalidRequest | None = None
        self.own = OwnSession("cursor", "/src", self.find, self.connect, self.clock, self.find_restriction)

    def find_restriction(self) -> dict[str, Any] | None:
        """What the project's file says."""
        if isinstance(self.restriction, InvalidRequest):
            raise self.restriction
        return self.restriction

    def find(self) -> Discovery | None:
        """The daemon that runs."""
        if self.trouble is not None:
            raise self.trouble
        return self.running

    def connect(self, url: str, token: str | None) -> DaemonClient:
        """A client."""
        return DaemonClient(self.site.agent, url, token, self.clock)

    def ask(self) -> Deferred[Any]:
        """Ask how the daemon does."""
        return Deferred.fromCoroutine(Daemon(self.own).status())

    def test_opened_once(self) -> None:
        """The first requests open one session, by name, leased, with the launch key; all then use its token."""
        first, second = self.ask(), self.ask()
        [asked] = self.site.asked
        self.assertEqual(asked.body, {"agent": "cursor", "working_dir": "/src", "client": True, "lease": True})
        self.assertEqual(asked.headers["authorization"], "Bearer ail_l_key")
        self.site.answer(201, OPENED)
        paths = [each.path for each in self.site.asked[1:]]
        self.assertEqual(sorted(paths), ["/v1/sessions/S/lease", "/v1/status", "/v1/status"])
        bearers = {each.path: each.headers["authorization"] for each in self.site.asked[1:]}
        expected = {"/v1/status": "Bearer ail_a_secret", "/v1/sessions/S/lease": "Bearer ail_l_key"}
        self.assertEqual(bearers, expected)
        self.site.begin(200, b"event: held\ndata: {}\n\n")
        del first, second

    def test_refused(self) -> None:
        """A client that is not let in has no session, says what the daemon says, and tries again when asked again."""
        for _ in range(2):
            asking = self.ask()
            self.site.answer(403, {"error": to_json(Forbidden("not allowed: aileron config trust").fault())})
            self.assertIn("config trust", str(self.failureResultOf(asking, DaemonFault).value))
        self.assertEqual([each.path for each in self.site.asked], ["/v1/sessions"] * 2)

    def test_restricted(self) -> None:
        """The session is opened with the project's choice of actions, but not while the daemon's profiles are off."""
        self.restriction = {"allow": ["effect:read"]}
        self.ask().addErrback(lambda failure: failure.trap(DaemonError))
        self.assertEqual(self.site.asked[0].body["selection"], {"allow": ["effect:read"]})
        self.site.answer(403, {"error": to_json(Forbidden("no").fault())})
        for self.restriction in ({"allow": ["effect:read"]}, InvalidRequest("bad")):
            self.running = attrs.evolve(FOUND, features_off=("profiles",))
            self.ask().addErrback(lambda failure: failure.trap(DaemonError))
            self.assertNotIn("selection", self.site.asked[-1].body)
            self.site.answer(403, {"error": to_json(Forbidden("no").fault())})

    def test_invalid_restriction(self) -> None:
        """A project's file that is not understood opens no session; the agent reads why, and what its user can do."""
        self.restriction = InvalidRequest("/src/.aileron.toml may have only a table tools. No session was opened.")
        error = self.failureResultOf(self.ask(), DaemonUnreachable).value
        self.assertEqual(self.site.asked, [])
        told = render_error(error).text
        self.assertIn("/src/.aileron.toml may have only a table tools. No session was opened.", told)
        self.assertIn("Nothing was sent. Ask the user to correct or remove this file", told)
        daemon = Daemon(self.own)
        link = DaemonLink(daemon, self.clock)
        diagnosing = diagnose(daemon, link, Shortlist(daemon, 40))
        found = self.successResultOf(Deferred.fromCoroutine(diagnosing))
        self.assertIn("Remedy: ask the user to correct or remove this file", found.text)
        self.restriction = None
        self.ask().addErrback(lambda failure: failure.trap(DaemonError))
        self.assertEqual([each.path for each in self.site.asked], ["/v1/sessions"])

    def test_no_daemon(self) -> None:
        """Without a daemon, and where it cannot be read where that is, nothing is opened."""
        self.running = None
        self.failureResultOf(self.ask(), DaemonUnreachable)
        for self.trouble in (PermissionError(13, "x"), Forbidden("x")):
            self.failureResultOf(self.ask(), DaemonUnreachable)
        self.successResultOf(Deferred.fromCoroutine(self.own.end()))
        self.assertEqual(self.site.asked, [], "nothing is to be ended")

    def test_ended(self) -> None:
        """At our end the session ends and is held no more; one that was ended is not opened anew."""
        self.ask().addErrback(lambda failure: failure.trap(DaemonError))
        self.site.answer(201, OPENED)
        ending = Deferred.fromCoroutine(self.own.end())
        asked = self.site.asked[-1]
        self.assertEqual((asked.path, asked.headers["authorization"]), ("/v1/sessions/S/end", "Bearer ail_a_secret"))
        ending.addErrback(lambda _: None)
        self.ask().addErrback(lambda _: None)
        self.assertEqual([each.path for each in self.site.asked].count("/v1/sessions"), 1)


class WhoseTests(SynchronousTestCase):
    """Which environments open a session."""

    def test_which(self) -> None:
        """Only a name without an address and a token; whoever has either was told by somebody who it is."""
        for environment, opens in (
            ({"AILERON_CLIENT": "cursor"}, True),
            ({}, False),
            ({"AILERON_CLIENT": " "}, False),
            ({"AILERON_CLIENT": "codex", "AILERON_TOKEN": "t"}, False),
            ({"AILERON_CLIENT": "codex", "AILERON_URL": "http://x"}, False),
        ):
            clock = Clock()
            self.assertEqual(
                make_own_session(environment, "/", Connections(clock), clock) is not None, opens, environment
            )


class ProjectTests(SynchronousTestCase):
    """The file of the project in which a client program starts us."""

    def test_read(self) -> None:
        """The file in our working directory counts; that of the home directory does not."""
        home = Path(self.mktemp()).absolute()
        project = home / "shop"
        project.mkdir(parents=True)
        (home / ".aileron.toml").write_text("[tools]\nallow = []\n")
        clock = Clock()
        environment = {"AILERON_CLIENT": "cursor", "HOME": str(home)}
        own = make_own_session(environment, str(project), Connections(clock), clock)
        assert own is not None
        self.assertIsNone(own.find_restriction())
        (project / ".aileron.toml").write_text("[tools]\nallow = ['effect:read']\n")
        self.assertEqual(own.find_restriction(), {"allow": ["effect:read"]})
        (project / ".aileron.toml").write_text("[tool]")
        self.assertRaises(InvalidRequest, own.find_restriction)


class AuthorityTests(SynchronousTestCase):
    """C{AILERON_CA}."""

    def reason(self, url: str, path: str) -> str:
        """Why nothing can be asked."""
        session = SessionEnvironment.of({"AILERON_URL": url, "AILERON_TOKEN": "t", "AILERON_CA": path})
        daemon = find_daemon(session, Connections(Clock()))
        return str(self.failureResultOf(Deferred.fromCoroutine(daemon.status()), DaemonUnreachable).value)

    def test_never_in_the_clear(self) -> None:
        """With an authority no plain address is asked, and with one that is none nothing is."""
        for url in ("http://127.0.0.1:9", "httpsx://h", "ftp://h"):
            self.assertIn("no https", self.reason(url, "/ca.pem"))
        broken = Path(self.mktemp())
        for text in ("", "canary", "-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----\n"):
            broken.write_text(text)
            told = self.reason("https://h", str(broken))
            self.assertIn("is no good", told)
            self.assertNotIn("canary", told)
        self.assertIn("cannot be read", self.reason("https://h", "/nowhere"))

    def test_over_a_network(self) -> None:
        """Nor is a plain address beyond this machine, unless that host is named; the token is in no reason."""
        reactor = MemoryReactorClock()
        environment = {"AILERON_URL": "http://192.0.2.1:9", "AILERON_TOKEN": "ail_a_secret"}
        for host, asked in (("", 0), ("192.0.2.2", 0), ("192.0.2.1", 1)):
            session = SessionEnvironment.of({**environment, "AILERON_PLAIN_HOST": host})
            daemon = find_daemon(session, Connections(reactor))
            asking = Deferred.fromCoroutine(daemon.status())
            self.assertEqual(len(reactor.tcpClients), asked)
            if not asked:
                lost = self.failureResultOf(asking, DaemonUnreachable).value
                self.assertIn("192.0.2.1 by plain HTTP", str(lost))
                self.assertNotIn("ail_a_secret", str(lost))
                self.assertTrue(lost.misdirected)


_TESTS = Path(__file__).parents[1]
_PAGE = (_TESTS.parent / "doc" / "agents.md").read_text(encoding="utf-8")


class ElsewhereTests(SynchronousTestCase):
    """An agent elsewhere."""

    def test_front(self) -> None:
        """What nginx is to be told is what a test runs it with."""
        [shown] = re.findall(r"```nginx\n(.*?)```", _PAGE, re.DOTALL)
        self.assertEqual(dedent(shown), (_TESTS / "functional" / "nginx.conf").read_text(encoding="utf-8"))

    def test_variables(self) -> None:
        """The variables are those that are read."""
        [_, section] = _PAGE.split("## An agent elsewhere\n")
        rows = re.findall(r"^\| `(AILERON_\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)
        self.assertEqual(rows, [URL, CA, PLAIN_HOST])
