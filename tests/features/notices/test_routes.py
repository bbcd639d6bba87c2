"""The channels of notifications: how they do, trying them, and what is bound to them."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from zope.interface import implementer

from aileron.features.notices.running import RunningNotices
from aileron.features.notices.values import ChannelSettings, ChannelState, INotifier, NoticeSettings
from tests.api.case import LAUNCH_KEY, ApiCase, running

from .case import browser_at

SETTINGS = NoticeSettings(
    desktop=True,
    channels=(ChannelSettings("phone"), ChannelSettings("office", "https://example.com/hook", signed=True)),
)
SECRET = "ntfys://ntfy.invalid/canary"


@implementer(INotifier)
class Notifier:
    """Channels that do as a test says."""

    def __init__(self) -> None:
        self.states: tuple[ChannelState, ...] = (
            ChannelState("desktop", "desktop", sent=2),
            ChannelState("phone", "apprise"),
        )
        self.tested = 0

    def channels(self) -> tuple[ChannelState, ...]:
        return self.states

    async def test(self) -> tuple[ChannelState, ...]:
        self.tested += 1
        self.states = tuple(evolve(each, problem="It answered 500.") for each in self.states)
        return self.states


class NoChannels(Notifier):
    """A notifier without channels."""

    def __init__(self) -> None:
        super().__init__()
        self.states = ()


class NotificationsTests(ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.notifier = Notifier()
        self.build(features=running(RunningNotices(SETTINGS, self.notifier, browser_at())))
        self.key = self.operator_token()

    def bind(self, connector: str, **more: Any) -> Any:
        """Bind a secret."""
        name = connector.rpartition("/")[2]
        body = {"connector": connector, "service": "notice", "identity": name, "secret": SECRET, **more}
        return self.operator.ask("POST", "/v1/bindings/setup", self.key, body)

    def test_listed(self) -> None:
        """Each channel is listed with how it does, and whether what it needs lies in the vault."""
        self.assertEqual(self.bind("notice://phone").status, 201)
        heard = self.operator.ask("GET", "/v1/notifications", self.key)
        desktop, phone = heard.json["items"]
        self.assertEqual((desktop["kind"], desktop["sent"], desktop["needs_secret"]), ("desktop", 2, False))
        self.assertEqual((phone["needs_secret"], phone["bound"]), (True, True))
        self.assertNotIn("canary", heard.text)
        self.build(features=running(RunningNotices(NoticeSettings(), NoChannels(), browser_at())))
        self.assertEqual(self.operator.ask("GET", "/v1/notifications", self.key).json, {"items": []})

    def test_tried(self) -> None:
        """A test is sent, and how the channels do then is told, also in the status."""
        heard = self.operator.ask("POST", "/v1/notifications/test", self.key, {})
        self.assertEqual((heard.status, self.notifier.tested), (200, 1))
        self.assertEqual({each["problem"] for each in heard.json["items"]}, {"It answered 500."})
        status = self.agents.ask("GET", "/v1/status", LAUNCH_KEY).json
        self.assertEqual(status["notifications"], {"channels": 2, "failing": ["desktop", "phone"]})

    def test_agents(self) -> None:
        """An agent learns nothing of it, and can try nothing."""
        token = self.agent_token()
        self.assertNotIn("notifications", self.agents.ask("GET", "/v1/status", token).json)
        self.assertEqual(self.agents.ask("GET", "/v1/notifications", token).status, 404)
        self.assertEqual(self.operator.ask("POST", "/v1/notifications/test", token, {}).status, 401)
        self.assertEqual(self.notifier.tested, 0)

    def test_bound(self) -> None:
        """A secret is sealed for its channel as config.yaml has it, and for nothing else; no address can be chosen."""
        for connector, header in (("notice://phone", "address"), ("notice://office", "Aileron-Signature")):
            bound = self.bind(connector)
            self.assertEqual((bound.status, bound.json["scope"]["header"], bound.json["fits"]), (201, header, True))
        evil = NoticeSettings(channels=(ChannelSettings("office", "https://evil.example", signed=True),))
        self.build(features=running(RunningNotices(evil, self.notifier, browser_at())))
        (item,) = self.operator.ask("GET", "/v1/bindings?connector=notice://office", self.key).json["items"]
        self.assertFalse(item["fits"])
        self.assertEqual(self.bind("notice://canary").status, 400)
        self.assertEqual(self.bind("notice://desktop").status, 400)
        self.assertEqual(self.bind("notice://phone", base_url="https://example.com").status, 400)
