"""Signing in for an MCP server that says where: what is shown and confirmed before anything is sent there."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from aileron.credentials import TokenAnswer, TokenExchange, TokenRequest
from tests.cli.test_signing_in import FQN, PATH, TOKENS, SigningInCase
from tests.credentials.test_discovery import CHALLENGE, ISSUER, PAGE, RESOURCE, SERVER, SERVER_PAGE, URL

_FOUND = [URL, f"{PAGE}/team/mcp", SERVER_PAGE]
_REGISTER, _TOKEN = f"{ISSUER}/register", f"{ISSUER}/token"


class DiscoveringCase(SigningInCase):
    """A person, an MCP server, and the authorization server that it names.

    :ivar pages: what answers, by URL; C{None}: nothing is there.
    :ivar requests: what was asked for, in order.
    """

    def setUp(self) -> None:
        super().setUp()
        self.settings = {"discover": "true", "resource": URL}
        self.pages: dict[str, Any] = {
            f"{PAGE}/team/mcp": dict(RESOURCE),
            SERVER_PAGE: dict(SERVER),
            _REGISTER: {"client_id": "new", "registration_access_token": "canary-secret"},
            _TOKEN: dict(TOKENS),
        }
        self.requests: list[TokenRequest] = []

    def exchange(self, own_ports: Collection[int]) -> TokenExchange:
        """Reach both servers."""

        async def ask(asked: TokenRequest) -> TokenAnswer:
            self.requests.append(asked)
            if asked.url == URL:
                return TokenAnswer(401, b"", CHALLENGE)
            found = self.pages.get(asked.url)
            return TokenAnswer(404, b"") if found is None else TokenAnswer(200, json.dumps(found).encode())

        return ask

    @property
    def urls(self) -> list[str]:
        """What was asked for, in order."""
        return [each.url for each in self.requests]

    def sent(self, url: str) -> str:
        """The body that was sent there."""
        (found,) = (each.body or b"" for each in self.requests if each.url == url)
        return found.decode()


class DiscoveringTests(DiscoveringCase):
    def test_setup(self) -> None:
        """What was found is shown and confirmed; a client is registered, and the tokens are for this resource."""
        code, out, err = self.setup_with("y", "y", "y")
        self.assertEqual((code, self.urls), (0, [*_FOUND, _REGISTER, _TOKEN]), err)
        self.assertEqual(self.prompts[:2], ["Contact that host? [y/N] ", "Sign in there? [y/N] "])
        for shown in (ISSUER, f"{ISSUER}/authorize", _TOKEN, URL, f"a new one, registered at {_REGISTER}", "read"):
            self.assertIn(f" {shown}\n", err)
        self.assertEqual((self.query["client_id"], self.query["resource"], self.query["scope"]), ("new", URL, "read"))
        self.assertIn("resource=https%3A%2F%2Fmcp.example%2Fteam%2Fmcp", self.sent(_TOKEN))
        self.assertIn("Signed in as the client new.", err)
        self.assertEqual(self.reactor.stopped, 1)
        (kept,) = self.kept()
        self.assertEqual((kept["resource"], kept["issuer"], kept["token_url"]), (URL, ISSUER, _TOKEN))
        self.assertEqual((kept["client_id"], kept["access_token"]), ("new", "canary-access"))
        self.assert_nothing_left(out, err)

    def test_host_not_confirmed(self) -> None:
        """An authorization server of another host is asked nothing before the person says so."""
        code, _, err = self.setup_with("")
        self.assertEqual((code, self.urls, "Nothing was saved" in err), (1, _FOUND[:2], True))
        self.assertIn(f"{URL} says that sign-in is at another host: {ISSUER}", err)

    def test_another_servers_page(self) -> None:
        """A server that sends the person to another one's sign-in page would get what that one grants: it is said."""
        self.assertNotIn("Warning", self.setup_with("y", "n")[2])
        self.pages[SERVER_PAGE]["authorization_endpoint"] = "https://honest.example/authorize"
        code, _, err = self.setup_with("y", "n")
        self.assertEqual((code, self.kept()), (1, []))
        self.assertIn("Warning: the sign-in page is at honest.example", " ".join(err.split()))

    def test_not_confirmed(self) -> None:
        """Nothing is registered, and no browser is sent anywhere, before the person has confirmed what was found."""
        code, _, err = self.setup_with("y", "n")
        self.assertEqual((code, self.urls, self.kept()), (1, _FOUND, []), err)
        self.assertEqual(self.reactor.tcpServers, [])

    def test_declared_issuer(self) -> None:
        """The issuer of the connector file was reviewed with it, so its metadata is asked for at once."""
        self.settings["issuer"] = ISSUER
        code, _, err = self.setup_with("y", "y")
        self.assertEqual((code, self.prompts[0]), (0, "Sign in there? [y/N] "), err)

    def test_registered_before(self) -> None:
        """A client of the file is used with its secret, which is asked for, on the port that it was registered for."""
        self.settings |= {"client_id": "mine", "token_endpoint_auth_method": "client_secret_post"}
        self.typed = ["y", "y", "canary-secret", "y"]
        code, out, err = self.command("binding", "setup", FQN, "--callback-port", "8765")
        self.assertEqual((code, _REGISTER in self.urls), (0, False), err)
        self.assertEqual(
            (self.query["client_id"], self.query["redirect_uri"]), ("mine", "http://127.0.0.1:8765/callback")
        )
        self.assertIn("client_secret=canary-secret", self.sent(_TOKEN))
        self.assert_nothing_left(out, err)

    def test_method_of_the_server(self) -> None:
        """A client of the file proves itself as the server wants it, if the file does not say how."""
        self.settings["client_id"] = "mine"
        self.pages[SERVER_PAGE]["token_endpoint_auth_methods_supported"] = ["private_key_jwt", "client_secret_basic"]
        self.typed = ["y", "y", "canary-secret", "y"]
        code, out, err = self.command("binding", "setup", FQN)
        self.assertEqual(code, 0, err)
        (sent,) = (each for each in self.requests if each.url == _TOKEN)
        self.assertIn(("Authorization", "Basic bWluZTpjYW5hcnktc2VjcmV0"), sent.headers)
        self.assert_nothing_left(out, err)

    def test_document(self) -> None:
        """A document about the client is its ID where the server reads such documents; nothing is registered."""
        self.settings["client_metadata_url"] = document = "https://me.example/client.json"
        self.pages[SERVER_PAGE]["client_id_metadata_document_supported"] = True
        code, _, err = self.setup_with("y", "y", "y")
        self.assertEqual((code, self.query["client_id"], document in self.urls), (0, document, False), err)
        self.assertNotIn(_REGISTER, self.urls)

    def test_asked(self) -> None:
        """Where no client can be had otherwise, the person is asked for one."""
        del self.pages[SERVER_PAGE]["registration_endpoint"]
        code, _, err = self.setup_with("y", "my-client", "y", "y")
        self.assertEqual((code, self.query["client_id"], "Register one there" in err), (0, "my-client", True), err)

    def test_registration_refused(self) -> None:
        """Another redirect URI than ours is a client of somebody else: nothing is opened, and nothing listens on."""
        self.pages[_REGISTER] = {"client_id": "new", "redirect_uris": ["https://evil.example/"]}
        code, _, err = self.setup_with("y", "y")
        self.assertEqual((code, "a different redirect URI" in err, self.kept()), (1, True, []))
        self.assertGreater(self.reactor.stopped, 0)

    def test_issuer_of_the_answer(self) -> None:
        """The browser's answer names the issuer exactly, where it names one or the server says that it does."""
        for names_itself, iss, fails in (
            (False, ISSUER, False),
            (False, "https://evil.example", True),
            (False, f"{ISSUER}/", True),
            (True, None, True),
            (True, ISSUER, False),
        ):
            self.pages[SERVER_PAGE]["authorization_response_iss_parameter_supported"] = names_itself
            self.requests.clear()

            def come(asked: dict[str, str], iss: str | None = iss) -> None:
                self.query = asked
                self.reactor.visit(f"/callback?code=canary-code&state={asked['state']}{f'&iss={iss}' if iss else ''}")
                self.reactor.visit("/callback")
                self.reactor.advance(0.2)

            self.comes = come
            code, _, err = self.setup_with("y", "y", "y")
            self.assertEqual((code, _TOKEN in self.urls), (1, False) if fails else (0, True), (iss, err))
            self.assertEqual("another authorization server than the one that you signed in at" in err, fails)

    def test_more_scopes(self) -> None:
        """What the service wanted beside is asked for at the next sign-in, with what was given."""
        state = {"status": "needs_you", "expires_at": None, "reason": "It wants more.", "wanted": ["read", "admin"]}
        self.site.answer("GET", PATH, lambda _: self.binding(state=state))
        self.typed = ["y", "y", "y"]
        code, _, err = self.command("binding", "renew", "oauth2/tracker/default")
        self.assertEqual((code, self.query["scope"]), (0, "read admin"), err)
        self.site.answer("GET", "/v1/bindings", {"items": [self.binding(state=state)]})
        listed = self.as_operator("binding", "list")[2]
        self.assertIn("It will ask for these scopes: read, admin", listed)
        self.assertIn("aileron credential renew oauth2/tracker/default", listed)

    def renew(self, *typed: str, **before: str) -> tuple[int, str]:
        """Sign in again for a credential that was given elsewhere, or where it is not known."""
        self.requests.clear()
        state = {"status": "ready", "expires_at": None, "reason": None, **before}
        self.site.answer("GET", PATH, lambda _: self.binding(state=state))
        self.typed = [*typed]
        self.prompts.clear()
        code, _, err = self.command("binding", "renew", "oauth2/tracker/default")
        return code, " ".join(err.split())

    def test_renewed_elsewhere(self) -> None:
        """Signing in again says that the authorization server changed, and asks before anything is sent there."""
        code, err = self.renew("n", issuer="https://old.example", token_url="https://old.example/token")
        self.assertEqual((code, self.urls, self.prompts), (1, _FOUND[:2], ["Contact that host? [y/N] "]), err)
        changed = f"the authorization server changed since you signed in. Before: https://old.example. Now: {ISSUER}."
        self.assertIn(f"Warning: {changed}", err)
        self.settings["issuer"] = ISSUER  # of the file, which names the host
        self.assertEqual(self.renew("n", issuer="https://old.example", token_url=_TOKEN)[0], 1)
        self.assertEqual(self.prompts, ["Contact that host? [y/N] "])
        self.assertEqual(self.kept(f"{PATH}/replace"), [])

    def test_renewed_with_another_token_endpoint(self) -> None:
        """Another token endpoint of the same server is told before the person signs in there."""
        code, err = self.renew("y", "n", issuer=ISSUER, token_url="https://old.example/token")
        self.assertEqual((code, self.urls), (1, _FOUND), err)
        self.assertIn(
            f"the token endpoint changed since you signed in. Before: https://old.example/token. Now: {_TOKEN}.", err
        )

    def test_renewed_unknown(self) -> None:
        """Where it cannot be told where the person signed in before, that is said."""
        code, err = self.renew("n")
        self.assertEqual((code, "where you signed in before cannot be told" in err), (1, True), err)

    def test_renewed_there(self) -> None:
        """Signing in again at the same place warns of nothing."""
        code, err = self.renew("y", "y", "y", issuer=ISSUER, token_url=_TOKEN)
        self.assertEqual((code, "Warning" in err), (0, False), err)

    def test_no_device(self) -> None:
        """A sign-in on another device needs its address in the connector file, and asks nobody without."""
        self.typed = []
        code, _, err = self.command("binding", "setup", FQN, "--device")
        self.assertEqual((code, self.urls, "device_url" in err), (1, [], True))
