"""A script for an agent's shell in a sandbox: fetches from an allowed host, and tries every other way out.

``ways_out.py DIRECTORY``: it works in that directory, where ``ways_out.json`` says what to try. It prints `MARK` and
what came of everything, as a JSON object. It needs nothing but the standard library.
"""

import errno
import json
import os
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

NAME, GIVEN, MARK = "ways_out.py", "ways_out.json", "WAYS OUT"
DONE = "reached"
_NOBODY, _DNS_PORT = "192.0.2.1", 53
_SECONDS, _PROXY_SECONDS = 2.0, 20.0
_QUERY = bytes.fromhex("a1e1010000010000000000000761696c65726f6e07696e76616c69640000010001")


def main(directory: Path) -> None:
    """Print what came of everything."""
    given = json.loads((directory / GIVEN).read_text())
    os.environ.update(given["environment"])
    fetched = {name: _fetch(command, directory) for name, command in _commands(given["url"]).items()}
    print(MARK, json.dumps({"fetched": fetched, **attempts(given)}), flush=True)


def _commands(url: str) -> Mapping[str, str]:
    """The shell commands that fetch, each of which prints what it has fetched; none where there is no address."""
    if not url:
        return {}
    python = sys.executable
    pip = (
        f"{python} -m pip install -q --no-input --disable-pip-version-check --target packages --index-url {url}/simple"
    )
    return {
        "git": f"git clone -q {url}/demo.git cloned && cat cloned/said.txt",
        "pip": f"{pip} demo && PYTHONPATH=packages {python} -c 'import demo; print(demo.SAID)'",
        "npm": f"npm install --silent --no-fund --no-audit --registry {url}/npm/ demo && node -p 'require(\"demo\")'",
    }


def _fetch(command: str, directory: Path) -> str:
    ran = subprocess.run(["sh", "-c", command], cwd=directory, capture_output=True, text=True, check=False)
    return ran.stdout.strip() if ran.returncode == 0 else f"{ran.returncode}: {ran.stdout[-500:]}{ran.stderr[-1000:]}"


def attempts(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What every other way came to: `DONE`, or why it is closed.

    :param given: where sockets outside can be found: C{tcp} and C{udp}, two ports, and C{unix}, a path.
    """
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    return {
        "host": _try(_open, "https://other.example/"),
        "tcp": _try(_ask, socket.AF_INET, stream, ("127.0.0.1", given["tcp"])),
        "tcp outside": _try(_ask, socket.AF_INET, stream, (_NOBODY, 443)),
        "udp": _try(_ask, socket.AF_INET, datagram, ("127.0.0.1", given["udp"])),
        "udp outside": _try(_ask, socket.AF_INET, datagram, (_NOBODY, 443)),
        "dns": _try(socket.getaddrinfo, "example.org", 443),
        "name server": _try(_ask, socket.AF_INET, datagram, (_name_server(), _DNS_PORT)),
        "unix": _try(_ask, socket.AF_UNIX, stream, given["unix"]),
        "abstract": _try(_ask, socket.AF_UNIX, stream, b"\0aileron"),
        "descriptors": list(_try_descriptors(given)),
    }


def _try(attempt: Callable[..., object], *arguments: object) -> str:
    try:
        attempt(*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return DONE


def _open(url: str) -> None:
    urllib.request.urlopen(url, timeout=_PROXY_SECONDS).close()


def _ask(family: int, kind: int, address: Any) -> None:
    """Send a question; a stream has reached somebody as soon as it is connected, a datagram when there is an answer."""
    with socket.socket(family, kind) as each:
        each.settimeout(_SECONDS)
        each.connect(address)
        each.send(_QUERY)
        if kind == socket.SOCK_DGRAM:
            each.recv(512)


def _name_server() -> str:
    """The first name server with an IPv4 address that the system names, or nobody's address."""
    try:
        lines = Path("/etc/resolv.conf").read_text().splitlines()
    except OSError:
        return _NOBODY
    words = [line.split() for line in lines]
    return next((each[1] for each in words if each[:1] == ["nameserver"] and ":" not in each[1]), _NOBODY)


def _try_descriptors(given: Mapping[str, Any]) -> Iterator[str]:
    """Inherited descriptors by which something outside can be called or opened."""
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            continue  # it was that of the listing
        if stat.S_ISSOCK(mode) and any(_calls(number, address) for address in _addresses(given)):
            yield f"{number} calls others"
        if stat.S_ISDIR(mode):
            yield f"{number} is a directory"


def _addresses(given: Mapping[str, Any]) -> tuple[Any, ...]:
    return ("127.0.0.1", given["tcp"]), ("127.0.0.1", given["udp"]), given["unix"]


def _calls(number: int, address: Any) -> bool:
    """Whether a copy of a socket can be connected to an address."""
    with socket.socket(fileno=os.dup(number)) as each:
        try:
            each.connect(address)
        except (OSError, TypeError):  # it is connected already, or of another family
            return False
        return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
