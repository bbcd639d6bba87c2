"""Writes the text of a push message: the ID of a request and a number, also in the form that Safari shows by itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aileron.base.addresses import read_url

from .values import TEST, PushMessage, Subscription

MOST_BYTES = 512
"""The longest text. Each is padded to this size before it is encrypted, so that its length says nothing."""

_DECLARATIVE = 8030
_DECLARED_BY = ".push.apple.com"
_PAGES = "/approvals"
_TAG = "aileron-pending"


def write_payload(message: PushMessage, subscription: Subscription, *, urgent: bool) -> bytes:
    """Return the text of a message for a browser.

    Apple's push service gets a declarative push message (Push API, C{web_push}), which Safari shows without the worker.
    If that is too long because of the name of the pages, the worker shows the message.

    :param urgent: whether the notification may make a sound.
    """
    if subscription.pages and read_url(subscription.endpoint).origin.host.endswith(_DECLARED_BY):
        declared = _pack(_declare(message, subscription.pages, urgent))
        if len(declared) <= MOST_BYTES:
            return declared
    return _pack(_data(message))


def _declare(message: PushMessage, pages: str, urgent: bool) -> Mapping[str, Any]:
    notification = {
        "title": f"Aileron: {_describe(message)}",
        "lang": "en",
        "dir": "ltr",
        "tag": _TAG,
        "silent": not urgent,
        "navigate": f"{pages}{_PAGES}",
        "data": _data(message),
    }
    return {"web_push": _DECLARATIVE, "notification": notification, "app_badge": message.count}


def _data(message: PushMessage) -> Mapping[str, Any]:
    return {"id": message.id, "n": message.count}


def _describe(message: PushMessage) -> str:
    """Return the words that the notification shows. The service worker of other browsers uses the same words."""
    if message.id == TEST:
        return "this is a test"
    if message.count == 1:
        return "1 request is waiting for your approval"
    return f"{message.count or 'no'} request{'s are' if message.count else ' is'} waiting for your approval"


def _pack(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode("ascii")
