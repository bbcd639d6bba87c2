"""The values of Web Push: the browsers that are notified, and the messages that they are sent."""

from __future__ import annotations

from datetime import datetime

from attrs import field, frozen

from aileron.model.vault import Scope

PUSH = "push://"
"""The prefix of the targets that the vault's entries of this feature are bound to."""

KEY = f"{PUSH}key"
"""The target of the daemon's own key, by which push services recognize the daemon."""

SCOPE = Scope((), "web-push", "subscription", "{key}")
"""The scope that the vault's entries of this feature are sealed for."""

TEST = "test"
"""The ID of the message that tests a browser."""

MOST_BROWSERS = 16
"""The number of browsers that can be registered at a time."""


@frozen
class Subscription:
    """The address and keys of a browser, as its push service has issued them.

    :ivar endpoint: the URL of the browser at its push service. Whoever knows it can send to the browser.
    :ivar p256dh: the browser's public key, an uncompressed point on P-256.
    :ivar auth: the secret that the browser shares with senders, 16 bytes.
    :ivar pages: the origin of the pages that registered the browser, or empty if an older version stored none.
    """

    endpoint: str = field(repr=False)
    p256dh: bytes = field(repr=False)
    auth: bytes = field(repr=False)
    pages: str = ""


@frozen
class PushMessage:
    """The content of a push message: how many requests are pending. It contains no text of a request.

    :ivar id: the ID of the newest pending request, C{test} for a test, or empty if no request is pending.
    :ivar count: the number of pending requests.
    :ivar seconds: how long the push service keeps the message for a browser that is offline.
    """

    id: str
    count: int
    seconds: int


@frozen
class PushBrowser:
    """A registered browser that gets push messages, as lists of browsers show it.

    :ivar id: derived from the endpoint.
    :ivar name: the name that the browser's page gave.
    :ivar service: the host of the browser's push service.
    :ivar sent_at: when the push service last accepted a message, or None if it never has.
    :ivar problem: why the last attempt failed, without the endpoint, or None if it succeeded.
    :ivar phone: the name of the phone's passkey that registered the browser, or None if a page on this machine did.
    """

    id: str
    name: str
    service: str
    added_at: datetime
    sent_at: datetime | None = None
    problem: str | None = None
    phone: str | None = None
