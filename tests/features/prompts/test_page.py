"""The agents' own permission prompts on the page of approvals."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.features.prompts._asks import AskService
from aileron.features.prompts.page import MOST_DRAWN
from aileron.features.prompts.running import RunningPrompts
from aileron.features.prompts.values import AskAnswer, HookCall, HookEvent, PromptSettings
from aileron.model.sessions import Session
from tests.api.case import NOW, running
from tests.features.prompts.case import OPERATOR
from tests.web.case import WebCase, read


class AsksTests(WebCase):
    """What is shown of them."""

    def setUp(self) -> None:
        super().setUp()
        self.agent()
        self.asking = Session("session-1", "claude", "/home/me", utc(NOW), utc(NOW))
        self.asks = AskService(
            PromptSettings(), self.store.audit, self.clock, self.fresh_id, lambda: "http://localhost:1"
        )
        self.build(features=running(RunningPrompts(self.asks)))

    def prompt(self, **given: Any) -> None:
        """The agent asks."""
        call = HookCall(HookEvent.ASKS, "Bash", given, "/home/me/\u202eshop", "talk")
        Deferred.fromCoroutine(self.asks.reply(self.asking, "claude", call))

    def acts(self) -> list[tuple[str, Any]]:
        """What buttons and forms send."""
        tags = read(self.fragment("/approvals").text).tags
        return [
            (each["data-act"], json.loads(each["data-body"])) for _, each in tags if "asks" in each.get("data-act", "")
        ]

    def test_shown(self) -> None:
        """A prompt is shown apart from approvals, as what it is, whole, with four answers; none has a digest."""
        self.prompt(command="npm test -- x\n\u202ey", description="Runs <b>tests</b>")
        page = self.fragment("/approvals")
        text = read(page.text).text
        for words in (
            "Asked by the agents themselves · 1",
            "claude asks to use Bash in /home/me/\\u202eshop",
            "approves no effect of your actions",
            "does not protect you",
            "\\u202ey",
            "Runs <b>tests</b>",
        ):
            self.assertIn(words, text)
        self.assertNotIn("digest", page.text)
        self.assertNotIn("Routine", text)
        ask_id = self.asks.list()[0].id
        path = f"POST /v1/asks/{ask_id}/answer"
        self.assertEqual(self.acts(), [(path, {"answer": "once"}), (path, {"answer": "deny"})])

    def test_patterns(self) -> None:
        """The rule that a button allows for the session stands beside it."""
        self.prompt(command="npm test -- x")
        bodies = [body for _, body in self.acts()]
        rules = ["Bash(npm test -- x)", "Bash(npm test *)"]
        session = [{"answer": "session", "pattern": each} for each in rules]
        self.assertEqual(bodies, [{"answer": "once"}, *session, {"answer": "deny"}])
        text = read(self.fragment("/approvals").text).text
        for each in rules:
            self.assertIn(each, text)

    def test_who_answers(self) -> None:
        """Every answer is off where somebody only watches."""
        self.prompt(command="npm test")
        tags = [each for _, each in read(self.fragment("/approvals").text).tags if "asks" in each.get("data-act", "")]
        self.assertEqual({each.get("data-decides") for each in tags}, {"yes"})

    def test_none(self) -> None:
        """Without a prompt that waits nothing is shown; it is no pending approval."""
        self.assertIn("No pending approvals", self.fragment("/approvals").text)
        self.prompt(command="npm test")
        self.assertEqual(self.fragment("/approvals").headers["x-aileron-waiting"], "0")
        Deferred.fromCoroutine(self.asks.answer(self.asks.list()[0].id, AskAnswer.DENY, OPERATOR))
        self.assertNotIn("Asked by", self.fragment("/approvals").text)
        self.build(features=running())
        self.assertNotIn("Asked by", self.fragment("/approvals").text)

    def test_many(self) -> None:
        """Of many the first are drawn."""
        for number in range(MOST_DRAWN + 2):
            self.prompt(command=f"npm test {number}")
        page = self.fragment("/approvals").text
        self.assertEqual(page.count("Allow once"), MOST_DRAWN)
        self.assertIn("2 more", page)
