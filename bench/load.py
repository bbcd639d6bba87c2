"""A closed-loop HTTP client in a process of its own: C{python -m bench.load PORT CONNECTIONS SECONDS TOKEN PATH BODY}.

Each connection sends the next request when the last is answered; one JSON line of figures at the end.  What counts are
answers of the seconds in which all connections stood and were busy; a little before them does not.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from attrs import define, field

_WARM_UP_SECONDS = 0.1


@define
class Load:
    """What the connections share.

    :ivar begin: of the clock; answers before it do not count.
    :ivar stop: nothing is asked after it.
    :ivar took: seconds of each answer that counts.
    :ivar asked: how many requests were answered in all.
    :ivar wrong: how many of these with something else than 200.
    """

    begin: float
    stop: float
    took: list[float] = field(factory=list)
    asked: int = 0
    wrong: int = 0

    async def client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
        """One connection's requests."""
        while (began := time.perf_counter()) < self.stop:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            self.asked += 1
            self.wrong += not head.startswith(b"HTTP/1.1 200")
            if self.begin <= (ended := time.perf_counter()) <= self.stop:
                self.took.append(ended - began)
        writer.close()


async def main(port: int, connections: int, seconds: float, token: str, path: str, body: str) -> None:
    """Load one port."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ends = [await asyncio.open_connection("127.0.0.1", port) for _ in range(connections)]
    begin = time.perf_counter() + _WARM_UP_SECONDS
    load = Load(begin, begin + seconds)
    await asyncio.gather(*(load.client(reader, writer, (head + body).encode()) for reader, writer in ends))
    took = sorted(load.took)
    figures = {
        "per_second": len(took) / seconds,
        "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[int(len(took) * 0.99)] * 1e3,
        "wrong": load.wrong,
        "requests": load.asked,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    port_, connections_, seconds_, *rest = sys.argv[1:]
    asyncio.run(main(int(port_), int(connections_), float(seconds_), *rest))
