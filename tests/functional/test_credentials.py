"""A credential of an authorization server that rotates its tokens: renewed, through faults and kills, or told aloud."""

import json
import re
from typing import Any

from twisted.internet.defer import Deferred

from tests.functional import canary, slack
from tests.functional.authorization import AuthorizationServer, Grants
from tests.functional.operated import CONNECTOR, GATED, PASSPHRASE, UNGATED, OperatedTestCase
from tests.functional.reactor import until

NAME = "oauth2/slack/default"
_NEEDS = {"status": "needs_you", "expires_at": None, "surplus": None}
_REFUSED = "The authorization server refused to renew it (invalid_grant)."


class OAuth2TestCase(OperatedTestCase):
    """The service takes the access token that the server gave out last, and no other."""

    def setUp(self) -> None:
        """Start the server."""
        super().setUp()
        self.server = AuthorizationServer.listen(self.reactor, self._accept)
        self.finally_(self.server.stop)

    def _accept(self, token: str) -> None:
        self.workspace.token = token

    @property
    def grants(self) -> Grants:
        """What the server knows."""
        return self.server.grants

    async def begin(self) -> Any:
        """A home whose connector wants such a credential, which is bound; a session."""
        await self.operator("vault", "init")
        self.write_connector()
        await self.add_actions()
        await self.bind_document()
        return await self.session()

    async def bind_document(self) -> None:
        """Bind what was obtained elsewhere."""
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": self.server.document()}
        setup = ("binding", "setup", CONNECTOR)
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)

    def write_connector(self, more: str = "") -> None:
        """Have the connector say that its credential is one.

        :param more: further keys of the credential.
        """
        super().write_connector()
        path = self.state.connectors / "slack.toml"
        kind = f'kind = "oauth2"\ntoken_url = "{self.server.token_url}"\n{more}'
        changed = re.sub('(?m)^kind = "api_key".*$', kind, path.read_text())
        path.write_text(changed)

    async def post(self, session: Any, wait: int = 30) -> Any:
        """Run the ungated action."""
        return await self.run_action(session, UNGATED, wait=wait)

    async def replace(self, document: str | None = None) -> None:
        """Enter a document; L{None}: what a fresh sign-in would give."""
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": document or self.server.document()}
        replacing = ("binding", "replace", NAME)
        self._expect(await self.command_line.run(replacing, self.home.environment(), fed, self.confine), 0)

    async def run_state(self, run_id: str, state: str) -> Any:
        """The run, as soon as it is in that state."""
        run = await self.told("runs", "show", run_id)
        for _ in range(100):
            if run["state"] == state:
                break
            await self.pause(0.1)
            run = await self.told("runs", "show", run_id)
        self.assertEqual(run["state"], state)
        return run

    async def state_of_it(self) -> Any:
        """What the binding says of itself."""
        (binding,) = (await self.told("binding", "list"))["items"]
        return binding["state"]

    def assert_nowhere(self) -> None:
        """No token, old or new, and no client's secret is in any file."""
        for secret in (self.grants.secret, *self.grants.given, *self.grants.asked):
            self.assertEqual(canary.in_files(self.home.aileron, secret), [])


class RenewalTests(OAuth2TestCase):
    """A daemon that lives."""

    async def test_rotation(self) -> None:
        """Each token is used until it runs out, and each refresh token once; nothing of them is in any file."""
        session = await self.begin()
        for _ in range(2):
            self.assertEqual((await self.post(session)).status, 200)
        self.assertEqual(len(self.grants.asked), 1)
        self.grants.seconds = 30  # so that each is due as soon as it is given
        await self.replace()
        for _ in range(3):
            self.assertEqual((await self.post(session)).status, 200)
        self.assertEqual(len(set(self.grants.asked)), 4)
        self.assertEqual((await self.state_of_it())["status"], "ready")
        self.assert_nowhere()

    async def test_faults(self) -> None:
        """A server that is busy, unreachable or out of its mind for a while costs time, and nothing that is kept."""
        session = await self.begin()
        self.grants.next = ["busy", "drop", "garbage"]
        posted = await self.post(session, 60)
        self.assertEqual(posted.status, 200, posted.text)
        self.assertEqual((len(self.grants.asked), len(set(self.grants.asked))), (4, 1))
        self.assertEqual(await self.audit("--type", "binding.needs_you"), [])

    async def test_needs_you(self) -> None:
        """When it ends, an approved run waits, the operator is told, and another secret lets it go on."""
        session = await self.begin()
        self.grants.next = ["gone"]
        asked = (await self.run_action(session, GATED)).body["approval_id"]
        await self.approve(asked, "--wait", "0")
        await self.run_state(asked, "awaiting_credential")
        state = await self.state_of_it()
        self.assertTrue(state.pop("token_url").endswith("/token"))
        self.assertEqual(state, {**_NEEDS, "reason": _REFUSED})
        (told,) = await self.audit("--type", "binding.needs_you")
        self.assertEqual(told["payload"]["reason"], f"{NAME}: {_REFUSED}")
        refused = await self.post(session)
        self.assertEqual((refused.status, refused.body["error"]["class"]), (412, "binding_failed"))
        await self.kill_daemon()
        await self.unlock()
        await self.run_state(asked, "awaiting_credential")
        await self.replace()
        await self.posted(1)
        await self.run_state(asked, "completed")
        self.assert_nowhere()

    async def test_refused_for_good(self) -> None:
        """A token that nothing renews ends with the third 401: the binding says so, and nothing more is sent."""
        session = await self.begin()
        kept = json.loads(self.server.document())
        del kept["refresh_token"]
        self.workspace.token = "canary"
        self.workspace.next = [slack.Behaviour(applied=False, status=401, error="token_revoked") for _ in range(3)]
        await self.replace(json.dumps({**kept, "access_token": self.workspace.token}))
        for _ in range(3):
            self.assertEqual((await self.state_of_it())["status"], "ready")
            await self.post(session)
        state = await self.state_of_it()
        self.assertEqual((state["status"], self.workspace.posts()), ("needs_you", 3))
        (told,) = await self.audit("--type", "binding.needs_you")
        self.assertEqual(told["payload"]["reason"], f"{NAME}: {state['reason']}")
        refused = await self.post(session)
        self.assertEqual((refused.status, refused.body["error"]["class"]), (412, "binding_failed"))
        self.assertEqual(self.workspace.posts(), 3)
        await self.replace()
        self.assertEqual((await self.post(session)).status, 200)


class KilledTests(OAuth2TestCase):
    """A daemon that is killed with -9 while a token is renewed."""

    async def killed(self, session: Any, at_point: Any) -> None:
        """Begin a run, kill the daemon once C{at_point} says so, and start another."""
        begun: Deferred[Any] = Deferred.fromCoroutine(self.post(session, 60))
        begun.addErrback(lambda _: None)
        await until(self.reactor, at_point, 30, "the point to kill at")
        await self.kill_daemon()
        await begun
        await self.unlock()

    async def test_before_the_answer(self) -> None:
        """A server that had not rotated yet is asked again with the same token."""
        session = await self.begin()
        self.grants.next = ["held before"]
        await self.killed(session, lambda: self.grants.asked)
        self.assertEqual((await self.post(session)).status, 200)
        self.assertEqual((len(self.grants.asked), len(set(self.grants.asked))), (2, 1))

    async def test_lost_answer(self) -> None:
        """A token that was rotated, and whose answer never came, is lost: the operator is told, and nothing worse."""
        session = await self.begin()
        self.grants.next = ["held"]
        await self.killed(session, lambda: self.grants.given)
        refused = await self.post(session)
        self.assertEqual((refused.status, refused.body["error"]["class"]), (412, "binding_failed"))
        self.assertEqual((await self.state_of_it())["status"], "needs_you")
        self.assertEqual(len(await self.audit("--type", "binding.needs_you")), 1)
        await self.replace()
        self.assertEqual((await self.post(session)).status, 200)

    async def test_kept(self) -> None:
        """Once a token is used, it and what renews it are in the vault: the next life asks for none."""
        session = await self.begin()
        self.workspace.next = [slack.hang(applied=True)]
        await self.killed(session, lambda: self.workspace.messages)
        self.assertEqual((await self.post(session)).status, 200)
        self.assertEqual(len(self.grants.asked), 1)
