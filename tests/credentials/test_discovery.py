"""Where one signs in is found as the servers describe it, and a hostile server leads to nothing."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.credentials import (
    AuthorizationServer,
    ProtectedResource,
    SignInClient,
    SignInRefused,
    TokenAnswer,
    TokenRequest,
    found_client,
    register,
)

T = TypeVar("T")
URL = "https://mcp.example/team/mcp"
SETTINGS = {"discover": "true", "resource": URL}
PAGE = "https://mcp.example/.well-known/oauth-protected-resource"
ISSUER = "https://login.example"
SERVER_PAGE = f"{ISSUER}/.well-known/oauth-authorization-server"
REDIRECT = "http://127.0.0.1:4711/callback"
RESOURCE = {"resource": URL, "authorization_servers": [ISSUER], "scopes_supported": ["read", "write"]}
SERVER = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    "code_challenge_methods_supported": ["plain", "S256"],
    "scopes_supported": ["read", "write"],
}
CHALLENGE = f'Bearer resource_metadata="{PAGE}/team/mcp", scope="read"'


@define
class World:
    """What answers to requests, by their URL; another URL is not there.

    :ivar asked: the requests, in order.
    """

    pages: dict[str, Any]
    challenge: str = ""
    asked: list[TokenRequest] = field(factory=list)

    async def exchange(self, asked: TokenRequest) -> TokenAnswer:
        """Answer."""
        self.asked.append(asked)
        if asked.place == "MCP server":
            return TokenAnswer(401, b"", self.challenge)
        given = self.pages.get(asked.url, 404)
        if isinstance(given, bytes):
            return TokenAnswer(200, given)
        return TokenAnswer(given, b"") if isinstance(given, int) else TokenAnswer(200, json.dumps(given).encode())

    @property
    def urls(self) -> list[str]:
        """Those that were asked, after the resource itself."""
        return [each.url for each in self.asked if each.place == "metadata"]


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return what comes of it, or raise it."""
    came: list[T | Failure] = []
    Deferred.fromCoroutine(work).addBoth(came.append)
    (result,) = came
    if isinstance(result, Failure):
        result.raiseException()
    return result


class DiscoveryCase(SynchronousTestCase):
    """A world in which all is well.

    :ivar settings: of the connector.
    """

    def setUp(self) -> None:
        self.settings: dict[str, str] = dict(SETTINGS)
        self.world = World({f"{PAGE}/team/mcp": dict(RESOURCE), SERVER_PAGE: dict(SERVER)}, CHALLENGE)

    def resource(self) -> ProtectedResource:
        """What the resource says."""
        return at_once(ProtectedResource.find(self.settings, self.world.exchange))

    def server(self, issuer: str = ISSUER) -> AuthorizationServer:
        """What the authorization server says."""
        return at_once(AuthorizationServer.find(issuer, self.settings, self.world.exchange))

    def refuses(self, word: str) -> None:
        """No sign-in begins, and what is said names no foreign text but an address that was asked."""
        with self.assertRaises(SignInRefused) as raised:
            found = self.resource()
            self.server(found.issuer(self.settings))
        self.assertIn(word, str(raised.exception))
        self.assertNotIn("canary", str(raised.exception))


class ResourceTests(DiscoveryCase):
    def test_challenged(self) -> None:
        """The 401 names the document and the scopes; the request for it carries no credential and changes nothing."""
        found = self.resource()
        self.assertEqual((found.name, found.issuers, found.scopes), (URL, (ISSUER,), ("read",)))
        (ping, page) = self.world.asked
        self.assertEqual((ping.url, json.loads(ping.body or b"")["method"]), (URL, "ping"))
        self.assertEqual((page.url, page.body), (f"{PAGE}/team/mcp", None))
        self.assertNotIn("authorization", [name.lower() for each in self.world.asked for name, _ in each.headers])

    def test_well_known(self) -> None:
        """Without a challenge the document is looked for with the path, then without; then its scopes count."""
        self.world.challenge = ""
        self.world.pages = {PAGE: {**RESOURCE, "resource": "https://mcp.example/"}, f"{PAGE}/team/mcp": b"<html>"}
        found = self.resource()
        self.assertEqual((found.name, found.scopes), ("https://mcp.example/", ("read", "write")))
        self.assertEqual(self.world.urls, [f"{PAGE}/team/mcp", PAGE])

    def test_declared(self) -> None:
        """A server that says nothing is used with the issuer of the file, and without one it is not."""
        self.world.pages.clear()
        self.refuses("does not say where to sign in")
        self.settings["issuer"] = ISSUER
        self.assertEqual(self.resource().issuer(self.settings), ISSUER)

    def test_several(self) -> None:
        """Of several authorization servers the declared one is chosen, and one that is not among them never."""
        self.world.pages[f"{PAGE}/team/mcp"]["authorization_servers"] = ["https://other.example", ISSUER]
        self.assertEqual(self.resource().issuer(self.settings), "https://other.example")
        self.settings["issuer"] = ISSUER
        self.assertEqual(self.resource().issuer(self.settings), ISSUER)
        self.settings["issuer"] = f"{ISSUER}/"
        self.refuses("does not name the authorization server that the connector file expects")
        del self.settings["issuer"]
        self.world.pages[f"{PAGE}/team/mcp"]["authorization_servers"] = [f"{ISSUER}?tenant=canary"]
        self.refuses("must have no query")

    def test_other_resource(self) -> None:
        """A document about another resource is refused: a token for that would be asked for here."""
        for name in (
            "https://bank.example/api",
            "https://mcp.example/team/mcp2",
            "https://mcp.example/team/mcp/more",
            "https://mcp.example:8443/team/mcp",
            "http://mcp.example/team/mcp",
            "https://canary@mcp.example/team/mcp",
            "https://mcp.example/team/mcp?a=canary",
            7,
        ):
            self.world.pages[f"{PAGE}/team/mcp"]["resource"] = name
            self.refuses("another resource")

    def test_described_elsewhere(self) -> None:
        """A document on another host, or no address at all, is not asked for."""
        for named in ("https://canary.example/page", "http://169.254.169.254/latest", "https://10.0.0.1/", "canary"):
            self.world.challenge = f'Bearer resource_metadata="{named}"'
            self.world.asked.clear()
            self.refuses("resource_metadata")
            self.assertEqual(self.world.urls, [])

    def test_no_document(self) -> None:
        """A redirect, a fault of the server and a document that names nobody end it."""
        for given, word in (
            (302, "302"),
            (500, "500"),
            ({**RESOURCE, "authorization_servers": []}, "where to sign in"),
        ):
            self.world.pages[f"{PAGE}/team/mcp"] = given
            self.refuses(word)
        self.assertEqual({each.url for each in self.world.asked}, {URL, f"{PAGE}/team/mcp"})

    def test_private_issuer(self) -> None:
        """No issuer on this machine or in a private network is asked, unless the connector declares such a network."""
        for issuer in (
            "http://127.0.0.1:9",
            "https://192.168.1.1",
            "https://localhost",
            "https://nas.local",
            "ftp://x",
        ):
            self.world.pages[f"{PAGE}/team/mcp"]["authorization_servers"] = [issuer]
            self.refuses("issuer")
            self.assertEqual(self.world.urls, [f"{PAGE}/team/mcp"])
            self.world.asked.clear()
        self.settings["private_network"] = "true"
        self.world.pages[f"{PAGE}/team/mcp"]["authorization_servers"] = ["http://127.0.0.1:9"]
        self.assertEqual(self.resource().issuer(self.settings), "http://127.0.0.1:9")


class ServerTests(DiscoveryCase):
    def test_read(self) -> None:
        """Its endpoints are those that it names."""
        found = self.server()
        self.assertEqual((found.authorize_url, found.token_url), (f"{ISSUER}/authorize", f"{ISSUER}/token"))
        self.assertEqual((found.registration_url, found.names_itself), (f"{ISSUER}/register", False))

    def test_order(self) -> None:
        """Its pages are asked in the order of the specification, with the path of an issuer that has one."""
        issuer = f"{ISSUER}/tenant"
        last = f"{issuer}/.well-known/openid-configuration"
        self.world.pages = {last: {**SERVER, "issuer": issuer}}
        self.server(issuer)
        between = f"{ISSUER}/.well-known/openid-configuration/tenant"
        self.assertEqual(self.world.urls, [f"{SERVER_PAGE}/tenant", between, last])
        self.world.asked.clear()
        with self.assertRaises(SignInRefused):
            self.server()
        self.assertEqual(self.world.urls, [SERVER_PAGE, f"{ISSUER}/.well-known/openid-configuration"])

    def test_other_issuer(self) -> None:
        """One that says that it is another, be it by a slash, is refused, and no further page is asked."""
        for issuer in (f"{ISSUER}/", "https://canary.example", ISSUER.upper(), None):
            self.world.asked.clear()
            self.world.pages[SERVER_PAGE]["issuer"] = issuer
            self.refuses("another issuer")
            self.assertEqual(self.world.urls[-1], SERVER_PAGE)

    def test_no_s256(self) -> None:
        """One that does not say that it checks the S256 challenge is refused."""
        for methods in (None, ["plain"], "S256", []):
            self.world.pages[SERVER_PAGE]["code_challenge_methods_supported"] = methods
            self.refuses("S256")

    def test_endpoints(self) -> None:
        """No endpoint is on a private host, in plain text, missing, or too long to be one."""
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
            for url in (
                "https://127.0.0.1/canary",
                "https://[::1]/canary",
                "https://169.254.169.254/canary",
                "https://router.lan/canary",
                "http://login.example/canary",
                "javascript:alert('canary')",
                "https://canary:x@login.example/",
                "https://login.example/#canary",
                "https://login.example/" + "a" * 2048,
                7,
            ):
                self.world.pages[SERVER_PAGE] = {**SERVER, name: url}
                self.refuses(name)

    def test_sent_along(self) -> None:
        """A sign-in page whose address says itself what we are to say could have another client or scope be granted."""
        for query in ("client_id=evil", "x=1&redirect_uri=https%3A%2F%2Fevil.example", "scop%65=admin", "request_uri="):
            self.world.pages[SERVER_PAGE] = {**SERVER, "authorization_endpoint": f"{ISSUER}/authorize?{query}"}
            self.refuses("authorization_endpoint")
        self.world.pages[SERVER_PAGE] = {**SERVER, "authorization_endpoint": f"{ISSUER}/authorize?p=policy"}
        self.assertEqual(self.server().authorize_url, f"{ISSUER}/authorize?p=policy")

    def test_no_document(self) -> None:
        """A redirect ends it, and what is no JSON object describes nobody."""
        self.world.pages[SERVER_PAGE] = 301
        self.refuses("301")
        self.world.pages[SERVER_PAGE] = b"[" * 60_000
        self.refuses("publishes no metadata")


class ClientTests(DiscoveryCase):
    def client(self, scopes: tuple[str, ...] = ("read",), **server: Any) -> SignInClient:
        """The client that signs in."""
        self.world.pages[SERVER_PAGE] = {**SERVER, **server}
        resource = ProtectedResource("https://mcp.example", (ISSUER,), scopes)
        return found_client(self.settings, resource, self.server())

    def registered(self, answer: Mapping[str, Any], **server: Any) -> SignInClient:
        """The same, registered."""
        client = self.client(**server)
        self.world.pages[f"{ISSUER}/register"] = answer
        return at_once(register(client, REDIRECT, self.world.exchange))

    def asked(self) -> dict[str, Any]:
        """What was asked to be registered."""
        found: dict[str, Any] = json.loads(self.world.asked[-1].body or b"")
        return found

    def test_order(self) -> None:
        """A client that was registered comes first, then a document about it where the server reads one."""
        self.assertEqual(self.client().client_id, "")
        document = self.settings["client_metadata_url"] = "https://me.example/client.json"
        self.assertEqual(self.client().client_id, "")
        self.assertEqual(self.client(client_id_metadata_document_supported=True).client_id, document)
        self.settings["client_id"] = "mine"
        self.assertEqual(self.client(client_id_metadata_document_supported=True).client_id, "mine")

    def test_scopes(self) -> None:
        """The scopes of the file are asked for, else those of the resource; a refresh token by a scope of its own."""
        self.assertEqual(self.client().scopes, ("read",))
        self.assertEqual(self.client(scopes_supported=["offline_access"]).scopes, ("read", "offline_access"))
        self.assertEqual(self.client((), scopes_supported=["offline_access"]).scopes, ())
        self.settings["scopes"] = "write"
        self.assertEqual(self.client().scopes, ("write",))

    def test_registered(self) -> None:
        """A public client is registered for this redirect URI alone; what changes the registration is not kept."""
        told = {
            "client_id": "new",
            "registration_access_token": "canary",
            "redirect_uris": None,
            "registration_client_uri": "https://login.example/register/canary",
            "client_secret": "canary",
        }
        client = self.registered(told)
        asked = self.asked()
        self.assertEqual((asked["redirect_uris"], asked["token_endpoint_auth_method"]), ([REDIRECT], "none"))
        self.assertEqual((asked["application_type"], asked["scope"]), ("native", "read"))
        self.assertEqual((client.client_id, client.client_secret, client.needs_secret), ("new", None, False))

    def test_confidential(self) -> None:
        """A server that knows no public client gives a secret, which shows nowhere and is not asked for."""
        method = {"token_endpoint_auth_method": "client_secret_basic"}
        told = {**method, "client_id": "new", "client_secret": "canary", "redirect_uris": [REDIRECT]}
        client = self.registered(told, token_endpoint_auth_methods_supported=["client_secret_basic"])
        self.assertEqual(self.asked() | method, self.asked())
        self.assertEqual((client.client_secret, client.needs_secret), ("canary", False))
        self.assertNotIn("canary", repr(client))

    def test_registered_otherwise(self) -> None:
        """Another redirect URI, an ID that is none, a missing secret and an unknown way to prove itself are refused."""
        good = {"client_id": "new"}
        for told in (
            {**good, "redirect_uris": ["https://canary.example/callback"]},
            {**good, "redirect_uris": [REDIRECT, "https://canary.example/callback"]},
            {**good, "redirect_uris": []},
            {},
            {"client_id": ""},
            {"client_id": "canary\r\n"},
            {**good, "token_endpoint_auth_method": "client_secret_post"},
            {**good, "token_endpoint_auth_method": "private_key_jwt", "client_secret": "canary"},
            {**good, "token_endpoint_auth_method": ["canary"], "client_secret": "canary"},
        ):
            with self.assertRaises(SignInRefused) as raised:
                self.registered(told)
            self.assertNotIn("canary", str(raised.exception))

    def test_known(self) -> None:
        """A client that has an ID is not registered."""
        self.settings["client_id"] = "mine"
        self.assertEqual(self.registered({}).client_id, "mine")
        self.assertNotIn(f"{ISSUER}/register", [each.url for each in self.world.asked])
