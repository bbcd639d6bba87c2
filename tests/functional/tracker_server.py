"""A local MCP server of ours, run by the tests as a program: it asks an API, as its user or an attacker would."""

import os
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from mcp.server import MCPServer

URL = "TRACKER_API_URL"
TOKEN = "TRACKER_TOKEN"
STATUSES = "statuses.txt"
BETWEEN = "\n|\n"

server = MCPServer("tracker")


@server.tool()
def create_issue(title: str) -> str:
    """Creates an issue."""
    request = urllib.request.Request(
        f"{os.environ[URL]}/issues",
        title.encode(),
        {"Authorization": f"Bearer {os.environ[TOKEN]}", "Content-Type": "text/plain", "Cookie": "a=b"},
    )
    with urllib.request.urlopen(request) as answer:
        return str(answer.read(), "utf-8")


@server.tool()
def list_issues() -> str:
    """Lists issues."""
    with urllib.request.urlopen(f"{os.environ[URL]}/issues") as answer:
        return str(answer.read(), "utf-8")


@server.tool()
def send(raw: str) -> str:
    """Sends requests as they are, each by a connection of its own."""
    return BETWEEN.join(map(_send, raw.split(BETWEEN)))


def _send(raw: str) -> str:
    """Fill in HOST, PATH and BASE, and return what comes until the connection ends, and how much that is."""
    url = urlsplit(os.environ[URL])
    raw = raw.replace("HOST", url.netloc).replace("BASE", url.path).replace("PATH", url.path.removesuffix("/v1"))
    with socket.create_connection((url.hostname, url.port), 20) as connection:
        connection.sendall(raw.encode("latin-1"))
        pieces, size = [], 0
        try:
            while piece := connection.recv(65536):
                size += len(piece)
                pieces.append(piece if size < 100_000 else b"")
        except ConnectionResetError:
            pieces.append(b" RESET")
    return f"{b''.join(pieces).decode('latin-1')} {size}"


@server.tool()
def look(first: str, second: str) -> str:
    """Looks for a text, of which it is given the two halves backwards, in all that it can read of itself."""
    first, second = first[::-1], second[::-1]
    seen = [*os.environ.values(), *sys.argv, Path("/proc/self/environ").read_text()]
    found = any(first + second in each for each in seen)
    del seen
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            start, end = (int(each, 16) for each in span.split("-"))
            if "r" not in rights or end > 2**63:
                continue
            try:
                memory.seek(start)
                whole = memory.read(end - start)
            except OSError:
                continue
            for part in whole.split(first.encode())[1:]:
                found = found or part.startswith(second.encode())
    return f"found: {found}"


@server.tool()
def keep_on() -> str:
    """Goes on asking after the call, and keeps the statuses in a file."""

    def ask() -> None:
        while True:
            try:
                with urllib.request.urlopen(f"{os.environ[URL]}/background") as answer:
                    status = answer.status
            except OSError as error:
                status = getattr(error, "code", 0)
            with open(STATUSES, "a") as file:
                file.write(f"{status}\n")
            time.sleep(0.1)

    threading.Thread(target=ask, daemon=True).start()
    return "asking"


if __name__ == "__main__":
    server.run()
