"""A git host: a connector to it, the pushes of a real git, and a server that keeps them from being carried out."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.web.server import Request

from aileron.base.json import JSON, digest_of_bytes
from aileron.connectors import HttpTransport
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.git import GitHost, GitPush, GitSpec, read_push
from tests.connectors.repository import PERSON, GitServer, packets
from tests.connectors.service import NOW

FILE = """
[connector]
name = "local://me/git-host"
version = "1.0.0"
kind = "git"
base_url = {{ default = "{origin}", bindable = false }}
hosts = ["{host}"]
private_network = {private}

[credential]
kind = "basic"

[own_tools]
service = "site"
"""
RESULT = ("Content-Type: application/x-git-receive-pack-request", "Accept: application/x-git-receive-pack-result")
REPOSITORY = "site.git"


def spec(port: int = 0) -> GitSpec:
    """The spec of a host on this machine, or of one elsewhere."""
    host = f"127.0.0.1:{port}" if port else "git.example:443"
    origin = f"http://{host}" if port else "https://git.example"
    text = FILE.format(origin=origin, host=host, private="true" if port else "false")
    reading = read_file(text.encode(), "git-host.toml")
    assert isinstance(reading.spec, GitSpec), reading.problems
    return reading.spec


@define(slots=False, eq=False)
class HoldingServer(GitServer):
    """A git server that refuses pushes and keeps their bodies, while it holds."""

    holds: bool = True
    bodies: list[bytes] = field(factory=list)
    versions: list[str] = field(factory=list)

    def _answer(self, request: Request, is_update: bool) -> None:
        self.versions.append(request.getHeader("git-protocol") or "")
        if self.holds and request.path.endswith(b"/git-receive-pack"):
            body = request.content.read() if request.content else b""
            self.bodies.append(body)
            request.setHeader(b"content-type", b"application/x-git-receive-pack-result")
            request.write(packets(b"unpack refused\n", None))
            request.finish()
            return
        super()._answer(request, is_update)


def pushed(work: Path, port: int, *arguments: str, repository: str = REPOSITORY) -> Deferred[str]:
    """Push with a real git, and return what it prints, in a thread."""
    command = ("git", "-C", str(work), "push", f"http://127.0.0.1:{port}/{repository}", *arguments)

    def run() -> str:
        ended = subprocess.run(command, env=PERSON, capture_output=True, check=False)
        return (ended.stdout + ended.stderr).decode()

    return deferToThread(run)


def inputs_of(body: bytes, host: str, repository: str = REPOSITORY, **more: JSON) -> dict[str, JSON]:
    """The inputs of a push with this body."""
    push: GitPush = read_push(body)
    return {
        "host": host,
        "repository": repository,
        "changes": push.summarize(),
        **push.to_json(),
        "headers": [*RESULT],
        "content": digest_of_bytes(body),
        "size": len(body),
        **more,
    }


@define
class Contents:
    """Stored contents, in memory."""

    kept: dict[str, bytes] = field(factory=dict)

    def keep(self, body: bytes) -> str:
        """Keep one, and return its digest."""
        digest = digest_of_bytes(body)
        self.kept[digest] = body
        return digest

    def read(self, digest: str) -> bytes | None:
        """Return one."""
        return self.kept.get(digest)


def host_connector(transport: HttpTransport, reactor: Any, contents: Contents, port: int = 0) -> GitHost:
    """The connector of a host, with a network of the test's."""
    return GitHost(spec(port), transport, reactor, lambda: NOW, contents.read)


Inputs = Mapping[str, JSON]
