"""What is made of an answer: shown, bound, kept and read back, whatever the answer is."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import from_json, to_json
from aileron.base.json import JSON, compact
from aileron.model.actions import PreviewRule
from aileron.model.connectors import Outcome
from aileron.model.faults import Fault
from aileron.model.reviews import NOT_YET, Preview, PreviewStatus, Review, ReviewedPreview, ReviewedStep
from aileron.runner.plan import make_unavailable
from aileron.runner.previews import MOST_BYTES, MOST_BYTES_IN_ALL, render_preview
from tests.extent import examples

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
READ = ReviewedStep("preview", "local://x", "1.0.0", "sha256:x", "look", "https://x.example", None, None)
RULE = PreviewRule("local://x", "look", render=(("A", "a"), ("B", "b.0"), ("C", "c.a")), multiline=("B",))


def shown(output: JSON, carried: tuple[str, ...] = ("a", "b.0")) -> Preview:
    """What an answer is made of."""
    return render_preview(RULE, Outcome(output), carried)


def kept(preview: Preview) -> Preview:
    """What a row gives back."""
    review = Review(preview=ReviewedPreview("local://x", "look", preview, READ))
    return from_json(Review, json.loads(compact(to_json(review)))).shown_preview


class PreviewTests(SynchronousTestCase):
    """L{rendered} and L{read_back}."""

    @settings(deadline=None, max_examples=examples(200))
    @given(ANY)
    def test_kept(self, output: Any) -> None:
        """Whatever a service answers has a preview, which the row gives back, and a digest."""
        preview = shown(output)
        self.assertEqual((kept(preview), kept(preview).digest()), (preview, preview.digest()))

    @settings(deadline=None, max_examples=examples(100))
    @given(ANY)
    def test_forged(self, forged: Any) -> None:
        """Whatever a row holds instead is read without harm."""
        kept: Any = to_json(Review(preview=ReviewedPreview("local://x", "look", NOT_YET, READ)))
        for preview in (forged, {**kept["preview"], "fields": forged}, {**kept["preview"], "carried": forged}):
            review = {**kept, "preview": preview}
            self.assertTrue(from_json(Review, review).shown_preview.digest())
            self.assertEqual(compact(to_json(from_json(Review, review))), compact(review))

    def test_digest(self) -> None:
        """Nothing of what is shown, and nothing that is carried, can be another without another digest."""
        preview = shown({"a": "one", "b": ["two"]})
        others = [
            shown({"a": "other", "b": ["two"]}),
            shown({"a": "one", "b": ["two"]}, ("a",)),
            shown({"a": "one"}),
            make_unavailable(Fault("network_error", "Gone.")),
            NOT_YET,
            evolve(preview, status=PreviewStatus.UNAVAILABLE),
        ]
        self.assertEqual(len({preview.digest(), *(other.digest() for other in others)}), len(others) + 1)

    def test_bounded(self) -> None:
        """One value, and all together, have so many bytes at most; what was cut says how many there are."""
        rule = evolve(RULE, render=tuple((str(number), "a") for number in range(20)))
        fields = render_preview(rule, Outcome({"a": "é" * MOST_BYTES}), ()).fields
        sizes = [len(str(each.value).encode()) for each in fields]
        self.assertEqual((max(sizes), sum(sizes)), (MOST_BYTES, MOST_BYTES_IN_ALL))
        self.assertEqual({each.cut and each.cut.size for each in fields}, {2 * MOST_BYTES})

    def test_carried(self) -> None:
        """Only texts and numbers tie: not nothing, not an empty text, not true, not what JSON cannot carry."""
        ties: tuple[JSON, ...] = ("v1", 7, 0, 1.5)
        no_ties: tuple[JSON, ...] = ("", None, True, False, 2**60, "\ud800", "x" * 5000, [1], {}, float("nan"))
        for value in (*ties, *no_ties):
            self.assertEqual("a" in shown({"a": value}).carried, any(value is each for each in ties), value)

    def test_too_deep(self) -> None:
        """What is nested beyond measure cannot be shown, and that is said."""
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        found = shown({"a": deep}, ())
        self.assertEqual((found.status, found.fault and found.fault.kind), ("unavailable", "connector_runtime_error"))
