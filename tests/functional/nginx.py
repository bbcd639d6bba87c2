"""The real nginx before a daemon, told what the page about agents shows."""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.functional import install
from tests.functional.process import Command

SERVER = Path(__file__).with_name("nginx.conf").read_text(encoding="utf-8")
_CERTIFICATE, _KEY = "/etc/aileron/aileron.internal.pem", "/etc/aileron/aileron.internal.key"
_PORT, _DAEMON = "listen 8443 ", "http://127.0.0.1:8081"
# One process, that leaves nothing elsewhere.
_AROUND = """\
daemon off;
master_process off;
pid {directory}/pid;
error_log stderr;
events {{}}
http {{
access_log off;
client_body_temp_path {directory}/body;
proxy_temp_path {directory}/proxy;
fastcgi_temp_path {directory}/fastcgi;
uwsgi_temp_path {directory}/uwsgi;
scgi_temp_path {directory}/scgi;
{server}}}
"""


def program() -> str:
    """nginx: the system's, else where the tests' environment installs it.

    :raises AssertionError: when there is none, saying how to install it.
    """
    directory = install.place() / "opencode"
    path = install.front(directory)
    if not path.is_file():
        raise AssertionError(f"nginx is missing: run '{sys.executable} -m tests.functional.install {directory}'")
    return str(path)


def command(directory: Path, url: str, port: int, pem: bytes, environment: Mapping[str, str]) -> Command:
    """What runs it on a port of loopback.

    :param directory: its own.
    :param url: the daemon's.
    :param pem: a certificate and its key.
    """
    chain, configuration = directory / "chain.pem", directory / "nginx.conf"
    chain.write_bytes(pem)
    server = SERVER
    for shown, ours in (
        (_CERTIFICATE, str(chain)),
        (_KEY, str(chain)),
        (_PORT, f"listen 127.0.0.1:{port} "),
        (_DAEMON, url),
    ):
        assert shown in server, shown
        server = server.replace(shown, ours)
    configuration.write_text(_AROUND.format(directory=directory, server=server))
    arguments = (program(), "-p", str(directory), "-e", "stderr", "-c", str(configuration))
    return Command(arguments=arguments, environment=environment, directory=directory)
