"""Asking the daemon before any reactor runs: an answer, none, and connections that are cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import RemoteDisconnected
from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.context import probe
from aileron.cli.errors import CommandError
from aileron.client import blocking

URL = "http://localhost:7001"


class FakeConnection:
    """A connection that fails as often as a test says, and then answers.

    :cvar failures: what comes in the place of the next answers.
    :cvar answer: status and body.
    """

    failures: ClassVar[list[Exception]] = []
    answer: ClassVar[tuple[int, bytes]] = (200, b"{}")
    asked: ClassVar[list[tuple[object, ...]]] = []
    open = 0

    def __init__(self, *address: object, timeout: float) -> None:
        self._address = address
        type(self).open += 1

    def request(self, method: str, path: str, _body: bytes | None, headers: Mapping[str, str]) -> None:
        self.asked.append((*self._address, method, path, headers))

    def getresponse(self) -> FakeConnection:
        if self.failures:
            raise self.failures.pop(0)
        return self

    @property
    def status(self) -> int:
        return self.answer[0]

    def read(self, most: int) -> bytes:
        return self.answer[1][:most]

    def close(self) -> None:
        type(self).open -= 1


class ProbeTests(SynchronousTestCase):
    """A daemon that is asked how it does."""

    def setUp(self) -> None:
        FakeConnection.failures, FakeConnection.asked = [], []
        FakeConnection.answer = (200, b'{"state": "unlocked"}')
        self.patch(blocking, "HTTPConnection", FakeConnection)

    def asked(self, *failures: Exception) -> Any:
        """What is heard after these failures; no connection is left open."""
        FakeConnection.failures = list(failures)
        try:
            return probe(URL, "/v1/vault/status", "ail_l_x")
        finally:
            self.assertEqual(FakeConnection.open, 0)

    def test_answered(self) -> None:
        """Its object is handed over; the token is sent as bearer, and none where there is none; no name is resolved."""
        self.assertEqual(self.asked(), {"state": "unlocked"})
        probe(URL, "/v1/health")
        bearer, host = {"Authorization": "Bearer ail_l_x"}, {"Host": "localhost:7001"}
        self.assertEqual(
            FakeConnection.asked,
            [
                ("127.0.0.1", 7001, "GET", "/v1/vault/status", host | bearer),
                ("127.0.0.1", 7001, "GET", "/v1/health", host),
            ],
        )

    def test_cut_off(self) -> None:
        """A connection that is cut off, as a flooded site does, is made anew."""
        cut = (ConnectionResetError(), RemoteDisconnected("gone"), BrokenPipeError(), ConnectionResetError())
        self.assertEqual(self.asked(*cut), {"state": "unlocked"})

    def test_nobody(self) -> None:
        """It is not asked for ever, and only once where nobody listens or is silent for too long."""
        cut = [ConnectionResetError() for _ in range(50)]
        for failures, tries in ((cut, 5), ([ConnectionRefusedError()], 1), ([TimeoutError()], 1)):
            FakeConnection.asked.clear()
            error = self.assertRaises(CommandError, self.asked, *failures)
            self.assertIn(f"No daemon responds at {URL}.", error.message)
            self.assertEqual(len(FakeConnection.asked), tries)

    def test_stranger(self) -> None:
        """Another answer than an object with 200 is not this daemon's."""
        for answer in ((401, json.dumps({"error": {}}).encode()), (200, b"[]")):
            FakeConnection.answer = answer
            error = self.assertRaises(CommandError, self.asked)
            self.assertIn("is not this home's daemon", error.message)
        FakeConnection.answer = (200, b"<html>")
        self.assertIn("No daemon responds", self.assertRaises(CommandError, self.asked).message)
