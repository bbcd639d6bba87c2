"""The tools in C: compiled where they are needed, told what to do by arguments, understood by the JSON they print."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from attrs import frozen

from ._certificate import CERTIFICATE, KEY, write_certificate
from ._processes import end, printed_port, serving, start

_SOURCES = Path(__file__).parent / "tools"
_NAMES = ("mock", "load", "yardstick")

Figures = Mapping[str, float]


@frozen
class Load:
    """What a client of ours does.

    :ivar wish: how the mock shall answer: the letter says what, numbers say how much; see C{mock.c}.
    :ivar warm_up: seconds before those that count.
    :ivar ramp: seconds in which the connections are opened.
    :ivar most: requests after which it ends; 0: it ends by time.
    :ivar renew: a new connection for each request.
    """

    wish: str
    connections: int
    seconds: float
    warm_up: float = 0.5
    ramp: float = 0.0
    most: int = 0
    renew: bool = False

    def arguments(self, port: int) -> list[str]:
        """Those of the tool."""
        values = {
            "-p": port,
            "-c": self.connections,
            "-x": self.wish,
            "-d": self.seconds,
            "-w": self.warm_up,
            "-r": self.ramp,
            "-m": self.most,
        }
        named = [text for name, value in values.items() for text in (name, str(value))]
        return [*named, "-n"] if self.renew else named


@frozen
class Upstream:
    """Where the contenders send what they get.

    :ivar mock_port: where the mock itself can be asked.
    :ivar certificate: who answers at C{port} is known by it; L{None}: plain HTTP.
    """

    port: int
    mock_port: int
    certificate: Path | None = None

    @property
    def url(self) -> str:
        """With the name that the certificate has."""
        return f"https://localhost:{self.port}" if self.certificate else f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What tells Go and OpenSSL to trust that certificate and no other."""
        return {"SSL_CERT_FILE": str(self.certificate)} if self.certificate else {}

    def open_connections(self) -> int:
        """How many there are to the mock, our own apart."""
        return self._stats()["open"] - 1

    def answers_under_way(self) -> int:
        """How many it has begun."""
        return self._stats()["answering"]

    def _stats(self) -> dict[str, int]:
        with urlopen(f"http://127.0.0.1:{self.mock_port}/stats", timeout=10) as answer:  # our own mock
            counted: dict[str, int] = json.load(answer)
        return counted


@frozen
class Tools:
    """The tools, compiled; made by L{compiled}."""

    directory: Path
    core: int

    @contextmanager
    def upstream(self) -> Iterator[Upstream]:
        """The mock, by plain HTTP."""
        with serving([str(self.directory / "mock")], self.core, printed_port) as mock:
            yield Upstream(mock.port, mock.port)

    @contextmanager
    def behind_tls(self, upstream: Upstream) -> Iterator[Upstream]:
        """The same mock, with a process before it that speaks TLS."""
        certificate, key = self.directory / CERTIFICATE, self.directory / KEY
        command = [sys.executable, "-m", "bench.gateway.terminator", str(certificate), str(key), str(upstream.port)]
        with serving(command, self.core, printed_port) as terminator:
            yield Upstream(terminator.port, upstream.mock_port, certificate)

    def load(self, port: int, load: Load) -> Figures:
        """What the client found."""
        with self.loading(port, load) as process:
            return figures(process.communicate()[0])

    @contextmanager
    def loading(self, port: int, load: Load) -> Iterator[subprocess.Popen[str]]:
        """A client that is at it."""
        process = start([str(self.directory / "load"), *load.arguments(port)], self.core)
        try:
            yield process
        finally:
            if process.poll() is None:
                end(process)


def figures(printed: str) -> Figures:
    """The numbers in what the client printed.

    :raises RuntimeError: it did not come to its end.
    """
    if not printed.endswith("}\n"):
        raise RuntimeError(f"the client ended early: {printed!r}")
    return {name: float(value) for name, value in json.loads(printed).items()}


def compiled(directory: Path, core: int) -> Tools:
    """The tools and a certificate, in a directory that is the caller's to remove.

    :raises SystemExit: there is no compiler.
    """
    if shutil.which("cc") is None:
        raise SystemExit("the gateway's benchmark needs a C compiler by the name of cc")
    for name in _NAMES:
        source = str(_SOURCES / f"{name}.c")
        subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-o", str(directory / name), source], check=True)
    write_certificate(directory)
    return Tools(directory, core)
