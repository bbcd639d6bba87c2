"""The page about notifications tells what is so."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import to_json
from aileron.daemon._config import read_config
from aileron.features import FeatureSet
from aileron.features.notices._channels import PLACES
from aileron.features.notices._delivery import PAUSES_SECONDS
from aileron.features.notices.values import ChannelSettings, NoticeSettings

from .case import EVERY_RULE, message

_PAGE = (Path(__file__).parents[3] / "doc" / "notifications.md").read_text(encoding="utf-8")


def listing(language: str) -> str:
    """The only listing of a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", _PAGE, re.DOTALL)
    return str(found)


class PageTests(SynchronousTestCase):
    """doc/notifications.md against the room."""

    def test_configuration(self) -> None:
        """The example is a configuration that says what the page says of it."""
        office = ChannelSettings("office", "https://example.com/hooks/aileron", signed=True)
        channels = (office, ChannelSettings("phone"), ChannelSettings("mail"))
        said = read_config(listing("yaml"), FeatureSet()).of_features["notifications"]
        self.assertEqual(said, NoticeSettings(desktop=True, channels=channels))

    def test_kinds(self) -> None:
        """Every kind is named, and no other."""
        said = _PAGE[_PAGE.index("`kind` is") : _PAGE.index("It must answer 2xx")]
        self.assertEqual(set(re.findall(r"`(\w+)`", said)) - {"kind"}, {each.kind for each in EVERY_RULE})

    def test_posted(self) -> None:
        """The example of what is posted has the members that are posted."""
        shown, real = json.loads(listing("json")), json.loads(json.dumps(to_json(message())))
        self.assertEqual(set(shown), set(real))
        self.assertEqual(set(shown["notices"][0]), set(real["notices"][0]))

    def test_signature(self) -> None:
        """The function that checks a signature does."""
        names: dict[str, Any] = {}
        exec(listing("python"), names)
        check: Callable[[bytes, str, bytes], bool] = names["is_from_aileron"]
        signed = hmac.digest(b"key", b"17.body", sha256).hex()
        self.assertTrue(check(b"key", f"t=17,v1={signed}", b"body"))
        self.assertFalse(check(b"key", f"t=18,v1={signed}", b"body"))

    def test_numbers(self) -> None:
        """The pauses and places of the page are those of the room."""
        self.assertIn(" after {:g}, {:g} and {:g} s".format(*PAUSES_SECONDS), _PAGE)
        for place in PLACES:
            self.assertIn(f"`{place.parent}`", _PAGE)
