"""The pages' resource: it guards itself, by cookie and page key."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen
from klein import Klein
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource

from aileron.errors import AileronError, NotFound, Unauthorized
from aileron.interfaces import IOperators, IRunner, ISessions
from aileron.values import RunQuery, RunState, Session

from ._fragments import ApprovalList, ApprovalPage, html

_STATIC = Path(__file__).with_name("static")
_TYPES = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8"}
_HTML = b"text/html; charset=utf-8"
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_local_path = re.compile(r"/(approvals(/[0-9A-Za-z]{1,64})?)?").fullmatch
_LISTED = 100


@frozen
class PageParts:
    """What the pages reach.

    :ivar cookie: name of the browser's cookie.
    :ivar page_key_header: the header in which the page proves that it has the page key.
    """

    runner: IRunner
    sessions: ISessions
    operators: IOperators
    cookie: bytes
    page_key_header: str


class _Pages:
    """Routes of the operator site outside C{/v1}."""

    app = Klein()

    def __init__(self, parts: PageParts) -> None:
        self._parts = parts
        self._files = {path.name: path.read_bytes() for path in _STATIC.iterdir() if path.suffix[1:] in _TYPES}
        self._shell = (_STATIC / "shell.html").read_text(encoding="utf-8")

    @app.route("/handover", methods=["POST"])
    def hand_over(self, request: IRequest) -> bytes:
        """Turn a single-use code into a browser session: the cookie, the page key, and the shell.  Nothing else."""
        code, target = _form_field(request, b"code"), _form_field(request, b"next")
        try:
            cookie, page_key, _ = self._parts.operators.redeem(code)
        except AileronError:
            request.setResponseCode(401)
            return self._page(request, {"refused": "1"})
        name = self._parts.cookie.decode("ascii")
        request.responseHeaders.addRawHeader(
            b"Set-Cookie", f"{name}={cookie}; Path=/; HttpOnly; SameSite=Strict".encode("ascii")
        )
        return self._page(request, {"page-key": page_key, "next": target if _local_path(target) else "/approvals"})

    @app.route("/static/<name>")
    def static(self, request: IRequest, name: str) -> bytes:
        """The script and the style sheet."""
        if name not in self._files:
            return self._not_here(request)
        request.setHeader(b"Content-Type", _TYPES[name.rpartition(".")[2]])
        return self._files[name]

    @app.route("/fragments/approvals")
    async def approvals(self, request: IRequest) -> bytes:
        """What waits."""
        if not self._admitted(request):
            return _refused(request)
        query = RunQuery(states=(RunState.PENDING,), limit=_LISTED, oldest_first=True)
        found = (await self._parts.runner.approvals(query)).items
        sessions = [await self._session(each.run.session_id) for each in found]
        return await _fragment(request, ApprovalList(found, {each.id: each for each in sessions if each}))

    @app.route("/fragments/approvals/<run_id>")
    async def approval(self, request: IRequest, run_id: str) -> bytes:
        """One approval, whole."""
        if not self._admitted(request):
            return _refused(request)
        try:
            found = await self._parts.runner.approval(run_id)
        except NotFound:
            return self._not_here(request)
        return await _fragment(request, ApprovalPage(found, await self._session(found.run.session_id)))

    @app.route("/")
    @app.route("/approvals")
    @app.route("/approvals/<run_id>")
    def shell(self, request: IRequest, run_id: str = "") -> bytes:
        """The same page for every navigation, with no data in it."""
        return self._page(request, {})

    @app.handle_errors(Exception)
    def lost(self, request: IRequest, failure: object) -> bytes:
        """Any other path."""
        return self._not_here(request)

    def _admitted(self, request: IRequest) -> bool:
        cookie = request.getCookie(self._parts.cookie)
        page_key = request.getHeader(self._parts.page_key_header)
        if not cookie or not page_key:
            return False
        return self._parts.operators.by_browser(cookie.decode("latin-1"), page_key) is not None

    async def _session(self, session_id: str | None) -> Session | None:
        return None if session_id is None else await self._parts.sessions.get(session_id)

    def _page(self, request: IRequest, told: Mapping[str, str]) -> bytes:
        """The shell; C{told} is for its script alone."""
        request.setHeader(b"Content-Type", _HTML)
        request.setHeader(b"Content-Security-Policy", _POLICY)
        hints = json.dumps(told).replace("<", "\\u003c")
        return self._shell.replace("{{told}}", _attribute(hints)).encode("utf-8")

    def _not_here(self, request: IRequest) -> bytes:
        request.setResponseCode(404)
        return self._page(request, {"missing": "1"})


def _form_field(request: IRequest, name: bytes) -> str:
    values = request.args.get(name, [])
    return values[0].decode("utf-8", "replace") if len(values) == 1 else ""


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;")


def _refused(request: IRequest) -> bytes:
    request.setResponseCode(Unauthorized.status)
    request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
    return b"no session"


async def _fragment(request: IRequest, element: ApprovalList | ApprovalPage) -> bytes:
    body = await html(element)
    request.setHeader(b"Content-Type", _HTML)
    return body


def pages(parts: PageParts) -> IResource:
    """What the operator site serves to a browser outside C{/v1}."""
    return _Pages(parts).app.resource()
