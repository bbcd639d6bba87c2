"""Requests of Slack's SDKs to its web API."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from .requests import see

_FORM = ("Content-Type", "application/x-www-form-urlencoded")
_TOKEN = ("Authorization", "Bearer aileron-placeholder")
_JSON = ("Content-Type", "application/json;charset=utf-8")


class SlackTests(SynchronousTestCase):
    """What the shipped connector says of them."""

    def test_reads(self) -> None:
        """The SDKs read by POST, with a form."""
        for method, body in (
            ("conversations.list", b""),
            ("conversations.history", b"channel=C1"),
            ("users.info", b"user=U1"),
            ("auth.test", b""),
        ):
            found = see("slack", "POST", f"/api/{method}", body, _FORM, _TOKEN)
            self.assertEqual((found.effect, found.problem), ("read", ""), method)

    def test_python(self) -> None:
        """A message of slack_sdk, which is JSON, is shown as the operation that it is, without the mark of Aileron."""
        for body, operation in (
            (b'{"channel": "C1", "text": "Hi"}', "post_message"),
            (b'{"channel": "C1", "text": "Hi", "thread_ts": "1.2"}', "reply"),
            (b'{"channel": "C1", "text": "Hi", "client_msg_id": "x"}', ""),
            (b'{"channel": "C1", "text": "Hi", "blocks": []}', ""),
        ):
            found = see("slack", "POST", "/api/chat.postMessage", body, _JSON, _TOKEN)
            self.assertEqual((found.effect, found.operation), ("write", operation), body)
        shown = see("slack", "POST", "/api/chat.postMessage", b'{"channel": "C1", "text": "Hi"}', _JSON).inputs
        self.assertEqual({"channel": "C1", "text": "Hi"}, shown)

    def test_node(self) -> None:
        """A message of the SDK for Node, which is a form, is shown as it is."""
        found = see("slack", "POST", "/api/chat.postMessage", b"channel=C1&text=Hi", _FORM, _TOKEN)
        self.assertEqual((found.effect, found.operation, found.problem), ("write", "", ""))
