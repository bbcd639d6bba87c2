"""The page that tries a rule on earlier prompts."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import yaml
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.features.prompts._asks import AskService
from aileron.features.prompts.running import RunningPrompts
from aileron.features.prompts.values import HookCall, HookEvent, PromptSettings
from aileron.model.sessions import Session
from tests.api.case import NOW, running
from tests.features.prompts.case import rule
from tests.features.prompts.test_calls import SECRET
from tests.web.case import WebCase, read

_NPM = "Bash(npm test *)"


class TrialPageTests(WebCase):
    """What is shown of a rule."""

    def setUp(self) -> None:
        super().setUp()
        self.agent()
        self.asking = Session("session-1", "claude", "/home/me/shop", utc(NOW), utc(NOW))
        self.serve()

    def serve(self, **settings: Any) -> None:
        """Have the pages show a service with these settings."""
        given = PromptSettings(**settings)
        self.asks = AskService(given, self.store.audit, self.clock, self.fresh_id, lambda: "http://localhost:1")
        self.build(features=running(RunningPrompts(self.asks)))

    def prompt(self, command: str) -> None:
        """The agent asks."""
        call = HookCall(HookEvent.ASKS, "Bash", {"command": command}, "/home/me/shop", "talk")
        Deferred.fromCoroutine(self.asks.reply(self.asking, "claude", call))

    def tried(self, **query: str) -> str:
        """The text of the page with this query."""
        return read(self.fragment(f"/prompts?{urlencode(query)}").text).text

    def test_answered(self) -> None:
        """What the rule would have answered is counted and listed, the newest first; what is not whole is told."""
        for command in ("npm test a\u202e", "ls", f"npm test --token={SECRET}", "npm test b"):
            self.prompt(command)
        text = self.tried(rule=_NPM)
        self.assertIn(f"{_NPM} would have answered 1 of the last 4.", text)
        self.assertIn("Of 1 the audit log has only a part", text)
        text = self.tried(rule=_NPM, answer="deny")
        self.assertIn("would have answered 2 of the last 4.", text)
        self.assertLess(text.index("npm test b"), text.index("npm test a\\u202e"))
        self.assertNotIn("would have answered 2", self.tried(rule=_NPM, answer="deny", project="/home/you"))
        self.assertNotIn(SECRET, text)

    def test_same(self) -> None:
        """The page and the route that the command asks say the same."""
        for command in ("npm test", "npm test; ls", "npm run x", "npm test x"):
            self.prompt(command)
        for answer in ("allow", "ask", "deny"):
            query = {"rule": _NPM, "answer": answer}
            told = self.operator.ask("GET", f"/v1/asks/trial?{urlencode(query)}", self.operators.log_in()[0]).json
            said = f"{told['rule']} would have answered {len(told['answered'])} of the last {told['tried']}."
            self.assertIn(said, self.tried(**query))

    def test_invalid(self) -> None:
        """What is no rule is refused on the page, and the form has it as it was typed."""
        for query, told in (
            ({"rule": "Bash(x"}, "The rule must be a tool, or a tool and a pattern"),
            ({"rule": "x" * 2000}, "The rule must be a tool, or a tool and a pattern"),
            ({"rule": "Bash", "answer": "maybe"}, "The rule must have one of these answers: allow, ask, deny."),
            ({"rule": "Bash", "project": "shop"}, "The rule must name the whole path of its project."),
        ):
            found = read(self.fragment(f"/prompts?{urlencode(query)}").text)
            self.assertIn(told, found.text)
            self.assertNotIn("would have answered", found.text)
            values = [each.get("value") for tag, each in found.tags if tag == "input"]
            self.assertIn(query["rule"], values)

    def test_form(self) -> None:
        """The form leads to the page itself, sends nothing and needs no login that may decide."""
        found = read(self.fragment("/prompts").text)
        (form,) = [each for tag, each in found.tags if tag == "form"]
        self.assertEqual(form["data-place"], "/prompts")
        self.assertEqual([each for _, each in found.tags if "data-act" in each], [])
        self.assertNotIn("would have answered", found.text)
        self.assertIn("No rules.", found.text)

    def test_written(self) -> None:
        """The line for config.yaml is YAML that says just this rule."""
        words = 'Bash(echo "a: b" #{} *)'
        found = read(self.fragment(f"/prompts?{urlencode({'rule': words, 'answer': 'ask', 'project': '/a b'})}").text)
        (line,) = [each["data-copy"] for _, each in found.tags if each.get("data-copy", "").startswith("- ")]
        self.assertEqual(yaml.safe_load(line), [{"ask": words, "project": "/a b"}])

    def test_rules(self) -> None:
        """The rules of config.yaml are listed, each with a link that tries it as it is."""
        self.serve(rules=(rule("deny", "Bash(rm *)", "/home/me/shop", "No \u202e."),))
        found = read(self.fragment("/prompts").text)
        for words in ("Bash(rm *)", "Deny", "/home/me/shop", "No \\u202e."):
            self.assertIn(words, found.text)
        expected = {"rule": ["Bash(rm *)"], "answer": ["deny"], "project": ["/home/me/shop"]}
        self.assertIn(expected, self.trials("/prompts"))

    def trials(self, path: str) -> list[dict[str, list[str]]]:
        """The queries of the links that try a rule."""
        tags = read(self.fragment(path).text).tags
        return [
            parse_qs(urlsplit(each["href"]).query) for _, each in tags if each.get("href", "").startswith("/prompts?")
        ]

    def test_linked(self) -> None:
        """Each rule that a button of the inbox allows can be tried first; the settings lead to the page."""
        self.prompt("npm test -- x")
        rules = [
            json.loads(each["data-body"])
            for _, each in read(self.fragment("/approvals").text).tags
            if "asks" in each.get("data-act", "")
        ]
        offered = [each["pattern"] for each in rules if "pattern" in each]
        self.assertEqual([each["rule"][0] for each in self.trials("/approvals")], offered)
        self.assertIn('href="/prompts"', self.fragment("/settings").text)
        self.build(features=running())
        self.assertNotIn('href="/prompts"', self.fragment("/settings").text)
