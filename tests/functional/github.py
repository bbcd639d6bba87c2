"""A double of GitHub's API: what C{gh}, C{curl} and programs ask of it, and what came of their writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from attrs import define
from twisted.internet.interfaces import IPullProducer
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

HOST, UPLOADS = "api.github.com", "uploads.github.com"
DOWNLOAD, DOWNLOAD_BYTES = "/repos/acme/web/tarball/main", 50_000_000
_PIECE = bytes(range(256)) * 250
_OPERATION = re.compile(r"^\s*(query|mutation)\s+(\w+)", re.MULTILINE)
_PAGE = {"hasNextPage": False, "endCursor": ""}


@implementer(IPullProducer)
@define(eq=False)
class _Download:
    """The content of a long download, which is never in memory as a whole."""

    _request: Any
    _left: int = DOWNLOAD_BYTES

    def resumeProducing(self) -> None:
        piece = _PIECE[: self._left]
        self._left -= len(piece)
        self._request.write(piece)
        if not self._left:
            self._request.unregisterProducer()
            self._request.finish()

    def stopProducing(self) -> None:
        """Do nothing more: the client has left."""


class GitHub(Resource):
    """One repository, C{acme/web}.

    :ivar token: the only one that is accepted.
    :ivar effects: what was written, in order.
    :ivar reads: what was read.
    :ivar holds: whether writes take effect and are not answered.
    """

    isLeaf = True

    def __init__(self, token: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.token = token
        self.effects: list[str] = []
        self.reads: list[str] = []
        self.refused: list[str] = []
        self.holds = False

    def render(self, request: Request) -> Any:
        """Answer one request."""
        request.setHeader("Content-Type", "application/json; charset=utf-8")
        given = request.getHeader("Authorization") or ""
        method, path = request.method.decode(), request.path.decode()
        if given.split(" ")[-1] != self.token:
            self.refused.append(f"{method} {path}")
            request.setResponseCode(401)
            return b'{"message": "Bad credentials"}'
        assert request.content is not None
        body = request.content.read()
        if path == "/graphql":
            return self._answer_graphql(json.loads(body))
        if path.startswith("/repos/acme/web/releases") and (method, path) != ("GET", "/repos/acme/web/releases"):
            return self._answer_releases(request, f"{method} {path}", body)
        if path == DOWNLOAD:
            request.setHeader("Content-Length", str(DOWNLOAD_BYTES))
            request.registerProducer(_Download(request), False)
            return NOT_DONE_YET
        if method in {"GET", "HEAD"}:
            self.reads.append(f"{method} {path}")
            return json.dumps({"full_name": "acme/web", "private": True}).encode()
        return self._write(request, f"{method} {path}", json.loads(body or b"{}"))

    def _write(self, request: Request, what: str, body: dict[str, Any]) -> Any:
        self.effects.append(f"{what} {body.get('title') or body.get('body') or ''}".strip())
        if self.holds:
            request.notifyFinish().addErrback(lambda _: None)
            return NOT_DONE_YET
        request.setResponseCode(201)
        number = len(self.effects)
        return json.dumps({"number": number, "html_url": f"https://github.com/acme/web/issues/{number}"}).encode()

    def _answer_releases(self, request: Request, what: str, body: bytes) -> bytes:
        """Answer what C{gh release create} asks for: there is no release yet, and a new one has the number 1."""
        if what.startswith(("GET", "HEAD")):
            self.reads.append(what)
            request.setResponseCode(404)
            return b"" if what.startswith("HEAD") else b'{"message": "Not Found"}'
        if what.endswith("/assets"):
            self.effects.append(f"{what} {sha256(body).hexdigest()}")
            answer: dict[str, Any] = {"id": 2, "state": "uploaded", "size": len(body)}
        else:
            self.effects.append(f"{what} {json.loads(body or b'{}').get('name') or ''}".strip())
            place = "/repos/acme/web/releases/1"
            answer = {
                "id": 1,
                "tag_name": "v1",
                "url": f"https://{HOST}{place}",
                "upload_url": f"https://{UPLOADS}{place}/assets{{?name,label}}",
                "html_url": "https://github.com/acme/web/releases/tag/v1",
            }
        request.setResponseCode(200 if what.startswith("PATCH") else 201)
        return json.dumps(answer).encode()

    def _answer_graphql(self, asked: dict[str, Any]) -> bytes:
        found = _OPERATION.search(asked["query"])
        kind, name = (found[1], found[2]) if found else ("query", "")
        answer: Callable[[dict[str, Any]], dict[str, Any]] | None = getattr(self, f"_answer_{name}", None)
        if answer is None:
            self.refused.append(asked["query"])
            return json.dumps({"data": None, "errors": [{"message": f"The double knows no {name}"}]}).encode()
        (self.effects if kind == "mutation" else self.reads).append(name)
        return json.dumps({"data": answer(asked.get("variables") or {})}).encode()

    def _answer_IssueList(self, _: dict[str, Any]) -> dict[str, Any]:
        issue = {"number": 7, "title": "Crash at start", "state": "OPEN", "updatedAt": "2026-11-30T10:00:00Z"}
        listed = {"totalCount": 1, "nodes": [{**issue, "labels": {"nodes": [], "totalCount": 0}}], "pageInfo": _PAGE}
        return {"repository": {"hasIssuesEnabled": True, "issues": listed}}

    def _answer_RepositoryInfo(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"repository": self._repository()}

    def _answer_IssueRepositoryInfo(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"repository": self._repository()}

    def _answer_IssueCreate(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"createIssue": {"issue": {"id": "I_8", "url": "https://github.com/acme/web/issues/8"}}}

    def _answer_PullRequestForBranch(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"repository": {"pullRequests": {"nodes": []}, "defaultBranchRef": {"name": "main"}}}

    def _answer_PullRequestCreate(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"createPullRequest": {"pullRequest": {"id": "PR_9", "url": "https://github.com/acme/web/pull/9"}}}

    def _repository(self) -> dict[str, Any]:
        about = {"id": "R_1", "name": "web", "owner": {"login": "acme"}, "viewerPermission": "WRITE"}
        return {**about, "hasIssuesEnabled": True, "defaultBranchRef": {"name": "main"}, "isPrivate": True}
