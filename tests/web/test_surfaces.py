"""A warning that one surface shows, all show: page, API, terminal, lists and notifications."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import attrs
from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.cli.approvals.deciding import DecisionRequest, decide_each
from aileron.cli.approvals.review import show_review
from aileron.cli.approvals.watch import converse
from aileron.cli.context import CliContext
from aileron.cli.output import capture_lines
from aileron.features.notices import rules
from aileron.features.notices._composer import MessageComposer
from aileron.features.notices.running import find_review
from aileron.features.notices.values import Message, Notice
from aileron.model.precedents import Precedents
from aileron.model.reviews import PreviewField, Review, ReviewedArgument
from aileron.model.runs import Change, Run, RunState
from aileron.review import STALE, WARNINGS, strip_label
from aileron.testing import MemoryVault, example_run, scripted_offer
from tests.api.case import NOW

from .case import ReviewedRunner, WebCase, planned, previewed, read, sent

DECEPTIVE = "<!channel> g\u0435neral\u200b [aileron.example](https://evil.example) <https://a.example|b.example>"
DONE = Precedents(3, True, {})
QUIET = evolve(scripted_offer(), idempotent=True, destructive=False)


@frozen
class Request:
    """A request as the runner has it.

    :ivar before: the comparison with earlier calls.
    :ivar offer: its action.
    :ivar parent_id: the run that it repeats.
    :ivar shown: fields of its approval.
    """

    text: str = "hello"
    before: Precedents = DONE
    offer: Any = QUIET
    parent_id: str | None = None
    shown: Mapping[str, Any] = field(factory=dict)


PROVOKING: Mapping[str, Request] = {
    "irreversible": Request(offer=evolve(QUIET, destructive=True, irreversible=True)),
    "hidden": Request("pay\u200bpal"),
    "letters": Request("#g\u0435neral"),
    "address": Request("me@\u0435vil.example"),
    "link": Request("<https://a.example|b.example>"),
    "stale": Request(shown={"stale": "The action ship-update was changed since."}),
    "again": Request(parent_id="run-0"),
    "recipients": Request("me@a.example", evolve(DONE, novel={"text": ("me@a.example",)})),
    "twin": Request(before=evolve(DONE, twins=(example_run("twin"),))),
    "repeated": Request(before=evolve(DONE, repeats=(example_run("other"),))),
    "action": Request(before=evolve(DONE, action_changed=True)),
    "connectors": Request(before=evolve(DONE, connectors_changed=("builtin://slack",))),
    "private": Request(shown={"review": Review(steps=(planned(sent(url="http://10.0.0.1/")),))}),
    "later": Request(shown={"review": Review(steps=(planned(None),))}),
    "unchecked": Request("long " * 30_000),
    "order": Request("\u05e9\u05dc\u05d5\u05dd"),
    "markup": Request("<!channel>"),
    "whitespace": Request(f"hello{' ' * 40}and pay"),
    "first": Request(before=Precedents(0, True, {})),
    "encoding": Request("Jose\u0301"),
    "special": Request("a\tb"),
    "destructive": Request(offer=evolve(QUIET, destructive=True)),
    "local": Request(
        offer=evolve(QUIET, own_hosts=frozenset({"10.0.0.1"})),
        shown={"review": Review(steps=(planned(sent(url="http://10.0.0.1/")),))},
    ),
    "repeat": Request(offer=evolve(QUIET, idempotent=False)),
}
"""For each kind of warning a request that has it."""


@define
class AnsweringOperator:
    """A login of a terminal, whose daemon has one approval that waits until it is decided."""

    approval: dict[str, Any]
    session: Mapping[str, Any] | None = None

    async def get(self, *path: str, query: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Answer a GET."""
        if path == ("action-approvals",):
            return {"items": [self.approval], "cursor": None}
        if path == ("gateway", "limits"):
            return {"items": [], "readable": True}
        return self.approval

    async def post(self, *path: str, body: Any = None) -> Mapping[str, Any]:
        """Take the decision."""
        return self.approval

    async def decide(self, approval_id: str, decision: Any) -> Mapping[str, Any]:
        """Take the decision."""
        return self.approval

    async def result(self, approval_id: str, wait: float) -> Mapping[str, Any]:
        """Return the outcome."""
        return {"status": "completed", "result": {}}


@frozen
class OneRun:
    """The rows and sessions that a notification is composed of."""

    run: Run

    async def get(self, _id: str) -> Run | None:
        """Return the run; of a session nothing is known."""
        return self.run if _id == self.run.id else None

    async def list(self, _query: Any) -> Any:
        """Count nothing besides."""
        raise LookupError

    async def count(self, _query: Any) -> int:
        """Count nothing besides."""
        return 1


@frozen
class Doors:
    """The runner's doors as the notifications reach them."""

    submission: ReviewedRunner
    decisions: ReviewedRunner


class SurfacesTests(WebCase):
    """One approval on every surface."""

    def ask_for(self, request: Request) -> str:
        """Have the request wait; its id."""
        self.runner.offer(request.offer)
        run = self.ask(request.text, **request.shown)
        shown = self.runner.reviews[run.id]
        shown.setdefault("review", Review(steps=(planned(sent()),)))
        shown["run"] = evolve(run, parent_id=request.parent_id)
        self.runner.earlier[run.id] = request.before
        return run.id

    def answer_of(self, run_id: str) -> dict[str, Any]:
        """What the API says of it."""
        answer: dict[str, Any] = self.operator.ask("GET", f"/v1/action-approvals/{run_id}", self.operator_token()).json
        return answer

    def printed(self, work: Callable[[], Awaitable[None]]) -> str:
        """What a command prints."""
        return "\n".join(capture_lines(lambda: self.successResultOf(Deferred.fromCoroutine(cast(Any, work())))))

    def terminals(self, answer: dict[str, Any]) -> Mapping[str, str]:
        """What each command prints that shows the approval."""
        operator = cast(Any, AnsweringOperator(answer))
        typed = iter(("1", "", "q"))
        cli = attrs.evolve(CliContext({"HOME": "/nowhere"}), ask=lambda _prompt: next(typed), wall=self.clock.seconds)
        several = [DecisionRequest(answer["id"], approved=True, sure=True, as_json=False)] * 2
        return {
            "show": "\n".join(capture_lines(lambda: show_review(answer, None))),
            "show --raw": "\n".join(capture_lines(lambda: show_review(answer, None, raw=True))),
            "watch": self.printed(lambda: converse(cli, operator)),
            "approve": self.printed(lambda: decide_each(cli, operator, several)),
        }

    def notified(self, run_id: str, contents: bool) -> Message:
        """The notification of the approval."""
        run = self.runner.reviews[run_id]["run"]
        composer = MessageComposer(
            runs=cast(Any, OneRun(run)),
            sessions=cast(Any, OneRun(run)),
            vault=MemoryVault(),
            clock=self.clock,
            ids=lambda: "message-1",
            operator_url=lambda: "http://localhost:7001",
            find_review=lambda of: find_review(cast(Any, Doors(self.runner, self.runner)), of),
            contents=contents,
        )
        notice = Notice(rules.APPROVAL, utc(NOW), run.action, None, run_id)
        message = self.successResultOf(Deferred.fromCoroutine(composer.compose([notice])))
        assert message is not None
        return message

    def test_table(self) -> None:
        """There is a request for every kind of warning, and a plain request has none."""
        self.assertEqual(list(PROVOKING), list(WARNINGS))
        self.assertEqual(self.answer_of(self.ask_for(Request()))["warnings"], [])

    def test_warnings(self) -> None:
        """Each kind of warning is shown by every surface in the same words; lists show its label."""
        for kind, request in PROVOKING.items():
            run_id = self.ask_for(request)
            answer, page = self.answer_of(run_id), read(self.fragment(f"/approvals/{run_id}").text).text
            listed = read(self.fragment("/approvals").text).text
            quiet, told = self.notified(run_id, contents=False), self.notified(run_id, contents=True)
            warnings: Sequence[Mapping[str, Any]] = answer["warnings"]
            self.assertIn(kind, [each["id"] for each in warnings])
            for warning in warnings:
                expected = WARNINGS[warning["id"]]
                self.assertEqual((warning["label"], warning["why"]), (expected.label, expected.why))
                self.assertEqual(warning["severity"], expected.severity.value)
                self.assertEqual((warning["name"], warning["message"]), (warning["id"], warning["text"]))
                rest = warning["text"].removeprefix(warning["label"]).lstrip(". ")
                for name, text in {"page": page, **self.terminals(answer)}.items():
                    self.assertIn(rest, text, f"{name} does not show {warning['id']}")
                    if not (expected.located or kind == STALE):
                        self.assertIn(warning["label"], text, f"{name} does not label {warning['id']}")
                self.assertEqual(warning["standing"], expected.standing)
                for name, text in {"list": listed, "notification": quiet.lines[0], "contents": told.lines[0]}.items():
                    self.assertIs(warning["label"] in text, not expected.standing, f"{name}: {warning['id']}")
                self.assertIn(rest, "\n".join(told.contents))
            shown = [each.label for each in WARNINGS.values() if each.label in listed]
            self.assertEqual(
                set(shown),
                {each["label"] for each in warnings if not each["standing"]},
                "the list warns of something else",
            )
            self.runner.finish(run_id, RunState.DENIED)
            self.runner.reviews.pop(run_id)
            self.assertEqual(self.answer_of(run_id)["warnings"], [])

    def test_where(self) -> None:
        """A warning about one text points at it in the same answer."""
        for kind in (each for each, known in WARNINGS.items() if known.located):
            answer = self.answer_of(self.ask_for(PROVOKING[kind]))
            self.assertEqual({each["where"] for each in answer["warnings"]}, {"/run/arguments/text"}, kind)

    def test_label_within_a_word(self) -> None:
        """A text that begins with a longer word than the label is shown whole."""
        self.assertEqual(strip_label("Identical requests: 2.", "Identical request"), "Identical requests: 2.")
        self.assertEqual(strip_label("Irreversible. It goes.", "Irreversible"), "It goes.")

    def test_order(self) -> None:
        """The page shows red and amber warnings, then the payload, differences, grey warnings, origin and request."""
        changes = (Change("/args/text", "changed", "a", "b"),)
        run_id = self.ask_for(Request(DECEPTIVE, Precedents(0, True, {}), shown={"changes": changes}))
        text = self.fragment(f"/approvals/{run_id}").text.partition('id="request"')[2]
        parts = (
            'class="title"',
            "Misleading letters</span> <span>",
            'id="argument-0"',
            "Changes since it was last shown",
            "First time</span>",
            "Action file: ",
            'id="steps"',
            "Digest of this request",
        )
        found = [text.index(each) for each in parts]
        self.assertEqual(found, sorted(found), parts)

    def test_note_colours(self) -> None:
        """A note beneath a value has the colour of its warning."""
        for kind, colour in (("letters", "red"), ("order", "amber"), ("recipients", "amber"), ("special", "grey")):
            run_id = self.ask_for(PROVOKING[kind])
            text = self.fragment(f"/approvals/{run_id}").text
            (notes,) = re.findall(r'data-part="note-0">(.*?)</dd>', text, re.DOTALL)
            found = dict(re.findall(r'<span class="(\w+)">([^<]*)</span>', notes))
            self.assertEqual(list(found), ["red", "amber", "grey"])
            self.assertEqual([each for each, words in found.items() if words], [colour], kind)

    def test_new(self) -> None:
        """An argument that was never so before is told beside it on page and terminal."""
        answer = self.answer_of(run_id := self.ask_for(PROVOKING["recipients"]))
        note = "Not used in any of the 3 earlier calls: me@a.example."
        self.assertEqual(answer["novel"], {"text": note})
        self.assertIn(note, read(self.fragment(f"/approvals/{run_id}").text).text)
        for text in self.terminals(answer).values():
            self.assertIn(note, text)

    def test_deceptive(self) -> None:
        """What may mislead in an argument or in the preview is told beneath it on the page and in the terminal."""
        preview = previewed(PreviewField("subject", f"{DECEPTIVE}{' ' * 12}.", missing=False, multiline=False))
        argument = ReviewedArgument("text", "text", DECEPTIVE)
        review = Review(steps=(planned(sent()),), arguments=(argument,), preview=preview)
        run_id = self.ask_for(Request(DECEPTIVE, shown={"review": review}))
        page = read(self.fragment(f"/approvals/{run_id}").text).text
        printed = self.terminals(self.answer_of(run_id))["show"]
        for words in (
            "notifies a group",
            "looks like “general”",
            "invisible or overlapping character",
            "leads to",
            "Contains long runs of whitespace",
        ):
            self.assertIn(words, page)
            self.assertIn(words, printed)
        self.assertEqual(printed.count("looks like “general”"), 3, "beneath each, and as a red warning")
        self.assertLess(printed.index("!! Misleading letters"), printed.index("Arguments"))
        self.assertNotIn("\u200b", printed)
