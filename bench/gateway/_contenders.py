"""Those that are compared: each a process that relays what comes to a port of loopback to the upstream."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from string import Template

from attrs import frozen

from ._certificate import CERTIFICATE
from ._daemon import AILERON, Home
from ._processes import Server, answers, free_port, printed_port, serving, until
from ._tools import Upstream

DIRECT = "direct"
"""The one that is no proxy."""

_PEERS = Path(__file__).parent / "peers"
_NGINX_TLS = Template("""proxy_ssl_trusted_certificate $certificate;
            proxy_ssl_verify on;
            proxy_ssl_name localhost;
            proxy_ssl_server_name on;
            proxy_ssl_session_reuse on;""")


@frozen
class Pinned:
    """What each contender is given besides its upstream.

    :ivar directory: for what has to be built or written.
    :ivar descriptors: how many it may have.
    :ivar aileron: the command whose daemon is ours.
    """

    directory: Path
    core: int
    descriptors: int
    aileron: Path = AILERON


Started = Callable[[Pinned, Upstream], AbstractContextManager[Server]]


@frozen
class Contender:
    """One of those in the table.

    :ivar about: which version it is.
    :ivar missing: what to do to have it; empty where it is there.
    """

    name: str
    started: Started
    about: str = ""
    missing: str = ""


def ours(pinned: Pinned, upstream: Upstream, rule: str = "off") -> AbstractContextManager[Server]:
    """The daemon with an unlocked vault; the home is made once for each rule for provider tools."""
    home = Home(pinned.directory / f"home-{rule}", pinned.aileron)
    if not home.directory.exists():
        home.furnish(pinned.directory / CERTIFICATE, rule)
    return home.serving(upstream, pinned.core)


def yardstick(pinned: Pinned, upstream: Upstream) -> AbstractContextManager[Server]:
    """A relay in C, which copies and does a fixed amount of work besides; not in the table."""
    return serving([str(pinned.directory / "yardstick"), str(upstream.port)], pinned.core, printed_port)


def go(pinned: Pinned, upstream: Upstream) -> AbstractContextManager[Server]:
    """Its standard library's C{ReverseProxy}, which flushes each piece."""
    built = pinned.directory / "go-proxy"
    if not built.exists():
        environment = {**os.environ, "GO111MODULE": "off", "GOPROXY": "off", "GOTOOLCHAIN": "local"}
        subprocess.run(["go", "build", "-o", str(built), str(_PEERS / "main.go")], env=environment, check=True)
    return serving([str(built), upstream.url], pinned.core, printed_port, upstream.environment)


def nginx(pinned: Pinned, upstream: Upstream) -> AbstractContextManager[Server]:
    """One process of it, without its buffers and with connections to the upstream kept."""
    port = free_port()

    def ready(process: subprocess.Popen[str]) -> int:
        until(lambda: answers(port), process)
        return port

    configuration = pinned.directory / "nginx.conf"
    configuration.write_text(nginx_configuration(pinned, upstream, port))
    command = [_nginx(), "-c", str(configuration), "-e", str(pinned.directory / "nginx.log")]
    return serving(command, pinned.core, ready)


def nginx_configuration(pinned: Pinned, upstream: Upstream, port: int) -> str:
    """Its file."""
    tls = _NGINX_TLS.substitute(certificate=upstream.certificate) if upstream.certificate else ""
    return Template((_PEERS / "nginx.conf").read_text()).substitute(
        directory=pinned.directory,
        descriptors=pinned.descriptors,
        upstream=upstream.port,
        port=port,
        scheme="https" if upstream.certificate else "http",
        tls=tls,
    )


def aiohttp(pinned: Pinned, upstream: Upstream) -> AbstractContextManager[Server]:
    """Its server before its client."""
    command = [sys.executable, "-m", "bench.gateway.aiohttp_proxy", upstream.url]
    return serving(command, pinned.core, printed_port, upstream.environment)


def copier(pinned: Pinned, upstream: Upstream) -> AbstractContextManager[Server]:
    """No proxy: the least that Python takes to copy the same bytes."""
    command = [sys.executable, "-m", "bench.gateway.copier", upstream.url]
    return serving(command, pinned.core, printed_port, upstream.environment)


@contextmanager
def direct(pinned: Pinned, upstream: Upstream) -> Iterator[Server]:
    """The mock itself: what the tools can do, and what a proxy adds to."""
    yield Server(os.getpid(), upstream.port)


def contenders() -> list[Contender]:
    """All of them, in the order of the table."""
    return [
        Contender(DIRECT, direct),
        Contender("ours", ours, about=f"Twisted {version('Twisted')}"),
        Contender("noting", partial(ours, rule="note"), about="ours, which reads each request for provider tools"),
        Contender("copier", copier, about="the least that Python takes: it copies, and reads nothing"),
        _peer("go", go, lambda: _said("go", "version"), "install Go"),
        _peer("nginx", nginx, lambda: _said(_nginx(), "-v"), "install nginx"),
        _peer("aiohttp", aiohttp, lambda: f"aiohttp {version('aiohttp')}", "pip install '.[bench]'"),
    ]


def _peer(name: str, started: Started, about: Callable[[], str], remedy: str) -> Contender:
    try:
        return Contender(name, started, about=about())
    except (OSError, PackageNotFoundError):
        return Contender(name, started, missing=remedy)


def _said(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.strip()


def _nginx() -> str:
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"  # where users other than root do not look
    return shutil.which("nginx", path=path) or "nginx"
