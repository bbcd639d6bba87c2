"""What the connector of a curl command sends is what curl itself sends."""

import base64
import json
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import attrs
from twisted.internet.task import Clock
from twisted.web.resource import Resource
from twisted.web.server import Request as WebRequest

from aileron.connectors import HttpConnector
from aileron.features.importing.curl import CurlCommand
from aileron.features.importing.files import write_connector
from aileron.model.connectors import Request
from tests.connectors.service import NOW, spec_of
from tests.functional.case import FunctionalTestCase
from tests.functional.install import install_curl
from tests.functional.loopback import LoopbackSite, headers_of
from tests.functional.process import Command

KEY = "canary-4f9a8b7c6d5e4f3a2b1c"
BEARER = ("-H", f"Authorization: Bearer {KEY}")
_OURS = frozenset({"accept", "content-length", "host", "user-agent"})
"""Headers that each program sets by itself."""


@attrs.define
class Sent:
    """A request, as far as its spelling does not matter."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: Any


class Recorder(Resource):
    """Answers every request, and keeps it."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sent: list[Sent] = []

    def render(self, request: WebRequest) -> bytes:
        """Keep the request."""
        assert request.content is not None
        method, uri = request.method.decode(), request.uri.decode()
        self.sent.append(make_sent(method, uri, headers_of(request), request.content.read()))
        request.setResponseCode(HTTPStatus.OK)
        return b"{}"


def make_sent(method: str, url: str, headers: dict[str, str], body: bytes) -> Sent:
    """Read a request."""
    parts = urlsplit(url)
    kept = {name: value for name, value in headers.items() if name not in _OURS}
    kind = kept.pop("content-type", "")
    return Sent(method, parts.path, parse_qsl(parts.query, keep_blank_values=True), kept, _read_body(body, kind))


def _read_body(body: bytes, kind: str) -> Any:
    """Read a body: JSON that curl has not been told to call so is JSON for us."""
    try:
        return json.loads(body)
    except ValueError:
        return (parse_qsl(body.decode(), keep_blank_values=True), kind) if body else None


class CurlTests(FunctionalTestCase):
    """Commands as they stand in documentation."""

    def setUp(self) -> None:
        """Listen."""
        self.program = str(install_curl())
        super().setUp()
        self.recorder = Recorder()
        self.site = LoopbackSite.listen(self.reactor, self.recorder)
        self.finally_(self.site.stop)

    async def test_same(self) -> None:
        """The same method, path, query, headers, credential and body leave, given the same values."""
        url = self.site.url
        body = {"title": "Grüße", "size": 3, "open": True, "tags": ["a", "b"], "in": {"deep": {"er": 1.5}, "none": {}}}
        for words in (
            (f"{url}/api/issues", *BEARER, "-d", json.dumps(body)),
            ("-XPUT", f"{url}/api/issues/7", *BEARER, "--json", json.dumps(body)),
            ("-sSL", f"{url}/search?q=a%20b&limit=3", *BEARER, "-H", "X-Version: 2022-11-28"),
            (f"{url}/a.b/c%2Fd/?q=%2B+x#part", *BEARER, "-H", "X-Empty:", "-H", "X-Lang: de"),
            (url, "-u", f"ada:{KEY}", "--data-binary", "a=1&b="),
            (f"{url}/messages", "-u", f"ada:{KEY}", "-d", "to=%2B1", "--data-raw", "text=a%26b"),
            ("-X", "DELETE", f"{url}/issues/7", "-H", f"X-API-Key: {KEY}"),
            (f"{url}/search?api_key={KEY}&q=a",),
            ("-X", "PATCH", f"{url}/a", "-H", f"Authorization: token {KEY}", "-H", "Accept: x/y", "-d", '{"a": "b"}'),
            ("-X", "POST", f"{url}/run", *BEARER, "-d", "{}"),
        ):
            self.recorder.sent.clear()
            await self.run_curl(words)
            (theirs,) = self.recorder.sent
            self.assertEqual(self.made(words, theirs), theirs, words)

    async def run_curl(self, words: tuple[str, ...]) -> None:
        """Run curl itself."""
        command = Command(arguments=(self.program, "-q", *words), environment={}, directory=Path("/"))
        finished = await self.start(command).finish(30)
        self.assertEqual(finished.exit_code, 0, finished.stderr)

    def made(self, words: tuple[str, ...], theirs: Sent) -> Sent:
        """What the connector of the command sends, given the values of curl's own request."""
        command = CurlCommand.read(("curl", *words))
        written = write_connector(command.describe("local://me/trial", command.list_operations()))
        self.assertNotIn(KEY, written.connector.text)
        spec = spec_of(written.connector.text)
        (name, operation), *_ = spec.operations.items()
        sent = dict(theirs.query) | (theirs.body if isinstance(theirs.body, dict) else {})
        sent |= dict(theirs.body[0]) if isinstance(theirs.body, tuple) else {}
        connector = HttpConnector(spec, None, Clock(), lambda: NOW)  # type: ignore[arg-type]
        inputs = {each: sent[each] for each in operation.inputs}
        return self.with_key(command, connector.prepare(name, inputs, self.site.url, "effect-1"), spec)

    def with_key(self, command: CurlCommand, request: Request, spec: Any) -> Sent:
        """The request, and the credential where the connector puts it."""
        need, headers = spec.description.credential, {name.lower(): value for name, value in request.headers}
        url = request.url
        if need.query:
            url = url.replace("?", f"?{need.query}={KEY}&")
        elif need.kind == "basic":
            headers["authorization"] = f"Basic {base64.b64encode(f'ada:{KEY}'.encode()).decode()}"
        else:
            headers[need.header.lower()] = need.format.replace("{key}", KEY)
        return make_sent(request.method, url, headers, request.body or b"")
