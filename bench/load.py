"""A closed-loop HTTP client in a process of its own: C{python -m bench.load PORT CONNECTIONS SECONDS TOKEN PATH BODY}.

Each connection sends the next request when the last is answered; one JSON line of figures at the end.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time


async def client(port: int, request: bytes, stop: float, took: list[float]) -> int:
    """How many answers were not 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    wrong = 0
    while (began := time.perf_counter()) < stop:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        wrong += not head.startswith(b"HTTP/1.1 200")
        took.append(time.perf_counter() - began)
    writer.close()
    return wrong


async def main(port: int, connections: int, seconds: float, token: str, path: str, body: str) -> None:
    """Load one port."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    took: list[float] = []
    began = time.perf_counter()
    stop = began + seconds
    wrong = sum(await asyncio.gather(*(client(port, (head + body).encode(), stop, took) for _ in range(connections))))
    took.sort()
    figures = {
        "per_second": len(took) / (time.perf_counter() - began),
        "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[int(len(took) * 0.99)] * 1e3,
        "wrong": wrong,
        "requests": len(took),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    port_, connections_, seconds_, *rest = sys.argv[1:]
    asyncio.run(main(int(port_), int(connections_), float(seconds_), *rest))
