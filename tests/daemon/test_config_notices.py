"""What config.yaml says of notifications."""

from __future__ import annotations

from pathlib import Path

from aileron.daemon._config import read_config
from aileron.daemon._nodes import NotConfig
from aileron.values import ChannelSettings, NoticeSettings
from tests.daemon.case import ConfigCase

WHOLE = """\
notifications:
  contents: true
  desktop: true
  webhooks:
    office:
      url: https://example.com/hook
      signed: true
    local:
      url: http://127.0.0.1:8800/hook
  apprise: [phone, mail]
"""


def settings(text: str) -> NoticeSettings | None:
    """What a text says."""
    return read_config(text).notices


class NoticesTests(ConfigCase):
    def test_whole(self) -> None:
        """Everything is read."""
        channels = (
            ChannelSettings("office", "https://example.com/hook", signed=True),
            ChannelSettings("local", "http://127.0.0.1:8800/hook"),
            ChannelSettings("phone"),
            ChannelSettings("mail"),
        )
        self.assertEqual(settings(WHOLE), NoticeSettings(contents=True, desktop=True, channels=channels))

    def test_nothing(self) -> None:
        """What is not said is not told."""
        self.assertEqual(settings(""), NoticeSettings())
        self.assertEqual(settings("notifications: {}"), NoticeSettings())
        self.assertEqual(settings("notifications: {desktop: false}"), NoticeSettings())

    def test_desktop(self) -> None:
        """The desktop's program may be another, by its whole path."""
        said = settings("notifications: {desktop: {command: /opt/tell}}")
        self.assertEqual(said, NoticeSettings(desktop=True, desktop_command=Path("/opt/tell")))
        self.refused("notifications:\n  desktop:\n    command: tell\n", 3, "absolute")
        self.refused("notifications:\n  desktop: maybe\n", 2, "mapping")

    def test_secrets(self) -> None:
        """Which channels want a secret, and for what it is sealed: an address for itself, a key for its webhook."""
        said = settings(WHOLE)
        assert said is not None
        self.assertEqual([each.name for each in said.channels if each.needs_secret], ["office", "phone", "mail"])
        self.assertEqual(said.bound_by("notice://phone"), ChannelSettings("phone"))
        for fqn in ("notice://local", "notice://canary", "gateway://phone"):
            self.assertIsNone(said.bound_by(fqn))
        scopes = {each.scope() for each in said.channels}
        self.assertIn(None, scopes)
        self.assertEqual(len({scope.base_url for scope in scopes if scope}), 2)

    def test_webhook(self) -> None:
        """A webhook's address is plain: https, or to this machine, without a query where a secret could stand."""
        for url, word in (
            ("http://example.com/hook", "https"),
            ("https://example.com/hook?token=canary", "query"),
            ("https://user:canary@example.com/hook", "user"),
            ("canary", "must"),
        ):
            text = f"notifications:\n  webhooks:\n    office:\n      url: {url}\n"
            self.refused(text, 4, word)
            self.assertNotIn("canary", str(self.assertRaises(NotConfig, read_config, text)))
        self.refused("notifications:\n  webhooks:\n    office: {signed: true}\n", 3, "url")

    def test_names(self) -> None:
        """Each channel has a plain name of its own; the desktop's is taken."""
        self.refused("notifications:\n  apprise:\n    - Phone\n", 3, "name")
        self.refused("notifications:\n  apprise: [desktop]\n", 2, "desktop")
        self.refused("notifications:\n  apprise: 'ntfy://canary'\n", 2, "vault")
        self.refused("notifications:\n  apprise: [a, a]\n", 2, "of its own")
        names = ", ".join(f"n{number}" for number in range(17))
        self.refused(f"notifications:\n  apprise: [{names}]\n", 2, "at most")

    def test_unknown(self) -> None:
        """An unknown key is refused with its line."""
        self.refused("notifications:\n  email: me\n", 2, "unknown key")
