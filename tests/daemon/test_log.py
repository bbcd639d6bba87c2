"""The daemon's log: each event is one line of JSON, whatever the event holds, and no line has a secret."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.logger import Logger, LogLevel, LogPublisher
from twisted.python import log as old_log
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.api.channels.request_log import NAMESPACE
from aileron.daemon._log import MOST_CHARACTERS, DaemonLog, describe_event
from aileron.model.errors import StoreUnavailable

_DAEMON = "0123456789abcdef"
_RUN = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
_MEMBERS = {"time", "level", "system", "message", "daemon"}
_TOKEN = "ail_a_q7Xv0Rk3TzYd81LmWc5PbHs2NfGj6UeA9oIyQr4Kx-M"
_HOSTILE = 'x\n{"level": "info"}\r\x00\x1b[2J\u2028\u202e\ud800\x85'


class Unspeakable:
    """An object that cannot be written."""

    def __repr__(self) -> str:
        """Fail."""
        raise ValueError(_TOKEN)


class LogCase(SynchronousTestCase):
    """A log in JSON, and a logger that writes to it."""

    def setUp(self) -> None:
        self.file = StringIO()
        self.log = DaemonLog(self.file)
        self.logger = Logger("aileron.test", observer=self.log)

    def lines(self) -> list[dict[str, Any]]:
        """The objects of all lines, each of which ends with a line feed."""
        *lines, rest = self.file.getvalue().split("\n")
        self.assertEqual(rest, "")
        self.assertTrue(all(line.isascii() and line.isprintable() for line in lines))
        return [json.loads(line) for line in lines]

    def line(self) -> dict[str, Any]:
        """The object of the only line."""
        (found,) = self.lines()
        return found


class JsonTests(LogCase):
    """One object a line."""

    def setUp(self) -> None:
        super().setUp()
        self.log.begin("json", _DAEMON)

    def test_members(self) -> None:
        """A line has the time in UTC, the level, the system, the message and the daemon, and the ids of the event."""
        self.logger.warn("run {run} cannot be started yet", run=_RUN, other=1)
        found = self.line()
        self.assertRegex(found.pop("time"), r"^20[0-9-]{8}T[0-9:]{8}\.[0-9]{6}Z$")
        said = f"run {_RUN} cannot be started yet"
        wanted = {"level": "warn", "system": "aileron.test", "message": said, "daemon": _DAEMON, "run": _RUN}
        self.assertEqual(found, wanted)

    def test_failure(self) -> None:
        """A failure has the type, the places in the code, and a reason only if the text was made for people."""
        for error, reason in (
            (ValueError(f"bad value {_TOKEN}"), None),
            (StoreUnavailable("The database does not respond."), "The database does not respond."),
            (OSError(28, "No space left on device"), "No space left on device"),
        ):
            try:
                raise error
            except Exception:  # noqa: BLE001 - each of them
                self.logger.failure("writing failed")
            found = self.lines()[-1]
            self.assertEqual((found["level"], found["message"]), ("critical", "writing failed"))
            self.assertEqual(found["error"].rpartition(".")[2], type(error).__name__)
            self.assertIn("test_failure", found["traceback"][-1])
            self.assertEqual(found.get("reason"), reason)
        self.assertNotIn(_TOKEN, self.file.getvalue())

    def test_old_failure(self) -> None:
        """An error that was logged in the old way has no text of its exception either."""
        publisher = old_log.LogPublisher(publishPublisher=LogPublisher(self.log))
        publisher.msg(isError=True, failure=Failure(ValueError(_TOKEN)), why="it failed")
        found = self.line()
        self.assertEqual((found["message"], found["error"]), ("it failed", "builtins.ValueError"))

    def test_request(self) -> None:
        """The line of a request has its method, route, status and duration."""
        Logger(NAMESPACE, observer=self.log).info(
            "{method} {route}", method="GET", route="health", status=200, seconds=0.5, request=_RUN, session=None
        )
        wanted = {"method": "GET", "route": "health", "status": 200, "seconds": 0.5, "request": _RUN}
        found = self.line()
        self.assertEqual({name: found[name] for name in found.keys() - _MEMBERS}, wanted)

    def test_hostile(self) -> None:
        """Line ends, controls and invisible characters become visible, in every text."""
        self.logger.info("{what}", what=_HOSTILE, run=_HOSTILE, client_request=_HOSTILE)
        found = self.line()
        for name in ("message", "run", "client_request"):
            self.assertTrue(found[name].isprintable(), name)
            self.assertIn("↵", found[name])

    def test_long(self) -> None:
        """A text is cut."""
        self.logger.info("{what}", what="word " * MOST_CHARACTERS)
        self.assertEqual(len(self.line()["message"]), MOST_CHARACTERS + 1)


class SecretTests(LogCase):
    """Secrets that got into an event."""

    def test_every_field(self) -> None:
        """A secret is replaced in every member that may hold foreign text; an id of a run stays."""
        self.log.begin("json", _DAEMON)
        for secret in (_TOKEN, "ghp_abcdefghij0123456789", "Bearer abcdefgh12345", "https://me:hunter2@example.org/"):
            logger = Logger(f"a {secret}", observer=self.log)
            logger.info("{why} by run {run}", why=secret, run=secret, session=secret, request=secret)
            logger.info("password={why}", why="correct-horse", run=_RUN)
            logger.info("{why}", why=Unspeakable(), also=secret)
            try:
                raise StoreUnavailable(f"The URL is {secret}")
            except StoreUnavailable:
                logger.failure("of run {run}", run=_RUN)
            self.assertNotIn(secret, self.file.getvalue())
        self.assertNotIn("correct-horse", self.file.getvalue())
        self.assertNotIn("hunter2", self.file.getvalue())
        self.assertIn(f"of run {_RUN}", self.file.getvalue())

    def test_text(self) -> None:
        """In text, too, a secret is replaced, and an exception's own text is left out if it is not made for people."""
        self.log.begin()
        secret = "ghp_abcdefghij0123456789"
        self.logger.info("{why}\x1b[2J", why=secret)
        for error in (StoreUnavailable(f"The URL is {secret}"), ValueError("the-value-of-a-canary")):
            try:
                raise error
            except (StoreUnavailable, ValueError):
                self.logger.failure("of run {run}", run=_RUN)
        text = self.file.getvalue()
        for hidden in (secret, "canary", "\x1b"):
            self.assertNotIn(hidden, text)
        for shown in (
            f"of run {_RUN}\n\tTraceback",
            "StoreUnavailable: The URL is [redacted]",
            "builtins.ValueError\n",
        ):
            self.assertIn(shown, text)
        self.assertTrue(all(line.startswith(("\t", "-", "20")) for line in text.splitlines()), text)

    @given(st.text(max_size=40), st.text(max_size=40))
    @example("token=", "")
    def test_anywhere(self, before: str, after: str) -> None:
        """One of our tokens is replaced wherever it stands."""
        event = {"log_format": "{a}{b}{c}", "a": before, "b": _TOKEN, "c": after, "log_level": LogLevel.info}
        self.assertNotIn(_TOKEN[6:], json.dumps(describe_event(event, _DAEMON), ensure_ascii=False))


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
_FIELDS = st.sampled_from(
    (
        *("log_format", "log_namespace", "log_level", "log_time", "log_failure", "run", "session", "request", "status"),
        *("method", "route", "seconds", "client_request", "client_trace", "message", "x"),
    )
)


class WildTests(SynchronousTestCase):
    """Events with any values."""

    @given(st.dictionaries(_FIELDS, _VALUES))
    @example({"log_format": "{x.y[0]!r}", "status": float("inf"), "seconds": 10**400, "log_time": float("nan")})
    def test_any(self, event: Mapping[str, Any]) -> None:
        """Whatever an event holds, its line is one ASCII object with the same members."""
        file = StringIO()
        log = DaemonLog(file)
        log.begin("json", _DAEMON)
        log(dict(event))
        line = file.getvalue()
        self.assertEqual((line.count("\n"), line[-1]), (1, "\n"))
        self.assertTrue(line[:-1].isascii() and line[:-1].isprintable())
        found = json.loads(line)
        self.assertGreaterEqual(found.keys(), _MEMBERS)
        self.assertTrue(all(isinstance(found[name], str) for name in _MEMBERS))
        json.dumps(found, ensure_ascii=False).encode("utf-8")  # without lone surrogates


class TextTests(LogCase):
    """The log for people."""

    def test_text(self) -> None:
        """It is the classic text, without requests, and also what was logged before the format was known."""
        self.logger.info("first")
        self.assertEqual(self.file.getvalue(), "")
        self.log.begin()
        self.log.begin("json")
        self.logger.info("second")
        Logger(NAMESPACE, observer=self.log).info("GET health")
        lines = self.file.getvalue().splitlines()
        self.assertEqual([line.partition("] ")[2] for line in lines], ["first", "second"])

    def test_held(self) -> None:
        """Events that come before the format is known are written in it, and only so many are held."""
        for number in range(1005):
            self.logger.info("number {number}", number=number)
        self.log.begin("json", _DAEMON)
        self.assertEqual([line["message"] for line in self.lines()][::999], ["number 0", "number 999"])
