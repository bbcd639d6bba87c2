"""Requests that no client library would send, byte for byte, from a process of the attacker's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from tests.attacks.case import AttackTestCase

# Sends each request of a file on a connection of its own; the status of each (0: none came), and the whole answer.
_SEND = """
import json, socket, sys
def answered(port, request):
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as connection:
            connection.sendall(request.encode("latin-1"))
            came = connection.makefile("rb").read()
    except ConnectionError:
        return [0, ""]
    words = came.split(b" ", 2)
    return [int(words[1]) if len(words) > 1 else 0, came.decode("utf-8", "replace")]
with open(sys.argv[1]) as asked:
    print(json.dumps([answered(*each) for each in json.load(asked)]))
"""


@attrs.frozen
class Asked:
    """One request.

    :ivar lines: of its head, below the request line; Host and Connection are added.
    :ivar host: as it is named; empty: the true one.
    """

    site: str
    target: str
    lines: tuple[str, ...] = ()
    method: str = "GET"
    body: str = ""
    host: str = ""

    def text(self) -> str:
        """The bytes, a character each."""
        host = f"Host: {self.host or urlsplit(self.site).netloc}"
        length = (f"Content-Length: {len(self.body)}",) if self.body else ()
        lines = (
            f"{self.method} {self.target} HTTP/1.1",
            host,
            "Connection: close",
            *length,
            *self.lines,
            "",
            self.body,
        )
        return "\r\n".join(lines)


@attrs.frozen
class Answered:
    """What came back; C{status} is 0 where nothing did."""

    status: int
    text: str


class RawTestCase(AttackTestCase):
    """An attacker with a socket."""

    async def send(self, asked: Sequence[Asked]) -> list[Answered]:
        """The answer to each."""
        path = Path(self.home.project) / "asked.json"
        path.write_text(json.dumps([[urlsplit(each.site).port, each.text()] for each in asked]))
        found = [Answered(*each) for each in await self.attack(_SEND, str(path), seconds=120)]
        self.assertEqual(len(found), len(asked))
        return found

    async def statuses(self, asked: Sequence[Asked]) -> list[int]:
        """How each was answered."""
        return [answered.status for answered in await self.send(asked)]

    def sites(self) -> tuple[str, str]:
        """The agent's, and the operator's."""
        found = self.home.discovery()
        return str(found["url"]), str(found["operator_url"])
