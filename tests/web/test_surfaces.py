"""Whatever the page of an approval warns of, the API and the terminal warn of as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve, fields

from aileron.cli.approvals.review import show_review
from aileron.cli.output import capture_lines
from aileron.model.precedents import Precedents
from aileron.model.reviews import PreviewField, Review, ReviewedArgument
from aileron.model.runs import RunState
from aileron.review import REASONS, Risks
from aileron.testing import example_run

from .case import WebCase, planned, previewed, read, sent

DECEPTIVE = "<!channel> g\u0435neral\u200b [aileron.example](https://evil.example) <https://a.example|b.example>"


class SurfacesTests(WebCase):
    """One approval on three surfaces."""

    def shown(self, text: str, before: Precedents, **shown: Any) -> tuple[str, Mapping[str, Any], str]:
        """The page's text, the API's answer, and what the terminal prints of that."""
        run = self.ask(text, **shown)
        self.runner.reviews[run.id]["run"] = evolve(run, parent_id="run-0")
        self.runner.earlier[run.id] = before
        page = read(self.fragment(f"/approvals/{run.id}").text).text
        answer = self.operator.ask("GET", f"/v1/action-approvals/{run.id}", self.operator_token()).json
        return page, answer, "\n".join(capture_lines(lambda: show_review(answer, None)))

    def test_warnings(self) -> None:
        """Each reason to look twice is told by all three, in the same words, and once the run is decided by none."""
        step = planned(None, base_url="http://127.0.0.1:8")
        known = Precedents(
            3,
            True,
            {"text": ("me@a.example",)},
            True,
            ("builtin://slack",),
            (example_run("other"),),
            (example_run("twin"),),
        )
        told: set[str] = set()
        for before in (known, Precedents(0, True, {})):
            page, answer, printed = self.shown("me@a.example", before, review=Review(steps=(step,)))
            for warning in answer["warnings"]:
                told.add(warning["name"])
                rest = warning["message"].removeprefix(warning["label"]).lstrip(". ")
                for surface in (page, printed):
                    self.assertIn(rest, surface)
                    self.assertIn(warning["label"], surface)
                self.assertEqual(warning["why"], REASONS[warning["name"]][1])
            self.assertEqual(page.count("Why"), len(fields(Risks)), "what the page warns of is not all in the answer")
        self.assertEqual(told, {each.name for each in fields(Risks)}, "a reason that no request here has")
        run = self.ask("x")
        self.runner.finish(run.id, RunState.COMPLETED)
        decided = self.operator.ask("GET", f"/v1/action-approvals/{run.id}", self.operator_token()).json
        self.assertEqual((decided["warnings"], decided["novel"]), ([], {}))

    def test_new(self) -> None:
        """An argument that was never so before is told beside it on each."""
        page, answer, printed = self.shown("me@a.example", Precedents(3, True, {"text": ("me@a.example",)}))
        note = "Not used in any of the 3 earlier calls: me@a.example."
        self.assertEqual(answer["novel"], {"text": note})
        for surface in (page, printed):
            self.assertIn(note, surface)

    def test_deceptive(self) -> None:
        """What may mislead in an argument or in the preview is told beneath it on the page and in the terminal."""
        preview = previewed(PreviewField("subject", f"{DECEPTIVE}{' ' * 12}.", missing=False, multiline=False))
        argument = ReviewedArgument("text", "text", DECEPTIVE)
        review = Review(steps=(planned(sent()),), arguments=(argument,), preview=preview)
        page, _, printed = self.shown(DECEPTIVE, Precedents(3, True, {}), review=review)
        for words in (
            "notifies a group",
            "looks like “general”",
            "invisible or overlapping character",
            "leads to",
            "Contains long runs of whitespace",
        ):
            self.assertIn(words, page)
            self.assertIn(words, printed)
        self.assertEqual(printed.count("looks like “general”"), 2)
        self.assertNotIn("\u200b", printed)
