"""What is made of an answer: shown, bound, kept and read back, whatever the answer is."""

from __future__ import annotations

import json
from typing import Any, cast

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.runner.plan import NOT_YET, Preview, make_unavailable, parse_preview
from aileron.runner.previews import MOST_BYTES, MOST_BYTES_IN_ALL, render_preview
from aileron.values import JSON, Fault, Outcome, PreviewRule, compact

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
RULE = PreviewRule("local://x", "look", render=(("A", "a"), ("B", "b.0"), ("C", "c.a")), multiline=("B",))


def shown(output: JSON, carried: tuple[str, ...] = ("a", "b.0")) -> Preview:
    """What an answer is made of."""
    return render_preview(RULE, Outcome(output), carried)


def kept(preview: Preview) -> Preview:
    """What a row gives back."""
    return parse_preview({"preview": json.loads(compact(preview.as_json()))})


class PreviewTests(SynchronousTestCase):
    """L{rendered} and L{read_back}."""

    @settings(deadline=None, max_examples=200)
    @given(ANY)
    def test_kept(self, output: Any) -> None:
        """Whatever a service answers has a preview, with a digest that the row gives back."""
        preview = shown(output)
        self.assertEqual(kept(preview).digest(), preview.digest())

    @settings(deadline=None, max_examples=100)
    @given(ANY)
    def test_forged(self, forged: Any) -> None:
        """Whatever a row holds instead is read without harm."""
        for review in ({"preview": forged}, {"preview": {"status": "shown", "fields": forged, "carried": forged}}):
            self.assertTrue(parse_preview(cast(Any, review)).digest())

    def test_digest(self) -> None:
        """Nothing of what is shown, and nothing that is carried, can be another without another digest."""
        preview = shown({"a": "one", "b": ["two"]})
        others = [
            shown({"a": "other", "b": ["two"]}),
            shown({"a": "one", "b": ["two"]}, ("a",)),
            shown({"a": "one"}),
            make_unavailable(Fault("network_error", "Gone.")),
            NOT_YET,
            evolve(preview, status="unavailable"),
        ]
        self.assertEqual(len({preview.digest(), *(other.digest() for other in others)}), len(others) + 1)

    def test_bounded(self) -> None:
        """One value, and all together, have so many bytes at most; what was cut says how many there are."""
        rule = evolve(RULE, render=tuple((str(number), "a") for number in range(20)))
        fields = render_preview(rule, Outcome({"a": "é" * MOST_BYTES}), ()).fields
        sizes = [len(str(each["value"]).encode()) for each in fields]
        self.assertEqual((max(sizes), sum(sizes)), (MOST_BYTES, MOST_BYTES_IN_ALL))
        self.assertEqual({cast(Any, each)["cut"]["bytes"] for each in fields}, {2 * MOST_BYTES})

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
        self.assertEqual((found.status, cast(Any, found.fault)["class"]), ("unavailable", "connector_runtime_error"))
