"""Checks, before an agent starts, that its sandbox can reach nothing but Aileron.

A script inside the sandbox tries every way to reach something outside, as the agent could. This module provides the
targets that it must not reach, and evaluates its report.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

_WAYS = {
    "network": "network",
    "tcp": "TCP",
    "udp": "UDP",
    "dns": "DNS",
    "unix": "Unix sockets",
    "descriptors": "inherited descriptors",
    "proxy": "proxy",
}
_MOST_BYTES = 16 * 1024
_LOOPBACK = "127.0.0.1"


class BoundaryCheck:
    """A check that a sandbox reaches nothing outside, with sockets as targets that the script inside must not reach.

    :ivar proxy_port: the proxy's port inside.
    :ivar listening: the descriptor of a further socket that listens inside, or None if there is none.
    """

    def __init__(self, proxy_port: int, listening: int | None = None) -> None:
        self.proxy_port, self.listening = proxy_port, listening
        self._tcp = socket.create_server((_LOOPBACK, 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((_LOOPBACK, 0))
        for each in (self._tcp, self._udp):
            each.setblocking(False)
        self._answer = b""

    def close(self) -> None:
        """Close the sockets that the sandbox must not reach. Idempotent."""
        self._tcp.close()
        self._udp.close()

    def question(self) -> str:
        """Return, as JSON, the ports and the network that the script in the sandbox must try to reach."""
        further = {} if self.listening is None else {"listening": self.listening}
        return json.dumps(
            {
                **further,
                "tcp": self._tcp.getsockname()[1],
                "udp": self._udp.getsockname()[1],
                "network": os.stat("/proc/self/ns/net").st_ino,
                "proxy": self.proxy_port,
            }
        )

    def judge(self, piece: bytes) -> list[str] | None:
        """Add a piece to the report of the script in the sandbox, and evaluate the report once it is complete.

        :return: the ways to reach something outside that are open or were not tried, empty if there are none, or None
            if the report is incomplete.
        """
        self._answer += piece
        if piece and not self._answer.endswith(b"\n") and len(self._answer) < _MOST_BYTES:
            return None
        try:
            answer: Any = json.loads(self._answer)
        except ValueError:
            return ["the check did not end"]
        if not isinstance(answer, dict) or set(answer) != set(_WAYS):
            return ["the check did not end"]
        problems = [f"{_WAYS[way]}: {'; '.join(map(str, found))}" for way, found in answer.items() if found]
        return problems + self._find_arrived()

    def _find_arrived(self) -> list[str]:
        """Return a sentence for each of the launcher's sockets that something inside has reached."""
        arrived = []
        for way, receive in (("TCP", self._tcp.accept), ("UDP", lambda: self._udp.recv(16))):
            try:
                receive()
            except BlockingIOError:
                continue
            arrived.append(f"{way}: a socket outside was reached")
        return arrived
