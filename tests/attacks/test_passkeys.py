"""Pages at a neighbouring name or port, for which the browser has the passkey sign: only the daemon refuses that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.threads import deferToThread

from aileron.client import Connections, item_of
from aileron.model.signing import challenge_of, write_sign_in, write_statement
from tests.attacks.test_operator_door import SIBLING
from tests.functional.browser import Browser, come
from tests.functional.chromium import Page
from tests.functional.commands import fork_daemons
from tests.functional.loopback import LoopbackSite, Neighbour
from tests.functional.operated import kinds
from tests.functional.passkeyed import PasskeyTestCase

_CALL = """import("/static/key.js").then(({ call }) => call(%s, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: %s }))
  .then(async (answer) => [answer.status, await answer.json()])"""
_RAISE = "/v1/operator/raise"
_SHORT_SECONDS = 8.0
_SHORT = f"import aileron.vault._logins as logins\nlogins.IDLE_SECONDS = {_SHORT_SECONDS}\n"
# Has the passkey sign, as passkey.js does; or the name of the browser's error.
_SIGN = """(async ({ rpId, challenge, ids, userVerification }) => {
  const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const text = (data) => btoa(String.fromCharCode(...new Uint8Array(data)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const allowCredentials = ids.map((id) => ({ id: bytes(id), type: "public-key" }));
  const publicKey = { rpId, challenge: bytes(challenge), allowCredentials, userVerification };
  try {
    const { id, type, response } = await navigator.credentials.get({ publicKey });
    const names = ["clientDataJSON", "authenticatorData", "signature"];
    const written = Object.fromEntries(names.map((name) => [name, text(response[name])]));
    return { id, rawId: id, type, response: written, clientExtensionResults: {} };
  } catch (error) {
    return error.name;
  }
})(%s)"""


class SigningElsewhereCase(PasskeyTestCase):
    """A user with a passkey, whose browser also shows pages of another site."""

    page: Page
    authenticator: str

    async def begin(self) -> None:
        """Have a passkey, and serve the other site."""
        await super().begin()
        self.page, self.authenticator = await self.furnished()
        await self.added(self.page)
        site = LoopbackSite.listen(self.reactor, Neighbour())
        self.finally_(site.stop)
        self.port = urlsplit(site.url).port

    async def post(self, path: str, body: object) -> tuple[int, Mapping[str, Any]]:
        """The answer to a signed request of the user's own page."""
        await self.page.open(f"{self.url}/approvals")
        await self.page.until("document.querySelector('main h1') !== null")
        status, told = await self.page.evaluate(_CALL % (json.dumps(path), json.dumps(json.dumps(body))))
        return status, told

    async def sign_at(
        self, site: str, challenge: str, options: Mapping[str, Any], verification: str = "required"
    ) -> Any:
        """What the passkey signs for a page of this site, or the name of the browser's error."""
        await self.page.open(site)
        await self.page.until(f"location.origin === {json.dumps(site)}")
        ids = [each["id"] for each in options["allowCredentials"]]
        asked = {"rpId": options["rpId"], "challenge": challenge, "ids": ids, "userVerification": verification}
        return await self.page.evaluate(_SIGN % json.dumps(asked))


class NeighbourTests(SigningElsewhereCase):
    """Another page that knows a challenge of the daemon's for a decision."""

    run_id: str

    async def begin(self) -> None:
        """Require the passkey, and ask for something."""
        await super().begin()
        await self.operator("passkey", "require", "--all")
        self.run_id = await self.ask()

    async def decide_at(self, site: str, *, as_sign_in: bool = False) -> tuple[int, Mapping[str, Any]]:
        """Have the passkey sign an approval at a site, and send it in the user's name."""
        shown = json.loads((await self.operator("approval", "show", self.run_id, "--json")).stdout)
        decision = {"approved": True, "digest": shown["digest"]}
        status, offered = await self.post("/v1/operator/passkeys/ask", {})
        self.assertEqual(status, 200, offered)
        instance, nonce = offered["instance"], offered["nonce"]
        statement = write_statement(instance, nonce, [item_of(self.run_id, decision)])
        signed = write_sign_in(instance, nonce, "code", "key") if as_sign_in else statement
        credential = await self.sign_at(site, challenge_of(signed), offered["options"])
        self.assertIsInstance(credential, dict, "the browser refused: this shows nothing")
        body = {**decision, "signed": {"statement": statement, "credential": credential}}
        return await self.post(f"/v1/action-approvals/{self.run_id}/decide", body)

    async def assert_refused(self, site: str, *, as_sign_in: bool = False) -> None:
        """The browser signs there, the daemon refuses, and nothing was decided."""
        status, told = await self.decide_at(site, as_sign_in=as_sign_in)
        self.assertEqual((status, told["error"]["details"]), (403, {"passkey": True}))
        self.assertEqual((await self.outcome(self.run_id))[0], "pending_approval")

    async def test_neighbours(self) -> None:
        """At a name beside ours, and at our name with another port, the browser signs: the daemon refuses that."""
        host = urlsplit(self.url).hostname
        for name in (SIBLING, f"x.{host}", str(host)):
            await self.assert_refused(f"http://{name}:{self.port}")
        elsewhere = await self.sign_at(f"http://127.0.0.1:{self.port}", "AAAA", await self.options())
        self.assertEqual(elsewhere, "SecurityError")
        status, told = await self.decide_at(self.url)
        self.assertEqual(status, 200, told)

    async def test_sign_in(self) -> None:
        """What was signed to log a browser in is no decision, also at our own page."""
        await self.assert_refused(self.url, as_sign_in=True)

    async def options(self) -> Mapping[str, Any]:
        """The options of the daemon's, for no decision."""
        options: Mapping[str, Any] = (await self.post("/v1/operator/passkeys/ask", {}))[1]["options"]
        return options


class RaiseTests(SigningElsewhereCase):
    """A page that only watches since its login lapsed, and touches that were not meant to let it decide again."""

    def confine(self) -> None:
        """Have each login lapse after some seconds."""
        fork_daemons(_SHORT)

    async def begin(self) -> None:
        """Have the login lapse."""
        await super().begin()
        await self.page.open(f"{self.url}/approvals")
        await self.page.until("document.documentElement.dataset.raise === 'passkey'", 60)

    async def asked(self) -> Mapping[str, Any]:
        """What the page hands to the passkey."""
        status, told = await self.post(f"{_RAISE}/ask", {})
        self.assertEqual(status, 200, told)
        return told

    async def send(self, nonce: str, credential: object) -> tuple[int, Mapping[str, Any]]:
        """What the daemon answers to the page that sends an answer of the passkey."""
        self.assertIsInstance(credential, dict, "the browser refused: this shows nothing")
        return await self.post(_RAISE, {"nonce": nonce, "credential": credential})

    async def assert_refused(self, nonce: str, credential: object) -> None:
        """The answer of the passkey raises nothing."""
        status, told = await self.send(nonce, credential)
        self.assertEqual((status, told["error"]["details"]), (403, {"passkey": True}))
        await self.assert_watches()

    async def assert_watches(self) -> None:
        """The page may not decide."""
        status, told = await self.post("/v1/resume", {})
        self.assertEqual((status, told["error"]["class"]), (401, "login_lapsed"))
        self.assertNotIn("operator.login_raised", kinds(await self.audit()))

    async def sign(self, told: Mapping[str, Any], site: str = "", verification: str = "required") -> Any:
        """What the passkey signs of what was asked, at a site, or at our own."""
        return await self.sign_at(site or self.url, told["options"]["challenge"], told["options"], verification)

    async def test_neighbours(self) -> None:
        """Relayed from a name beside ours, or our name at another port, and sent twice."""
        host = urlsplit(self.url).hostname
        for name in (SIBLING, f"x.{host}", str(host)):
            told = await self.asked()
            await self.assert_refused(told["nonce"], await self.sign(told, f"http://{name}:{self.port}"))
        told = await self.asked()
        credential = await self.sign(told)
        self.assertEqual((await self.send(told["nonce"], credential))[0], 200)
        self.assertEqual((await self.send(told["nonce"], credential))[0], 403, "it decides already")
        await self.page.until("document.documentElement.dataset.raise === 'passkey'", 60)
        status, refused = await self.send(told["nonce"], credential)
        self.assertEqual((status, refused["error"]["details"]), (403, {"passkey": True}))

    async def test_not_verified(self) -> None:
        """A changed page that asks for no verification of the person, while a stranger has the authenticator."""
        told = await self.asked()
        await self.page.call("WebAuthn.setUserVerified", authenticatorId=self.authenticator, isUserVerified=False)
        await self.assert_refused(told["nonce"], await self.sign(told, verification="discouraged"))

    async def test_other_page(self) -> None:
        """Another browser that watches, which relays the answer, or has the user's page show its own prompt."""
        other = await self.watch()
        told = await self.asked()
        body = {"nonce": told["nonce"], "credential": await self.sign(told)}
        status, refused = await deferToThread(other.ask, f"{self.url}{_RAISE}", body)
        self.assertEqual((status, refused["error"]["details"]), (403, {"passkey": True}))
        status, theirs = await deferToThread(other.ask, f"{self.url}{_RAISE}/ask", {})
        self.assertEqual(status, 200, theirs)
        await self.assert_refused(theirs["nonce"], await self.sign(theirs))

    async def watch(self) -> Browser:
        """Another browser, whose login has lapsed too."""
        connections = Connections(self.reactor)
        try:
            operator = connections.operator(self.url, await self.operator_token())
            code = (await operator.post("operator", "handover"))["code"]
            browser = await deferToThread(come, f'action="{self.url}/handover" name="code" value="{code}"')
            assert isinstance(browser, Browser)
            await operator.post("operator", "handover", "confirm", body={"words": await deferToThread(browser.words)})
        finally:
            await connections.close()
        await self.pause(_SHORT_SECONDS + 1)
        return browser

    async def test_removed(self) -> None:
        """A passkey that was removed between prompt and answer; then `vault lock`."""
        told = await self.asked()
        credential = await self.sign(told)
        listed = json.loads((await self.operator("passkey", "list", "--json")).stdout)["items"]
        await self.operator("passkey", "remove", listed[0]["id"])
        await self.assert_refused(told["nonce"], credential)
        await self.command("vault", "lock")
        for path, body in ((f"{_RAISE}/ask", {}), (_RAISE, {"nonce": told["nonce"], "credential": credential})):
            _status, refused = await self.post(path, body)
            self.assertEqual(refused["error"]["class"], "vault_locked", path)
        await self.assert_watches()
