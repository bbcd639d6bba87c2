"""What a credential adds to a request that leaves, and what comes of a refusal."""

from __future__ import annotations

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import to_json
from aileron.connectors._schema import read_file
from aileron.model.connectors import CredentialNeed, Outcome, Request
from aileron.model.errors import BindingFailed, NetworkError
from aileron.model.reviews import ReviewedRequest
from aileron.model.vault import Authorization
from aileron.testing import MemoryCredential
from tests.connectors.kinds.http.test_http import BASE, INPUTS, TRACKER
from tests.connectors.service import Service, answer, json_answer, spec_of

SECRET = "s3cret/va+lue=42&x"
ENCODED = "s3cret%2Fva%2Blue%3D42%26x"
IN_PATH = TRACKER.replace('header = "X-Key"\nformat = "Token {key}"', 'path = "/v1/bot{key}"')
IN_QUERY = TRACKER.replace('header = "X-Key"\nformat = "Token {key}"', 'query = "access"')


class _Slow(MemoryCredential):
    """One that is still being renewed."""

    async def authorize(self, request: Request) -> Authorization:
        """Never."""
        return await Deferred[Authorization]()


class AuthorizationTests(SynchronousTestCase):
    """A connector whose credential is a parameter of the query, and one whose is a header."""

    def setUp(self) -> None:
        self.service = Service()

    def start(
        self, operation: str, credential: MemoryCredential, text: str = TRACKER, seconds: float = 60
    ) -> Deferred[Outcome]:
        """Begin to send one request."""
        connector = self.service.connector(spec_of(text))
        request = connector.prepare(operation, INPUTS, BASE, "effect-1")
        send = connector.read if request.effect == "read" else connector.invoke
        started = Deferred.fromCoroutine(send(request, credential, seconds))
        self.service.advance(0)
        return started

    def outcome(
        self, reply: bytes, operation: str = "create", text: str = TRACKER, *, renewable: bool = False
    ) -> Outcome:
        """What one answer comes to."""
        self.service.replies.append(reply)
        self.credential = MemoryCredential(SECRET.encode(), renewable=renewable)
        return self.successResultOf(self.start(operation, self.credential, text))

    def target(self) -> str:
        """The target of the last request."""
        return self.service.requests[-1].split(b" ")[1].decode()

    def test_query(self) -> None:
        """The parameter is put behind those of the operation as the request leaves, encoded, and in no header."""
        self.outcome(json_answer({}), "show", IN_QUERY)
        self.assertEqual(self.target(), f"/api/projects/p%2F1?q=Gr%C3%BC%C3%9Fe&access={ENCODED}")
        self.assertNotIn(b"X-Key", self.service.requests[-1])
        self.outcome(json_answer({}), "create", IN_QUERY)
        self.assertEqual(self.target(), f"/api/projects/p%2F1/items?access={ENCODED}")

    def test_path(self) -> None:
        """A key in the path stands behind the host, encoded, and in no request that is shown or follows a redirect."""
        connector = self.service.connector(spec_of(IN_PATH))
        request = connector.prepare("show", INPUTS, BASE, "effect-1")
        self.assertEqual((request.credential_path, request.credential_header), ("/v1/bot{key}", None))
        self.service.replies.append(answer(b"", 302, {"Location": "/api/other"}))
        outcome = self.outcome(json_answer({"path": f"/bot{ENCODED}", "key": SECRET}), "show", IN_PATH)
        first, second = self.service.requests
        self.assertTrue(first.startswith(f"GET /v1/bot{ENCODED}/api/projects/p%2F1?q=".encode()))
        self.assertTrue(second.startswith(b"GET /api/other HTTP"))
        self.assertEqual(outcome.output, {"path": "/bot[redacted]", "key": "[redacted]"})
        refused = self.outcome(json_answer({"error": f"no /bot{ENCODED}/x"}, 400), "create", IN_PATH)
        for shown in (repr(outcome), repr(refused), repr(request)):
            self.assertNotIn(ENCODED, shown)
            self.assertNotIn(SECRET, shown)

    def test_misplaced(self) -> None:
        """A key has one place, and a path that begins with one is a path."""
        for line, told in (
            ('path = "bot{key}"', "must be the beginning of a path"),
            ('path = "/bot"', "must be the beginning of a path"),
            ('path = "/{key}/{key}"', "must be the beginning of a path"),
            ('path = "/../{key}"', "must be the beginning of a path"),
            ('path = "/bot{key}?a"', "must be the beginning of a path"),
            ('path = "/bot{key}"\nquery = "key"', "must not stand beside `query`"),
            ('path = "/bot{key}"\nheader = "X-Key"', "must not stand beside `path`"),
        ):
            (problem,) = read_file(IN_PATH.replace('path = "/v1/bot{key}"', line).encode(), "x.toml").problems
            self.assertIn(told, problem.message)

    def test_not_shown(self) -> None:
        """Of the parameter a review shows the name alone, and a request without one looks as it always did."""
        connector = self.service.connector(spec_of(IN_QUERY))
        request = connector.prepare("show", INPUTS, BASE, "effect-1")
        self.assertNotIn("access", request.url)
        shown = to_json(ReviewedRequest.of(request))
        self.assertEqual((shown["credential_query"], shown["credential"]), ("access", None))
        usual = to_json(ReviewedRequest.of(evolve(request, credential_query=None, credential_header="X-Key")))
        self.assertNotIn("credential_query", usual)

    def test_echoed(self) -> None:
        """What the service writes of it is redacted, encoded for a URL as well, in an answer and in an error."""
        url = f"https://x/?access={ENCODED}"
        outcome = self.outcome(json_answer({"url": url, "key": SECRET}), "show", IN_QUERY)
        self.assertEqual(outcome.output, {"url": "https://x/?access=[redacted]", "key": "[redacted]"})
        self.assertEqual(outcome.notes["echoed"], ["plain", "url"])
        refused = self.outcome(json_answer({"error": url}, 400), "create", IN_QUERY)
        self.assertNotIn(ENCODED, repr(refused))

    def test_redirected(self) -> None:
        """Who is redirected gets no header of the credential's."""
        self.service.replies.append(answer(b"", 302, {"Location": "/api/other"}))
        self.outcome(json_answer({}), "show")
        self.assertEqual([b"X-Key" in each for each in self.service.requests], [True, False])

    def test_redirected_from_query(self) -> None:
        """Nor the parameter, wherever the redirect leads from there."""
        self.service.replies.append(answer(b"", 302, {"Location": "#here"}))
        self.outcome(json_answer({}), "show", IN_QUERY)
        self.assertEqual([ENCODED.encode() in each for each in self.service.requests], [True, False])
        self.assertIn(b"?q=Gr%C3%BC%C3%9Fe HTTP/1.1", self.service.requests[1])

    def test_refused(self) -> None:
        """Of a 401 the credential is told; the same request may succeed where another one is sent next time."""
        for renewable in (False, True):
            outcome = self.outcome(json_answer({}, 401), renewable=renewable)
            assert outcome.fault is not None
            self.assertEqual((outcome.fault.kind, outcome.fault.retriable), ("external_api_error", renewable))
            self.assertTrue(outcome.classified)
            self.assertEqual([each.secrets for each in self.credential.refusals], [(SECRET,)])
        self.outcome(json_answer({}, 403), renewable=True)
        self.assertEqual(self.credential.refusals, [])

    def test_refused_alone(self) -> None:
        """A 401 names its operation, unless the service says that the token is wrong, or there is no other one."""
        self.outcome(json_answer({}, 401))
        self.assertEqual((self.credential.doubtful, self.credential.acceptances), (["create"], []))
        for said, doubtful in (
            ('Bearer realm="x", error="invalid_token"', ""),
            ('Basic realm="a", Bearer error="invalid_token"', ""),
            ('Bearer error="insufficient_scope"', "create"),
            ('Basic realm="error=invalid_token"', "create"),
        ):
            self.outcome(answer(b"{}", 401, {"WWW-Authenticate": said, "Content-Type": "application/json"}))
            self.assertEqual(self.credential.doubtful, [doubtful], said)
        spec = spec_of(TRACKER)
        alone = evolve(spec, operations={"create": spec.operations["create"]})
        self.credential = MemoryCredential(SECRET.encode())
        connector = self.service.connector(alone)
        self.service.replies.append(json_answer({}, 401))
        sending = connector.invoke(connector.prepare("create", INPUTS, BASE, "effect-1"), self.credential, 60)
        started = Deferred.fromCoroutine(sending)
        self.service.advance(0)
        self.successResultOf(started)
        self.assertEqual(self.credential.doubtful, [""])

    def test_refused_after_redirect(self) -> None:
        """What a redirect leads to is asked for without the credential, so its answer says nothing of that."""
        for status in (401, 200):
            self.service.replies.append(answer(b"", 302, {"Location": "/api/other"}))
            self.outcome(json_answer({}, status), "show")
            self.assertEqual((self.credential.refusals, self.credential.acceptances), ([], []))

    def test_accepted(self) -> None:
        """What succeeded was accepted; another failure says nothing of the credential."""
        self.outcome(json_answer({"id": 7}))
        self.assertEqual([each.secrets for each in self.credential.acceptances], [(SECRET,)])
        for status in (403, 404, 429, 500):
            self.outcome(json_answer({}, status))
            self.assertEqual((self.credential.acceptances, self.credential.refusals), ([], []), status)

    def test_too_slow(self) -> None:
        """A credential that is not ready in time fails as the network does, and nothing is ever sent."""
        started = self.start("create", _Slow(b""), seconds=5)
        self.assertNoResult(started)
        self.service.advance(5)
        self.failureResultOf(started, NetworkError)
        self.service.advance(100)
        self.assertEqual(self.service.connected, [])

    def test_time_is_shared(self) -> None:
        """What renewing took of the time is not there for the answer."""
        ready = Deferred[None]()

        class Late(MemoryCredential):
            async def authorize(self, request: Request) -> Authorization:
                await ready
                return await super().authorize(request)

        self.service.replies.append(None)
        started = self.start("create", Late(b"secret"), seconds=5)
        self.service.advance(4)
        ready.callback(None)
        self.service.advance(0.5)
        self.assertNoResult(started)
        self.service.advance(0.5)
        outcome = self.successResultOf(started)
        self.assertEqual((outcome.sent, outcome.classified), (True, False))

    def test_unfit(self) -> None:
        """An empty secret is sent nowhere."""
        self.failureResultOf(self.start("show", MemoryCredential(b""), IN_QUERY), BindingFailed)


class FileTests(SynchronousTestCase):
    """What a connector file says of its credential."""

    def need(self, table: str) -> CredentialNeed | None:
        """What a file without fault says."""
        return spec_of(
            TRACKER.replace('kind = "api_key"\nheader = "X-Key"\nformat = "Token {key}"', table)
        ).description.credential

    def test_kinds(self) -> None:
        """Each kind has its usual place, and may have another where it says so."""
        for table, need in (
            ('kind = "api_key"\nquery = "key"', CredentialNeed("api_key", "", "{key}", {"query": "key"})),
            ('kind = "basic"', CredentialNeed("basic", "Authorization", "Basic {key}")),
            (
                'kind = "oauth2"\ntoken_url = "https://login.example/token"\nscopes = ["a", "b"]',
                CredentialNeed(
                    "oauth2",
                    "Authorization",
                    "Bearer {key}",
                    {"token_url": "https://login.example/token", "scopes": "a b", "private_network": "true"},
                ),
            ),
            ('kind = "basic"\nheader = "X-Auth"', CredentialNeed("basic", "X-Auth", "Basic {key}")),
        ):
            self.assertEqual(self.need(table), need)

    def test_discovered(self) -> None:
        """A connector to an MCP server may leave it to that server to say where one signs in: for its URL alone."""
        head = '[connector]\nname = "local://me/x"\nversion = "1.0.0"\nkind = "mcp"\n[mcp]\nurl = "https://x.example/mcp"\n'
        table = '[credential]\nkind = "oauth2"\n'
        for more, settings in (
            ("discover = true", {"discover": "true"}),
            ('discover = true\nclient_id = "mine"', {"discover": "true", "client_id": "mine"}),
            ('token_url = "https://x.example/t"', {"token_url": "https://x.example/t"}),
        ):
            spec = read_file((head + table + more).encode(), "x.toml").spec
            assert spec is not None and spec.description.credential is not None
            resource = {"resource": "https://x.example/mcp"}
            self.assertEqual(spec.description.credential.settings, {**settings, **resource})
        for key in ("token_url", "authorize_url", "device_url"):
            text = f'{head}{table}discover = true\n{key} = "https://x.example/t"'
            (problem,) = read_file(text.encode(), "x.toml").problems
            self.assertEqual(problem.message, f"`{key}` must not stand beside `discover`")

    def test_faults(self) -> None:
        """What another kind's key, a key too many, or no such thing is a fault, each with its line."""
        for table, word in (
            ('kind = "api_key"\nquery = "key"\nheader = "X-Key"', "must not stand beside"),
            ('kind = "api_key"\nquery = "a b"', "name of a query parameter"),
            ('kind = "api_key"', "is missing"),
            ('kind = "api_key"\nheader = "X-Key"\ntoken_url = "https://x.example"', "is not a known key"),
            ('kind = "basic"\nquery = "key"', "is not a known key"),
            ('kind = "oauth2"\ntoken_url = "x"', "`token_url`"),
            ('kind = "oauth2"\nauthorize_url = "http://login.example/"', "must begin with https://"),
            ('kind = "oauth2"\nauthorize_url = "https://login.example/#"', "must have no fragment"),
            ('kind = "oauth2"\ntoken_endpoint_auth_method = "private_key_jwt"', "must be client_secret_post"),
            ('kind = "oauth2"\nscopes = "a b"', "array of strings"),
            ('kind = "oauth2"\ndiscover = true', "for connectors of the kind mcp"),
            ('kind = "oauth2"\ndiscover = "yes"', "must be true or false"),
            ('kind = "oauth2"\nresource = "https://x.example"', "is not a known key"),
            ('kind = "oauth2"\nclient_metadata_url = "https://x.example/c"', "needs `discover = true`"),
            ('kind = "oauth2"\nclient_metadata_url = "https://x.example/"', "with a path"),
            ('kind = "oauth2"\nclient_id = "ä"', "`client_id` must be visible ASCII"),
            ('kind = "api_key"\nquery = "q"', "is the credential's parameter"),
            ('kind = "conjured"\nanything = 1', "must be one of"),
        ):
            text = TRACKER.replace('kind = "api_key"\nheader = "X-Key"\nformat = "Token {key}"', table)
            found = read_file(text.encode(), "tracker.toml", "local").problems
            self.assertEqual([word in each.message for each in found], [True], (table, found))
            self.assertTrue(all(each.line for each in found))
