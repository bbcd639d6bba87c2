"""Checks, before an agent starts, that its sandbox lets nothing out but to Aileron.

What runs inside tries each way out, as the agent could; this is the side that it must not reach, and the judge of what
it found.
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
    """One check: sockets outside that nothing inside may reach, and the question that is asked inside.

    :ivar proxy_port: of the proxy, inside.
    """

    def __init__(self, proxy_port: int) -> None:
        self.proxy_port = proxy_port
        self._tcp = socket.create_server((_LOOPBACK, 0))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((_LOOPBACK, 0))
        for each in (self._tcp, self._udp):
            each.setblocking(False)
        self._answer = b""

    def close(self) -> None:
        """Close the sockets.  Twice is safe."""
        self._tcp.close()
        self._udp.close()

    def question(self) -> str:
        """Write what the script inside is told, as JSON."""
        return json.dumps(
            {
                "tcp": self._tcp.getsockname()[1],
                "udp": self._udp.getsockname()[1],
                "network": os.stat("/proc/self/ns/net").st_ino,
                "proxy": self.proxy_port,
            }
        )

    def judge(self, piece: bytes) -> list[str] | None:
        """Judge the answer that came from inside, by all its pieces.

        :return: what is open, or was not tried; empty: nothing.  L{None}: the answer goes on.
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
        return problems + self._look()

    def _look(self) -> list[str]:
        """Tell what arrived here all the same."""
        arrived = []
        for way, receive in (("TCP", self._tcp.accept), ("UDP", lambda: self._udp.recv(16))):
            try:
                receive()
            except BlockingIOError:
                continue
            arrived.append(f"{way}: a socket outside was reached")
        return arrived
