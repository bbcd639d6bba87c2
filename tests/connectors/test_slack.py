"""Of the Slack connector that comes with the package, against a service that answers as Slack does."""

from __future__ import annotations

import json
from collections.abc import Mapping

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors import Registry
from aileron.model.connectors import Outcome
from aileron.model.interfaces.connectors import IConnector
from tests.connectors.certificate import Certificate
from tests.connectors.service import Service, json_answer


class SlackTests(SynchronousTestCase):
    """What is said to Slack, and what its answers come to."""

    def setUp(self) -> None:
        certificate = Certificate.made("slack.com")
        self.service = Service({"slack.com": ["203.0.114.7"]}, certificate=certificate, trusted=certificate)

    def slack(self) -> IConnector:
        """The connector as the daemon finds it."""
        slack = Registry(None, self.service.workshop).get("builtin://slack")
        assert slack is not None
        return slack

    def posted(self, reply: bytes, effect_key: str = "effect-1") -> Outcome:
        """What one post comes to."""
        self.service.replies.append(reply)
        inputs: Mapping[str, JSON] = {"channel": "#general", "text": "Shipped"}
        posting = self.service.start(self.slack(), "post_message", inputs, key=effect_key, secret=b"xoxb-canary")
        return self.successResultOf(posting)

    def test_post(self) -> None:
        """A message is posted with the bot token, and its place is the output."""
        outcome = self.posted(json_answer({"ok": True, "ts": "1.2", "channel": "C1", "message": {"text": "Shipped"}}))
        self.assertEqual({"ts": "1.2", "channel": "C1"}, outcome.output)
        self.assertIn(b"Authorization: Bearer xoxb-canary\r\n", self.service.requests[0])

    def test_same_effect_same_message(self) -> None:
        """Slack is told the same id for the same effect, and another for another."""
        for key in ("effect-1", "effect-1", "effect-2"):
            self.posted(json_answer({"ok": True}), key)
        bodies = [json.loads(each.partition(b"\r\n\r\n")[2]) for each in self.service.requests]
        first, again, other = (body["client_msg_id"] for body in bodies)
        self.assertEqual((True, False), (first == again, first == other))

    def test_refusals(self) -> None:
        """Slack's "no" is a failure, its wish for patience may be followed, and of a breakdown nobody knows."""
        for error, reply, classified, retriable, seconds in (
            ("channel_not_found", (200,), True, False, None),
            ("ratelimited", (429, {"Retry-After": "30"}), True, True, 30.0),
            ("internal_error", (500,), False, True, None),
        ):
            outcome = self.posted(json_answer({"ok": False, "error": error}, *reply))
            assert outcome.fault is not None
            self.assertEqual(
                (classified, retriable, seconds),
                (outcome.classified, outcome.fault.retriable, outcome.retry_after_seconds),
            )
            self.assertIn(error if error == "channel_not_found" else "builtin://slack", outcome.fault.message)

    def test_channels(self) -> None:
        """Channels are listed by a GET, with no limit where none was given."""
        self.service.replies.append(json_answer({"ok": True, "channels": []}))
        reading = self.service.start(self.slack(), "list_channels", secret=b"xoxb-canary")
        self.assertEqual({"ok": True, "channels": []}, self.successResultOf(reading).output)
        self.assertTrue(self.service.requests[0].startswith(b"GET /api/conversations.list HTTP/1.1\r\n"))
