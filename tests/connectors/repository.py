"""A local git repository, a bare one that is its remote, and a server that speaks for the latter, well or badly."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from twisted.internet.interfaces import IReactorTime
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from aileron.connectors import HttpTransport
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.git import GitConnector, GitSpec
from tests.connectors.service import NOW

PERSON = {
    **{
        f"GIT_{who}_{what}": text
        for who in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", "Ann"), ("EMAIL", "a@b"))
    },
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": "/nonexistent",
    "PATH": os.environ.get("PATH", ""),
}
FILE = """
[connector]
name = "local://me/site"
version = "1.0.0"
kind = "git"
base_url = {{ default = "http://127.0.0.1:{port}/site.git" }}
hosts = ["127.0.0.1:{port}"]
private_network = true

[credential]
kind = "basic"

[git]
repository = "{path}"
branches = ["main", "agent/*"]
tags = ["v*"]
"""


def git(directory: Path, *arguments: str, content: bytes | None = None) -> str:
    """What git prints."""
    command = ("git", "-C", str(directory), *arguments)
    return subprocess.run(command, env=PERSON, input=content, check=True, capture_output=True).stdout.decode().strip()


@define
class Pair:
    """A working directory with one commit, and its bare remote, which has that commit on C{main}."""

    work: Path
    bare: Path
    _clock: int = 1_700_000_000

    @classmethod
    def made(cls, directory: Path) -> Pair:
        """Make both below C{directory}."""
        pair = cls(directory / "work", directory / "remotes" / "site.git")
        for path, kind in ((pair.work, ()), (pair.bare, ("--bare",))):
            path.mkdir(parents=True)
            git(path, "init", "-q", "-b", "main", *kind)
        pair.commit("README", "One.\n", "Begin")
        git(pair.work, "push", "-q", str(pair.bare), "main")
        return pair

    def commit(self, name: str, text: str | bytes, message: str) -> str:
        """Commit one file; the id of the commit."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        git(self.work, "add", "-A")
        self._clock += 60
        when = {f"GIT_{who}_DATE": f"{self._clock} +0000" for who in ("AUTHOR", "COMMITTER")}
        command = ("git", "-C", str(self.work), "commit", "-q", "--allow-empty", "-m", message)
        subprocess.run(command, env=PERSON | when, check=True)
        return git(self.work, "rev-parse", "HEAD")

    def remote(self, ref: str = "refs/heads/main") -> str | None:
        """The commit of a ref of the remote."""
        listed = git(self.bare, "for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split(" ") for line in listed.splitlines()).get(ref)

    def spec(self, port: int = 8080) -> GitSpec:
        """A connector's file for both."""
        reading = read_file(FILE.format(port=port, path=self.work).encode(), "site.toml")
        assert isinstance(reading.spec, GitSpec), reading.problems
        return reading.spec


def packets(*lines: bytes | None) -> bytes:
    """Packets of git's protocol; L{None} is a flush."""
    return b"".join(b"0000" if line is None else b"%04x%s" % (len(line) + 4, line) for line in lines)


def listed(
    refs: Mapping[str, str], service: str = "git-receive-pack", capabilities: str = "report-status delete-refs"
) -> bytes:
    """A list of refs as a server begins with it."""
    lines = [f"{commit} {ref}".encode() for ref, commit in refs.items()] or [b"0" * 40 + b" capabilities^{}"]
    lines[0] += b"\0" + capabilities.encode()
    return packets(f"# service={service}\n".encode(), None, *(line + b"\n" for line in lines), None)


@define(slots=False, eq=False)
class GitServer(Resource):
    """Serves the remotes of a directory with C{git http-backend}; C{fault} says how it fails at an update.

    :ivar fault: C{dies_before}, C{dies_after}, C{redirects}, C{refuses}, or a body to answer with instead.
    :ivar asked: method, path and authorization of each request.
    """

    isLeaf = True

    root: Path
    fault: str | bytes = ""
    asked: list[tuple[str, str, str]] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        Resource.__init__(self)

    def render(self, request: Request) -> int:
        """Hand it to git, unless it is to fail."""
        method, uri = request.method.decode(), request.uri.decode()
        self.asked.append((method, uri, request.getHeader("authorization") or ""))
        is_update = method == "POST"
        if self.fault == "redirects":
            request.redirect(b"http://127.0.0.1:1/elsewhere")
            request.finish()
        elif self.fault == "refuses" and not request.getHeader("authorization"):
            request.setResponseCode(401)
            request.finish()
        elif is_update and self.fault == "dies_before":
            _abort(request)
        else:
            self._answer(request, is_update)
        return NOT_DONE_YET

    def _answer(self, request: Request, is_update: bool) -> None:
        path, _, query = request.uri.decode().partition("?")
        told = {
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REMOTE_USER": "ann",
            "REQUEST_METHOD": request.method.decode(),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": request.getHeader("content-type") or "",
            "HTTP_CONTENT_ENCODING": request.getHeader("content-encoding") or "",
            "HTTP_GIT_PROTOCOL": request.getHeader("git-protocol") or "",
        }
        content = request.content.read() if request.content else b""
        answer = subprocess.run(
            ("git", "http-backend"), env=PERSON | told, input=content, check=True, capture_output=True
        ).stdout
        head, _, body = answer.partition(b"\r\n\r\n")
        if is_update and self.fault == "dies_after":
            _abort(request)
            return
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b": ")
            if name == b"Status":
                request.setResponseCode(int(value.split()[0]))
            else:
                request.setHeader(name, value)
        request.write(self.fault if is_update and isinstance(self.fault, bytes) else body)
        request.finish()


def _abort(request: Request) -> None:
    transport: Any = request.transport
    transport.abortConnection()


def connector(pair: Pair, transport: HttpTransport, reactor: IReactorTime, port: int) -> GitConnector:
    """The connector of both, with a network of the test's."""
    return GitConnector(spec=pair.spec(port), transport=transport, clock=reactor, now=lambda: NOW)
