"""Where two values differ, and how a place of a review is called."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.model.reviews import (
    Preview,
    PreviewField,
    PreviewStatus,
    Review,
    ReviewedArgument,
    ReviewedPreview,
    ReviewedStep,
)
from aileron.model.runs import Change, Run, RunState
from aileron.review import differences, edits, place
from tests.extent import examples

ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=10,
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEP = ReviewedStep("send", "builtin://mail", "1.0.0", "sha256:x", "send", "https://mail.example", None, None)
SUBJECT = PreviewField("Subject", "Hello", missing=False, multiline=False)
REVIEW = Review(
    arguments=(ReviewedArgument("to", "To whom", "ann@example.org"),),
    steps=(STEP,),
    preview=ReviewedPreview("builtin://mail", "get", Preview(PreviewStatus.SHOWN, (SUBJECT,)), STEP),
)


class DifferencesTests(SynchronousTestCase):
    """L{differences}."""

    def test_places(self) -> None:
        """Each place is named by its pointer, with what was there and what is."""
        before: JSON = {"a": 1, "b": {"c/d": [1, 2, 3]}, "gone": "x"}
        after: JSON = {"a": 1, "b": {"c/d": [1, 9]}, "new": None}
        self.assertEqual(
            differences(before, after),
            (
                Change("/b/c~1d/1", "changed", 2, 9),
                Change("/b/c~1d/2", "removed", 3),
                Change("/gone", "removed", "x"),
                Change("/new", "added"),
            ),
        )

    def test_types(self) -> None:
        """A value of another type is another value."""
        for before, after in ((1, True), (0, False), (1, "1"), ([], {}), ("", None), ([], "")):
            self.assertEqual(differences({"x": before}, {"x": after}), (Change("/x", "changed", before, after),))
        self.assertEqual(differences(1, 1.0), ())

    def test_whole(self) -> None:
        """Two values that are no objects differ as a whole."""
        self.assertEqual(differences("a", "b"), (Change("", "changed", "a", "b"),))

    def test_many(self) -> None:
        """So many are listed and no more, and that is said."""
        found = differences(list(range(200)), list(range(1, 201)))
        self.assertEqual((len(found), found[-1].kind), (101, "more"))
        self.assertIn("more differences", str(found[-1].after))

    @settings(deadline=None, max_examples=examples(100))
    @given(ANY, ANY)
    def test_nothing_is_hidden(self, before: Any, after: Any) -> None:
        """There are none exactly where the values are the same, types counted."""
        self.assertEqual(differences(before, deepcopy(before)), ())
        self.assertEqual(bool(differences(before, after)), repr(_sorted(before)) != repr(_sorted(after)))

    def test_edits(self) -> None:
        """What the operator edited: none where nothing was, or where it was edited back."""
        run = Run("run", "do", "1", "sha256:0", {"a": 1}, RunState.PENDING, True, "key", NOON, NOON)
        self.assertEqual((edits(run), edits(evolve(run, asked={"a": 1}))), ((), ()))
        self.assertEqual(edits(evolve(run, asked={"a": 2})), (Change("/a", "changed", 2, 1),))
        self.assertEqual((run.asked_for, evolve(run, asked={}).asked_for), ({"a": 1}, {}))


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
            ("/steps/0/content_hash", "step send: the connector's file"),
            ("/steps/3", "step 3:"),
            ("/manifest_digest", "the action's file"),
            ("/a~1b", "/a~1b"),
            ("", ""),
        ):
            self.assertEqual(place(pointer, REVIEW), words)

    @settings(deadline=None, max_examples=examples(100))
    @given(
        st.lists(st.sampled_from(["fields", "preview", "steps", "0", "-1", "", "x"])),
        st.sampled_from([REVIEW, Review(), Review(unread={"fields": "abc", "steps": {"0": 1}, "preview": 1})]),
    )
    def test_anything(self, parts: list[str], review: Review) -> None:
        """Whatever the review is, there is a text."""
        self.assertIsInstance(place("".join(f"/{part}" for part in parts), review), str)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
