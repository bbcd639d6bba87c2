"""The listings of the page on writing actions are what they say."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import KnownValues, check_arguments, parse, resolve
from aileron.base.json import JSON
from aileron.model.actions import Action
from aileron.model.errors import InvalidRequest

from .files import action

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "writing-an-action.md"
LISTING = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class PageTests(SynchronousTestCase):
    """C{doc/writing-an-action.md}."""

    def setUp(self) -> None:
        self.page = PAGE.read_text("utf-8")
        self.listings = LISTING.findall(self.page)

    def actions(self) -> list[Action]:
        return [parse(text.encode(), "page") for kind, text in self.listings if kind == "text"]

    def test_actions(self) -> None:
        """Every action of the page loads."""
        self.assertEqual([made.name for made in self.actions()], ["ship-update", "open-ticket"])

    def test_schema(self) -> None:
        """The schema of the page is that of its first action."""
        (schema,) = (text for kind, text in self.listings if kind == "json")
        self.assertEqual(json.loads(schema), self.actions()[0].input_schema)

    def test_references(self) -> None:
        """The second action is filled in as the page says."""
        made = self.actions()[1]
        arguments = check_arguments(made, {"title": "It breaks", "assignee": "ann@example.org"})
        filled = resolve(made.steps[1], KnownValues(arguments, {"who": {"users": [{"id": "U1"}]}}))
        self.assertEqual(filled, {"heading": "bug: It breaks", "weight": 3, "owner": "U1"})

    def test_own_schemas(self) -> None:
        """The inputs that the page shows by themselves load, and take and refuse what it says."""
        schemas, asking = (action(text) for kind, text in self.listings if kind == "toml" and "[[inputs]]" in text)
        right: JSON = {"team": "core", "areas": ["api", "docs"], "place": {"host": "a.example", "port": 80}}
        self.assertEqual(check_arguments(schemas, right), right)
        wrong: JSON = {"team": "x", "areas": ["api", "api"], "place": {"host": "A", "port": 0, "x": 1}}
        refused: InvalidRequest = self.assertRaises(InvalidRequest, check_arguments, schemas, wrong)
        problems: Any = refused.details["problems"]
        self.assertEqual(len(problems), 5)
        self.assertEqual([one.ask for one in asking.inputs], [True, True])
        self.assertEqual(check_arguments(asking, {"channels": ["C2"]}), {"severity": "low", "channels": ["C2"]})

    def test_every_key_is_there(self) -> None:
        """No key is left unexplained."""
        words = (
            "name version source timeout_seconds intent hash capabilities type description label required default enum "
        )
        words += "minimum maximum max_length format multiline items_type schema ask id connector op idempotent inputs "
        words += "expires_after args render undo_seconds cool_down on_cancel per_argument"
        for word in words.split():
            self.assertIn(f"{word}`", self.page)
