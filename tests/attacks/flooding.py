"""A program of the attacker's that holds a site's connections, and says on each what it is given, again and again."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from tests.attacks.case import GIVE_UP, AttackTestCase, give_up
from tests.functional.commands import fork_daemons
from tests.functional.process import Command, Running

# Keeps so many connections open, each with the bytes of a file sent over and over; one that is closed is opened anew.
# A deaf one never reads an answer.  It rests for a moment between rounds: a round fills the buffers of all connections
# with more than a site answers meanwhile, and without rest it would only show who gets the processor.  Prints a line
# when as many were opened, one when the first was opened anew, and when it is stopped how often that was.
_FLOOD = """
import resource, selectors, signal, socket, sys, time
host, port, count, deaf, again = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "deaf", 0
payload = open(sys.argv[5], "rb").read()
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
watched = selectors.DefaultSelector()
def open_one():
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex((host, port))
    watched.register(connection, selectors.EVENT_READ * (not deaf) | selectors.EVENT_WRITE, [0])
def stop(*_):
    print(again, flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, stop)
for _ in range(count):
    open_one()
print("held", flush=True)
while True:
    time.sleep(0.01)
    for key, events in watched.select(1):
        connection, sent = key.fileobj, key.data
        try:
            if events & selectors.EVENT_READ and not connection.recv(1 << 20):
                raise ConnectionError
            if events & selectors.EVENT_WRITE:
                sent[0] += connection.send(payload[sent[0]:])
                if sent[0] == len(payload):
                    sent[0] = 0
                    if b"ONCE" in payload:
                        watched.modify(connection, selectors.EVENT_READ, sent)
        except BlockingIOError:
            pass
        except OSError:
            watched.unregister(connection)
            connection.close()
            again += 1
            open_one()
            if again == 1:
                print("anew", flush=True)
"""
# Connects and closes at once, a thousand times a second at most: more would only show who gets the processor.
_CLOSED = """
import signal, socket, struct, sys, time
address, again, abort = (sys.argv[1], int(sys.argv[2])), 0, struct.pack("ii", 1, 0)
def stop(*_):
    print(again, flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, stop)
print("held", flush=True)
while True:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abort)
    connection.setblocking(False)
    connection.connect_ex(address)
    connection.close()
    again += 1
    if again == 1:
        print("anew", flush=True)
    if not again % 50:
        time.sleep(0.05)
"""
_DESCRIPTORS = 1024
"""A process usually gets so many, and here no more whatever it asks for."""
_LIMIT = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({_DESCRIPTORS}, {_DESCRIPTORS}))
"""
_FEW_DESCRIPTORS = f"{_LIMIT}\nimport os, sys\nos.execv(sys.argv[1], sys.argv[1:])"


@attrs.frozen
class Said:
    """What is said on every connection of a flood.

    :ivar lines: more of the head.
    :ivar times: how often the request stands in the payload, one behind the other.
    :ivar once: whether the payload is sent once on each connection, and not over and over.
    :ivar cut: how many bytes of the end are left out.
    """

    method: str
    target: str
    token: str = ""
    body: Mapping[str, object] | None = None
    lines: tuple[str, ...] = ()
    times: int = 200
    once: bool = False
    cut: int = 0

    def payload(self, netloc: str) -> bytes:
        """The bytes."""
        body = b"" if self.body is None else json.dumps(self.body).encode()
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {netloc}", *self.lines]
        lines += [f"Authorization: Bearer {self.token}"] if self.token else []
        lines += ["X-Flood: ONCE"] if self.once else []
        if self.body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        request = "\r\n".join([*lines, "", ""]).encode() + body
        return request[: len(request) - self.cut] * self.times


class FloodTestCase(AttackTestCase):
    """A user who goes on working while programs of the attacker's flood a site; none has many descriptors."""

    def start(self, command: Command) -> Running:
        """Start a process."""
        return super().start(command.behind(sys.executable, "-I", "-c", _FEW_DESCRIPTORS))

    def confine(self) -> None:
        """Besides, a daemon has few descriptors."""
        fork_daemons(GIVE_UP + _LIMIT)
        give_up()

    async def closed_at_once(self, site: str) -> Running:
        """Start a program that connects and closes.

        :param site: as of L{flood}.
        """
        running = self.start(self.python(_CLOSED, "127.0.0.1", str(urlsplit(self.home.discovery()[site]).port)))
        await running.expect("held", 60)
        return running

    async def flood(self, site: str, said: Said, count: int, *, deaf: bool = False) -> Running:
        """Start one, and wait until every connection was opened.

        :param site: ``url`` or ``operator_url``.
        :param deaf: whether it never reads an answer.
        """
        address = urlsplit(str(self.home.discovery()[site]))
        payload = said.payload(address.netloc)
        path = Path(self.home.project) / hashlib.sha256(payload).hexdigest()
        path.write_bytes(payload)
        manner = "deaf" if deaf else "reads"
        program = self.python(_FLOOD, "127.0.0.1", str(address.port), str(count), manner, str(path))
        running = self.start(program)
        await running.expect("held", 60)
        return running
