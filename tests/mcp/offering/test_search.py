"""Finding actions."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import text
from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp.offering.access import find_action, render_action, render_matches
from aileron.mcp.offering.search import MOST_FOUND, ActionIndex
from tests.mcp.case import action

CARDS = read_definitions(
    [
        action("mail-send", description="# Send a mail\n\nTo one person, or to a list."),
        action("mail-list", description="# Mails\n\nLists what came."),
        action(
            "deploy",
            description="# Deploy\n\nShips it, and tells the team by mail.",
            gated=True,
            input_schema={"type": "object", "properties": {"branch": {"description": "What to check out"}}},
        ),
        action("requests", description="# 列出请求\n\n显示仓库的拉取请求。"),
        action("straße", tool_name="street", description="# Straße\n\nFinds a street."),
    ]
)


class SearchTests(SynchronousTestCase):
    """By words."""

    def setUp(self) -> None:
        """An index that is empty."""
        self.index = ActionIndex()

    def found(self, query: str) -> list[str | None]:
        """The actions that a query finds."""
        return [definition.action for definition in self.index.search(CARDS, query, MOST_FOUND)]

    def test_order(self) -> None:
        """A name and a title count more than the text, and a whole word more than the beginning of one.

        The beginning of a word finds it, in any case that Unicode folds and with any accents; its middle does not,
        but in scripts without spaces.
        """
        for query, found in (
            ("SEND mail!", ["mail-send", "mail-list", "deploy"]),
            ("list", ["mail-list", "mail-send"]),
            ("dep", ["deploy"]),
            ("ploy", []),
            ("sh", []),
            ("STRASSE", ["straße"]),
            ("dêploy", ["deploy"]),
            ("branch", ["deploy"]),
            ("请求", ["requests"]),
        ):
            self.assertEqual(self.found(query), found)

    def test_synonyms(self) -> None:
        """What is asked for by another usual word is found, behind what has the word itself."""
        self.assertEqual(self.found("show"), ["mail-list", "mail-send"])
        self.assertEqual(self.found("write mail")[0], "mail-send")
        cards = read_definitions([action("a-list"), action("b-show")])
        self.assertEqual([each.action for each in self.index.search(cards, "show", 2)], ["b-show", "a-list"])

    def test_other_actions(self) -> None:
        """Other actions are searched as soon as they are offered, and none that are gone are found."""
        self.assertEqual(self.found("deploy"), ["deploy"])
        others = read_definitions([action("release", description="# Release\n\nDeploys a release.")])
        self.assertEqual([each.action for each in self.index.search(others, "deploy", MOST_FOUND)], ["release"])

    @given(text() | text("\"'*:^+-(){}NEAR ANDORT\0", max_size=40))
    def test_any_query(self, query: str) -> None:
        """No query is an error, whatever syntax of a search stands in it, and each finds only what is there."""
        self.assertLessEqual(set(self.found(query)), {card.action for card in CARDS})

    def test_syntax(self) -> None:
        """Operators, columns and quotation marks are words or nothing."""
        for query in (
            '"deploy" NOT mail',
            "title:deploy",
            "deploy AND zebra",
            "deploy*) OR (zebra",
            "NEAR(deploy zebra)",
        ):
            self.assertIn("deploy", self.found(query))

    def test_long_query(self) -> None:
        """Of a query without end, only the beginning counts."""
        self.assertEqual(self.found("zebra " * 100_000 + "deploy"), ["deploy"])
        self.assertEqual(self.found(" ".join(f"w{number}" for number in range(100)) + " deploy"), [])

    def test_answer(self) -> None:
        """What is found is told on a line each, with its need of approval; of many the best, long ones cut."""
        text = render_matches(self.index, CARDS, "deploy").text
        self.assertIn("- deploy: Deploy. Ships it, and tells the team by mail. (needs approval)", text)
        many = read_definitions([action(f"a-{number:02}") for number in range(MOST_FOUND + 3)])
        lines = render_matches(self.index, many, "update").text.splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("- a-")]), MOST_FOUND)
        self.assertIn("More actions have some of these words. Add words to narrow the search.", lines)
        long = read_definitions([action(description="# T\n\n" + "word " * 500)])
        self.assertLess(len(render_matches(self.index, long, "word").text), 400)

    def test_nothing(self) -> None:
        """No hit is told as such; a query that is none is an error."""
        self.assertFalse(render_matches(self.index, CARDS, "zebra").is_error)
        for query in (None, "", " ", 7, ["a"]):
            self.assertTrue(render_matches(self.index, CARDS, query).is_error)

    def test_unavailable(self) -> None:
        """Where SQLite has no full-text index, the answer is an error that says what to do."""
        result = render_matches(ActionIndex("no_such_module"), CARDS, "deploy")
        self.assertTrue(result.is_error)
        self.assertIn("AILERON_LISTED_ACTIONS", result.text)


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
