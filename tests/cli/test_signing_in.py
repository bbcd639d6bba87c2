"""Signing in on the command line: what is asked, shown and confirmed, and that nothing else is kept."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar
from urllib.parse import parse_qs

import attrs
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from aileron.cli.context import CliContext, Links
from aileron.cli.vault import operator
from aileron.client import OperatorLogin
from aileron.credentials import TokenAnswer, TokenExchange, TokenRequest
from aileron.model.errors import NetworkError
from tests.cli.callback import CallbackReactor
from tests.cli.daemon import TOKEN, ServedCase
from tests.cli.test_binding import binding

T = TypeVar("T")
FQN, NAME = "local://me/tracker", "oauth2/tracker/default"
PATH = "/v1/bindings/oauth2%2Ftracker%2Fdefault"
TOKENS = {"access_token": "canary-access", "refresh_token": "canary-refresh", "expires_in": 3600}
CODE = "canary-code"
SETTINGS = {
    "authorize_url": "https://login.example/authorize",
    "token_url": "https://login.example/token",
    "scopes": "read write",
}
_FILE = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = { default = "https://api.example", bindable = false }
hosts = ["api.example:443"]

[credential]
kind = "oauth2"

[operations.look]
effect = "read"
method = "GET"
path = "/"
"""


def scope(settings: dict[str, str]) -> dict[str, Any]:
    """The scope of a connector whose file has these settings."""
    return {
        "hosts": ["api.example:443"],
        "base_url": "https://api.example",
        "header": "Authorization",
        "format": "Bearer {key}",
        "settings": settings,
    }


class SigningInCase(ServedCase):
    """A person with a browser, and an authorization server.

    :ivar settings: of the connector.
    :ivar answers: of the token endpoint, in order.
    :ivar comes: how the browser comes back, given the query of the page that it was sent to.
    """

    def setUp(self) -> None:
        super().setUp()
        self.settings = dict(SETTINGS)
        self.answers: list[dict[str, Any] | Exception] = [dict(TOKENS)]
        self.asked: list[dict[str, str]] = []
        self.avoided: list[int] = []
        self.reactor = CallbackReactor()
        self.comes: Callable[[dict[str, str]], object] = self.come_back
        self.prompts: list[str] = []
        (self.home.connectors / "tracker.toml").write_text(_FILE)
        (self.home.connectors / "tracker.toml").chmod(0o600)
        self.site.answer("POST", "/v1/bindings/target", lambda _: {"connector": FQN, "scope": scope(self.settings)})
        self.site.answer("POST", "/v1/bindings/setup", lambda _: self.binding())
        self.site.answer("POST", f"{PATH}/replace", lambda _: self.binding())
        self.site.answer("GET", PATH, lambda _: self.binding())
        self.patch(operator, "login_from_child", self.log_in)

    def binding(self, **changed: Any) -> dict[str, Any]:
        """It as the daemon shows it."""
        mine = {"name": NAME, "connector": FQN, "kind": "oauth2"}
        state = {"status": "ready", "expires_at": None, "reason": None, "token_url": SETTINGS["token_url"]}
        return binding(**mine, scope=scope(self.settings), in_force=scope(self.settings), state=state) | changed

    def log_in(self, _cli: object, _url: str, _descriptor: object) -> OperatorLogin:
        """What the child does."""
        self.site.logins.append(TOKEN)
        return OperatorLogin(TOKEN)

    def cli_context(self) -> CliContext:
        """The same with a network, and a clock that stands still."""
        return attrs.evolve(
            super().cli_context(),
            drive=self.drive,
            reactor=lambda: self.reactor,
            exchange=self.exchange,
            ask=self.ask,
            wall=lambda: 1_700_000_000.0,
        )

    def ask(self, prompt: str) -> str:
        """Answer a question."""
        self.prompts.append(prompt)
        return self.typed.pop(0)

    def exchange(self, own_ports: Collection[int]) -> TokenExchange:
        """Reach the authorization server."""
        self.avoided = list(own_ports)

        async def ask(asked: TokenRequest) -> TokenAnswer:
            self.asked.append({name: value for name, (value,) in parse_qs((asked.body or b"").decode()).items()})
            given = self.answers.pop(0)
            if isinstance(given, Exception):
                raise given
            return TokenAnswer(400 if "error" in given else 200, json.dumps(given).encode())

        return ask

    def drive(self, work: Callable[[Links], Awaitable[T]]) -> T:
        """Run it, with the browser coming as soon as it is waited for."""

        async def whole() -> T:
            return await work(self.site)

        ended: list[T | Failure] = []
        Deferred.fromCoroutine(whole()).addBoth(ended.append)
        if not ended:
            (page,) = (self.home.root / "run").glob("open-*.html")
            query = re.findall(r"authorize\?([^\"]+)", page.read_text())[0].replace("&amp;", "&")
            self.comes({name: value for name, (value,) in parse_qs(query, strict_parsing=True).items()})
        self.assertTrue(ended, "the command waits for ever")
        if isinstance(ended[0], Failure):
            ended[0].raiseException()
        return ended[0]

    def come_back(self, asked: dict[str, str]) -> None:
        """Come back with a code, as a browser does."""
        self.query = asked
        self.reactor.visit(f"/callback?code={CODE}&state={asked['state']}")
        self.reactor.visit("/callback")
        self.reactor.advance(0.2)

    def setup_with(self, *typed: str) -> tuple[int, str, str]:
        """Bind the connector, answering so."""
        self.typed = list(typed)
        found = self.command("binding", "setup", FQN)
        self.assertEqual(self.site.logins, [], "a login is left")
        return found

    def kept(self, path: str = "/v1/bindings/setup") -> list[Any]:
        """What was sent to be kept."""
        return [json.loads(each["secret"]) for each in self.site.bodies("POST", path)]

    def assert_nothing_left(self, *texts: str) -> None:
        """No token, code or verifier is in these texts, and no file with the state is left."""
        verifiers = [each["code_verifier"] for each in self.asked if "code_verifier" in each]
        for canary in ("canary-access", "canary-refresh", CODE, "canary-secret", *verifiers):
            for text in texts:
                self.assertNotIn(canary, text)
        self.assertEqual(list((self.home.root / "run").glob("open-*")), [])


class BrowserTests(SigningInCase):
    def test_setup(self) -> None:
        """The browser brings a code, which is exchanged with its verifier; what came of it is confirmed, then kept."""
        code, out, err = self.setup_with("my-client", "y")
        self.assertEqual((code, f"{NAME} is bound to {FQN}." in out), (0, True), err)
        (kept,) = self.kept()
        self.assertEqual((kept["access_token"], kept["refresh_token"]), ("canary-access", "canary-refresh"))
        self.assertEqual(
            (kept["grant"], kept["client_id"], kept["scopes"]),
            (*("authorization_code", "my-client"), ["read", "write"]),
        )
        (asked,) = self.asked
        self.assertEqual((asked["code"], asked["redirect_uri"]), (CODE, "http://127.0.0.1:4711/callback"))
        self.assertNotIn("client_secret", asked)
        self.assertEqual(self.query["redirect_uri"], asked["redirect_uri"])
        self.assertEqual(self.avoided, [9, 8])
        self.assertIn("read, write", err)
        self.assert_nothing_left(out, err)

    def test_needed_scopes(self) -> None:
        """Only the scopes that the daemon says are needed are asked for, though it is sealed for all."""
        target = {"connector": FQN, "scope": scope(self.settings), "scopes": ["read"]}
        self.site.answer("POST", "/v1/bindings/target", target)
        self.answers = [{**TOKENS, "scope": "read"}]
        code, _, err = self.setup_with("my-client", "y")
        self.assertEqual((code, self.query["scope"], self.kept()[0]["scopes"]), (0, "read", ["read"]), err)
        self.assertNotIn("Not given", err)

    def test_account(self) -> None:
        """Who signed in is shown before it is confirmed, and kept beside the credential, unless a name was given."""
        self.settings["account"] = "owner.email"
        self.answers = [{**TOKENS, "owner": {"email": "ada@example.org"}}]
        code, _, err = self.setup_with("my-client", "y")
        self.assertEqual((code, "Account: ada@example.org\n" in err), (0, True), err)
        self.answers = [{**TOKENS, "owner": {"email": "ada@example.org"}}]
        self.typed = ["my-client", "y"]
        self.assertEqual(self.command("binding", "setup", FQN, "--account", "mine")[0], 0)
        accounts = [each["account"] for each in self.site.bodies("POST", "/v1/bindings/setup")]
        self.assertEqual(accounts, ["ada@example.org", "mine"])

    def test_not_confirmed(self) -> None:
        """Without a yes nothing is kept."""
        code, out, err = self.setup_with("my-client", "")
        self.assertEqual((code, self.kept(), "Nothing was saved" in err), (1, [], True))
        self.assert_nothing_left(out, err)

    def test_confidential(self) -> None:
        """A client that is confidential is asked for its secret, which is shown nowhere."""
        self.settings["token_endpoint_auth_method"] = "client_secret_post"
        code, out, err = self.setup_with("my-client", "canary-secret", "y")
        self.assertEqual((code, self.asked[0]["client_secret"]), (0, "canary-secret"), err)
        self.assertEqual(self.kept()[0]["client_secret"], "canary-secret")
        self.assert_nothing_left(out, err)

    def test_port(self) -> None:
        """A fixed port is listened on where the client has a fixed redirect URI."""
        self.typed = ["my-client", "y"]
        code, _, err = self.command("binding", "setup", FQN, "--callback-port", "8765")
        self.assertEqual((code, self.query["redirect_uri"]), (0, "http://127.0.0.1:8765/callback"), err)

    def test_fewer(self) -> None:
        """Scopes that were not given, and a missing refresh token, are said before it is confirmed."""
        self.answers = [{"access_token": "canary-access", "scope": "read"}]
        code, _, err = self.setup_with("my-client", "y")
        self.assertEqual(code, 0, err)
        self.assertIn("Not given, although the connector asks for them: write.", err)
        self.assertIn("no refresh token", err)
        self.assertEqual(self.kept()[0]["scopes"], ["read"])

    def test_refused(self) -> None:
        """A refusal is told in the service's words, made visible; nothing is kept or exchanged."""

        def refuse(asked: dict[str, str]) -> None:
            self.reactor.visit(f"/callback?error=access_denied&error_description=No%1b[2J&state={asked['state']}")
            self.reactor.visit("/callback")
            self.reactor.advance(0.2)

        self.comes = refuse
        code, out, err = self.setup_with("my-client")
        self.assertEqual((code, self.asked, self.kept()), (1, [], []))
        self.assertIn("access_denied (No", err)
        self.assertNotIn("\x1b", err)
        self.assert_nothing_left(out, err)

    def test_wrong_callbacks(self) -> None:
        """A callback with another state changes nothing; one of another issuer ends it without an exchange."""

        def first_wrong(asked: dict[str, str]) -> None:
            self.assertEqual(self.reactor.visit(f"/callback?code=evil&state={asked['state'][:-1]}~")[0], 400)
            self.come_back(asked)

        self.comes = first_wrong
        self.assertEqual(self.setup_with("my-client", "y")[0], 0)
        self.assertEqual([each["code"] for each in self.asked], [CODE])

        def other_issuer(asked: dict[str, str]) -> None:
            self.reactor.visit(f"/callback?code={CODE}&state={asked['state']}&iss=https://evil.example")
            self.reactor.visit("/callback")
            self.reactor.advance(0.2)

        self.comes, self.asked = other_issuer, []
        code, _, err = self.setup_with("my-client", "y")
        self.assertEqual((code, self.asked, "another authorization server" in err), (1, [], True))

    def test_late(self) -> None:
        """Who does not come within five minutes is told so."""
        self.comes = lambda _: self.reactor.advance(300)
        code, out, err = self.setup_with("my-client")
        self.assertEqual((code, "within 5 minutes" in err), (1, True))
        self.assert_nothing_left(out, err)

    def test_exchange_fails(self) -> None:
        """A token endpoint that refuses, or is not reached, leaves nothing behind but its reason."""
        for answer, words in (({"error": "invalid_grant"}, "invalid_grant"), (NetworkError("Gone."), "Gone.")):
            self.answers = [answer]
            code, out, err = self.setup_with("my-client")
            self.assertEqual((code, words in err, self.kept()), (1, True, []), err)
            self.assert_nothing_left(out, err)

    def test_no_client(self) -> None:
        """Without a client ID nothing is begun."""
        self.assertEqual(self.setup_with("  ")[0], 1)
        self.assertEqual(self.reactor.tcpServers, [])


class OwnTests(SigningInCase):
    def test_setup(self) -> None:
        """A client that asks for itself proves at once that its secret is right."""
        del self.settings["authorize_url"]
        code, out, err = self.setup_with("my-client", "canary-secret", "y")
        self.assertEqual(code, 0, err)
        (asked,) = self.asked
        self.assertEqual((asked["grant_type"], asked["scope"]), ("client_credentials", "read write"))
        self.assertEqual(self.kept()[0]["grant"], "client_credentials")
        self.assertNotIn("no refresh token", err)
        self.assert_nothing_left(out, err)

    def test_wrong_secret(self) -> None:
        """One whose secret is wrong is not kept."""
        del self.settings["authorize_url"]
        self.answers = [{"error": "invalid_client"}]
        code, _, err = self.setup_with("my-client", "canary-secret")
        self.assertEqual((code, "invalid_client" in err, self.kept()), (1, True, []))

    def test_nowhere(self) -> None:
        """Where the file does not say where to sign in, it is said how else a credential is entered."""
        self.settings = {}
        code, _, err = self.setup_with("my-client")
        self.assertEqual((code, "--secret-fd" in err, self.prompts), (1, True, []))

    def test_by_descriptor(self) -> None:
        """What was obtained elsewhere is still taken from a descriptor, without a browser."""
        self.secret = lambda _prompt, descriptor: json.dumps({"given": descriptor})
        code, _, err = self.as_operator("binding", "setup", FQN, "--secret-fd", "7")
        self.assertEqual((code, self.kept(), self.reactor.tcpServers), (0, [{"given": 7}], []), err)


class DeviceTests(SigningInCase):
    def setUp(self) -> None:
        super().setUp()
        self.settings["device_url"] = "https://login.example/device"
        self.now, self.pauses = 0.0, list[float]()
        self.answers = [
            {
                "device_code": "canary-code",
                "user_code": "ABCD\x1b",
                "verification_uri": "https://login.example/d",
                "expires_in": 60,
            }
        ]

    def cli_context(self) -> CliContext:
        """The same with time that passes."""

        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)
            self.now += seconds

        return attrs.evolve(super().cli_context(), pause=pause, seconds=lambda: self.now)

    def sign_in(self, *typed: str) -> tuple[int, str, str]:
        """Bind it by another device."""
        self.typed = list(typed)
        return self.command("binding", "setup", FQN, "--device")

    def test_setup(self) -> None:
        """Page and code are shown; it is asked at the service's pace, through a fault, until the person is done."""
        self.answers += [
            {"error": "authorization_pending"},
            {"error": "slow_down"},
            NetworkError("Gone."),
            dict(TOKENS),
        ]
        code, out, err = self.sign_in("my-client", "y")
        self.assertEqual((code, self.pauses), (0, [5, 5, 10, 10]), err)
        self.assertIn("https://login.example/d", err)
        self.assertIn("ABCD", err)
        self.assertNotIn("\x1b", err)
        self.assertEqual(self.kept()[0]["grant"], "device_code")
        self.assertEqual(self.reactor.tcpServers, [])
        self.assert_nothing_left(out, err)

    def test_over(self) -> None:
        """A person who says no, or nothing in time, leaves nothing."""
        begun = self.answers[0]
        self.answers += [{"error": "access_denied"}]
        code, _, err = self.sign_in("my-client")
        self.assertEqual((code, "access_denied" in err), (1, True))
        self.answers = [begun, *({"error": "authorization_pending"} for _ in range(12))]
        code, _, err = self.sign_in("my-client")
        self.assertEqual((code, "not entered in time" in err, self.answers), (1, True, []))
        self.assertEqual(self.kept(), [])

    def test_not_there(self) -> None:
        """Where the service has no such thing it is said before anything is asked."""
        del self.settings["device_url"]
        code, _, err = self.sign_in()
        self.assertEqual((code, "device_url" in err), (1, True))


class RenewTests(SigningInCase):
    def renew(self, *typed: str, name: str = NAME) -> tuple[int, str, str]:
        """Sign in again."""
        self.typed = list(typed)
        return self.command("binding", "renew", name)

    def test_renew(self) -> None:
        """Signing in again replaces what the same binding keeps."""
        code, out, err = self.renew("my-client", "y")
        self.assertEqual((code, "can be used" in out), (0, True), err)
        self.assertEqual([each["access_token"] for each in self.kept(f"{PATH}/replace")], ["canary-access"])
        self.assertEqual(self.kept(), [])
        self.assert_nothing_left(out, err)

    def test_another_token_endpoint(self) -> None:
        """Where the connector file names another token endpoint than before, that is said and asked about."""
        self.settings["token_url"] = "https://new.example/token"
        code, _, err = self.renew("my-client", "n")
        self.assertEqual((code, self.prompts[-1], self.asked), (1, "Sign in there? [y/N] ", []))
        said = (
            f"the token endpoint changed since you signed in. Before: {SETTINGS['token_url']}. Now: https://new.example"
        )
        self.assertIn(said, " ".join(err.split()))
        self.assertEqual(self.renew("my-client", "y", "y")[0], 0)

    def test_another_account(self) -> None:
        """Signing in as somebody else is said before it is confirmed."""
        self.settings["account"] = "owner"
        for account, warns in (("ada@example.org", False), ("eve@example.org", True)):
            self.site.answer("GET", PATH, self.binding(account="ada@example.org"))
            self.answers = [{**TOKENS, "owner": account}]
            _, _, err = self.renew("my-client", "")
            self.assertEqual("This is another account than before: ada@example.org" in err, warns, err)

    def test_not_for_that(self) -> None:
        """A key is replaced, and one that no longer fits is rebound first: nobody signs in for them."""
        for changed, words in (({"scope": scope({})}, "credential replace"), ({"fits": False}, "credential rebind")):
            self.site.answer("GET", PATH, self.binding(**changed))
            code, _, err = self.renew()
            self.assertEqual((code, words in err, self.prompts), (1, True, []), err)

    def test_named(self) -> None:
        """Where a credential needs the person, or was given less than its connector asks for, the command is named."""
        reasons = {"needs_you": "It has expired.", "ready": "It was not given: write."}
        for status, shown in (("needs_you", "needs you"), ("ready", "limited")):
            state = {"status": status, "expires_at": None, "reason": reasons[status]}
            self.site.answer("GET", "/v1/bindings", {"items": [self.binding(state=state)]})
            _, out, err = self.as_operator("binding", "list")
            self.assertIn(shown, out)
            self.assertIn(f"aileron credential renew {NAME}", err)
            self.assertIn(reasons[status], err)
        self.settings = {}
        self.site.answer("GET", "/v1/bindings", {"items": [self.binding(state=state)]})
        self.assertIn(f"aileron credential replace {NAME}", self.as_operator("binding", "list")[2])
