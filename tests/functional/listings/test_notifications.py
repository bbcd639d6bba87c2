"""C{doc/notifications.md}, played: two channels are configured, given their secrets, and tried."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.loopback import LoopbackSite
from tests.functional.test_notifications import Listener

KEY, TOPIC = "key-of-the-office", "secret-topic-70311"
CONFIG = """\
notifications:
  webhooks:
    office:
      url: {url}/office
      signed: true
  apprise: [phone]
"""


class NotificationsTests(PageTestCase):
    """A user with a webhook, and a channel by apprise."""

    page = "notifications.md"

    @seldom
    async def test_played(self) -> None:
        """Both channels are told by the test, and neither secret is shown."""
        listener = Listener()
        site = LoopbackSite.listen(self.reactor, listener)
        self.finally_(site.stop)
        await self.operator("vault", "init")
        self.state.config.write_text(CONFIG.format(url=site.url))
        self.secrets += [KEY, TOPIC]
        address = f"{site.url.replace('http', 'json', 1)}/{TOPIC}"
        await self.play(
            Play("aileron config trust", answers=[LOG_IN, YES], shows=["Trusted: config.yaml"]),
            Play("aileron daemon stop"),
            Play("aileron vault unlock", answers=[LOG_IN]),
            Play("aileron notification add phone", answers=[LOG_IN, (r"Address of phone .*: ", address)]),
            Play("aileron notification add office", answers=[LOG_IN, (r"Key that signs .*: ", KEY)]),
            Play("aileron notification test", answers=[LOG_IN], shows=["office", "phone"]),
            Play("aileron notification list", shows=["office", "phone"]),
        )
        self.assertEqual((len(listener.at("/office")), len(listener.at(f"/{TOPIC}"))), (1, 1))
