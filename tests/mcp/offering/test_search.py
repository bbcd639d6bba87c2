"""Finding actions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp.offering.access import MOST_FOUND, find_action, render_action, render_matches, search
from tests.mcp.case import action

CARDS = read_definitions(
    [
        action("mail-send", description="# Send a mail\n\nTo one person, or to a list."),
        action("mail-list", description="# Mails\n\nLists what came."),
        action("deploy", description="# Deploy\n\nShips it, and tells the team by mail.", gated=True),
        action("straße", tool_name="street", description="# Straße\n\nFinds a street."),
    ]
)


class SearchTests(SynchronousTestCase):
    """By words."""

    def test_order(self) -> None:
        """A name counts more than a title, that more than the text; equals are in the order of their names.

        The beginning of a word finds it, in any case that Unicode folds; its middle does not.
        """
        for query, found in (
            ("mail", ["mail-list", "mail-send", "deploy"]),
            ("SEND mail!", ["mail-send", "mail-list", "deploy"]),
            ("list", ["mail-list", "mail-send"]),
            ("dep", ["deploy"]),
            ("ploy", []),
            ("STRASSE", ["straße"]),
        ):
            self.assertEqual([definition.action for definition in search(CARDS, query)], found)

    def test_answer(self) -> None:
        """What is found is told on a line each, with its need of approval; of many the best, long ones cut."""
        text = render_matches(CARDS, "deploy").text
        self.assertIn("- deploy: Deploy. Ships it, and tells the team by mail. (needs approval)", text)
        many = read_definitions([action(f"a-{number:02}") for number in range(MOST_FOUND + 3)])
        lines = render_matches(many, "update").text.splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("- a-")]), MOST_FOUND)
        self.assertIn("3 more have some of these words.", lines)
        long = read_definitions([action(description="# T\n\n" + "word " * 500)])
        self.assertLess(len(render_matches(long, "word").text), 400)

    def test_nothing(self) -> None:
        """No hit is told as such; a query that is none is an error."""
        self.assertFalse(render_matches(CARDS, "zebra").is_error)
        for query in (None, "", " ", 7, ["a"]):
            self.assertTrue(render_matches(CARDS, query).is_error)


class NamedTests(SynchronousTestCase):
    """By name."""

    def test_either_name(self) -> None:
        """An action is named by its own name or by its tool's."""
        for name in ("mail-send", "mail_send"):
            definition = find_action(CARDS, name)
            assert isinstance(definition, ToolDefinition)
            self.assertEqual(definition.action, "mail-send")

    def test_none(self) -> None:
        """Whatever names none is an error that tells how to find one."""
        for name in ("nothing", "", None, 7, ["deploy"]):
            result = find_action(CARDS, name)
            assert not isinstance(result, ToolDefinition)
            self.assertTrue(result.is_error)
            self.assertIn("search_actions", result.text)

    def test_document(self) -> None:
        """A document tells title, text, names, approval, and the schemas."""
        (definition,) = read_definitions(
            [action(gated=True, output_schema={"type": "object", "title": "What came of it"})]
        )
        text = render_action(definition)
        for part in (
            "# Ship update",
            "Posts a message.",
            "`ship-update`",
            "`ship_update`",
            "after the user's approval",
        ):
            self.assertIn(part, text)
        for part in ('"text"', "What came of it"):
            self.assertIn(part, text)
