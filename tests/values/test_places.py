"""Places of a review in words."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.values import JSON, place

REVIEW: JSON = {
    "fields": [{"label": "To whom"}],
    "steps": [{"id": "send"}],
    "preview": {"fields": [{"label": "Subject"}]},
}


class PlaceTests(SynchronousTestCase):
    """L{place}."""

    def test_words(self) -> None:
        """What has a label is called so; the rest as near to it as can be."""
        for pointer, words in (
            ("/fields/0/value", "To whom"),
            ("/fields/7/value", "/fields/7/value"),
            ("/preview/fields/0/value", "preview: Subject"),
            ("/preview/fields/0/cut/bytes", "preview: Subject cut bytes"),
            ("/preview/status", "preview: status"),
            ("/preview", "preview"),
            ("/steps/0/request/url", "step send: request url"),
            ("/steps/0/content_hash", "step send: content hash"),
            ("/steps/3", "step 3:"),
            ("/manifest_digest", "the action's file"),
            ("/a~1b", "/a~1b"),
            ("", ""),
        ):
            self.assertEqual(place(pointer, REVIEW), words)

    @settings(deadline=None, max_examples=100)
    @given(
        st.lists(st.sampled_from(["fields", "preview", "steps", "0", "-1", "", "x"])),
        st.sampled_from([REVIEW, None, [], {"fields": "abc", "steps": {"0": 1}, "preview": 1}]),
    )
    def test_anything(self, parts: list[str], review: JSON) -> None:
        """Whatever the review is, there is a text."""
        self.assertIsInstance(place("".join(f"/{part}" for part in parts), review), str)
