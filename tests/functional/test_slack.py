"""The stand-in for Slack refuses, fails and counts as the real one would."""

from collections.abc import Mapping
from typing import Any

import attrs
from treq.client import HTTPClient
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.web.client import Agent, HTTPConnectionPool, ResponseNeverReceived
from twisted.web.http_headers import Headers

from tests.functional import slack
from tests.functional.case import FunctionalTestCase
from tests.functional.reactor import until

POST = {"channel": "#engineering", "text": "shipped", "client_msg_id": "m1"}


@attrs.frozen
class Answer:
    """What came back."""

    status: int
    headers: Any
    body: Mapping[str, Any]


class FakeSlackTests(FunctionalTestCase):
    """One service, one client without a pool."""

    def setUp(self) -> None:
        """Start the service."""
        super().setUp()
        self.service = self.slack()
        self.workspace = self.service.workspace
        pool = HTTPConnectionPool(self.reactor, persistent=False)
        self.client = HTTPClient(Agent(self.reactor, pool=pool))

    async def call(self, method: str, path: str, token: str | None = None, **more: Any) -> Answer:
        """Send one request with the right token, or another."""
        headers = Headers({"Authorization": [f"Bearer {token or self.workspace.token}"]})
        response = await self.client.request(method, self.service.url + path, headers=headers, timeout=30, **more)
        return Answer(response.code, response.headers, await response.json())

    async def post(self, token: str | None = None) -> Answer:
        """Post the one message."""
        return await self.call("POST", "/api/chat.postMessage", token, json=POST)

    async def test_post(self) -> None:
        """A post makes one message, names its channel's id, and is recorded with headers and body."""
        answer = await self.post()
        self.assertEqual((answer.status, answer.body["ok"], answer.body["channel"]), (200, True, "C0002"))
        self.assertEqual(self.workspace.effects_of("m1"), 1)
        (request,) = self.workspace.requests
        self.assertEqual(request.headers["authorization"], f"Bearer {self.workspace.token}")
        self.assertEqual(request.body, POST)

    async def test_posting_twice_counts_twice(self) -> None:
        """Nothing is deduplicated, so that a second sending of one effect shows."""
        await self.post()
        await self.post()
        self.assertEqual(self.workspace.effects_of("m1"), 2)

    async def test_wrong_token(self) -> None:
        """A wrong token is refused in Slack's way and has no effect."""
        answer = await self.post("xoxb-wrong")
        self.assertEqual((answer.status, answer.body), (200, {"ok": False, "error": "invalid_auth"}))
        self.assertEqual(self.workspace.messages, [])

    async def test_lists_channels_and_history(self) -> None:
        """Channels can be listed, and a channel's messages read back by who looks for a lost answer."""
        await self.post()
        channels = await self.call("GET", "/api/conversations.list", params={"limit": "10"})
        self.assertEqual({each["name"] for each in channels.body["channels"]}, {"general", "engineering"})
        history = await self.call("GET", "/api/conversations.history", params={"channel": "C0002"})
        self.assertEqual([each["client_msg_id"] for each in history.body["messages"]], ["m1"])

    async def test_unknown_channel(self) -> None:
        """A channel that does not exist is refused without being told to."""
        answer = await self.call("POST", "/api/chat.postMessage", json=POST | {"channel": "#nowhere"})
        self.assertEqual(answer.body, {"ok": False, "error": "channel_not_found"})

    async def test_scripted_answers_in_order(self) -> None:
        """Told behaviours are spent in order, and afterwards all goes well."""
        self.workspace.next = [slack.rate_limit(7), slack.breakdown(), slack.refusal("restricted_action")]
        answers = [await self.post() for _ in range(4)]
        self.assertEqual([each.status for each in answers], [429, 500, 200, 200])
        self.assertEqual(answers[0].headers.getRawHeaders("Retry-After"), ["7"])
        self.assertEqual([each.body["ok"] for each in answers], [False, False, False, True])
        self.assertEqual(self.workspace.effects_of("m1"), 1)

    async def test_drop_after_the_effect(self) -> None:
        """A connection dropped before the answer leaves the client in doubt and the message in place."""
        self.workspace.next = [slack.drop(applied=True)]
        lost = Deferred.fromCoroutine(self.post())
        await self.assertFailure(lost, ResponseNeverReceived, ConnectionLost, ConnectionDone)
        self.assertEqual(self.workspace.effects_of("m1"), 1)

    async def test_hang(self) -> None:
        """A hanging request ends only by its client, and the service can stop all the same."""
        self.workspace.next = [slack.hang(applied=False)]
        waiting = Deferred.fromCoroutine(self.post())
        await until(self.reactor, lambda: bool(self.workspace.requests), 30, "the request")
        self.assertNoResult(waiting)
        waiting.cancel()
        await self.assertFailure(waiting, CancelledError, ResponseNeverReceived)
        self.assertEqual(self.workspace.messages, [])

    async def test_delay(self) -> None:
        """A late answer comes late, its effect at once."""
        self.workspace.next = [slack.Behaviour(delay_seconds=0.2)]
        before = self.reactor.seconds()
        answer = await self.post()
        self.assertTrue(answer.body["ok"])
        self.assertGreaterEqual(self.reactor.seconds() - before, 0.2)

    def assertNoResult(self, waiting: Deferred[Any]) -> None:
        """Fail if the Deferred has fired."""
        self.assertFalse(waiting.called)
