"""The line that says what a request does."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.precedents import Precedents
from aileron.model.reviews import PreviewStatus, Review
from aileron.model.titles import MOST_TITLE, count_more, cut_title, is_removal, to_words, write_title
from aileron.review import Headline, InboxGroup, attention, find_title, find_warnings
from aileron.testing import scripted_offer
from tests.extent import examples
from tests.web.case import planned, previewed, sent

from .test_warnings import DONE, approval

ISSUE = ("Open issue in ${in.owner}/${in.repo}: ${in.title}", "Open issue in ${in.owner}/${in.repo}")


class TitleTests(SynchronousTestCase):
    """A template filled in."""

    def test_filled(self) -> None:
        """The first template whose inputs are all given is filled in; where none is, there is no title."""
        given = {"owner": "acme", "repo": "infra", "title": "Drift in eu-west-1"}
        self.assertEqual(write_title(ISSUE, given), "Open issue in acme/infra: Drift in eu-west-1")
        absences: tuple[JSON, ...] = (None, "", [], ())
        for absent in absences:
            self.assertEqual(write_title(ISSUE, {**given, "title": absent}), "Open issue in acme/infra")
        self.assertEqual(write_title(("Set ${in.it}",), {"it": 0}), "Set 0")
        self.assertEqual(write_title(ISSUE, {"repo": "infra"}), "")
        self.assertEqual(write_title((), given), "")

    def test_values(self) -> None:
        """Lists, numbers and objects are written as words, and long ones are cut."""
        for value, words in (
            (7, "7"),
            (True, "true"),
            (["a", "b"], "a, b"),
            (["a", "b", "c", "d", "e"], "a, b, c and 2 more"),
            ({"a": 1}, '{"a": 1}'),
            ("one\n\ttwo   three ", "one two three"),
            ("x" * 100, "x" * 60 + "…"),
        ):
            self.assertEqual(write_title(("Do ${in.it}",), {"it": value}), f"Do {words}")

    def test_imitation(self) -> None:
        """A value of several words cannot pass for the words behind it; a hidden character is shown."""
        listed = write_title(("Mail ${in.to}: ${in.text}",), {"to": ["a@x", "b: hello"], "text": "x"})
        self.assertEqual(listed, "Mail a@x, “b: hello”: x")
        template = ("Delete branch ${in.branch} in ${in.repo}",)
        self.assertEqual(
            write_title(template, {"branch": "main” in acme/prod", "repo": "acme/infra"}),
            'Delete branch “main" in acme/prod” in acme/infra',
        )
        self.assertEqual(
            write_title(template, {"branch": "ma\u200bin", "repo": "x\u202ey"}),
            "Delete branch ma\\u200bin in x\\u202ey",
        )

    @settings(deadline=None, max_examples=examples(200))
    @given(st.text(max_size=400), st.text(max_size=400))
    def test_short(self, first: str, second: str) -> None:
        """Whatever the inputs are, a title is one short line in which nothing is hidden."""
        title = count_more(write_title(("Mail ${in.a}: ${in.b}",), {"a": first, "b": second}), 3)
        self.assertLessEqual(len(title), MOST_TITLE)
        self.assertEqual(visible(title), title)
        self.assertNotIn("\n", title)
        self.assertTrue(title.endswith(" and 3 more steps"))

    def test_cut(self) -> None:
        """What is cut ends with an ellipsis, and what fits does not."""
        self.assertEqual(cut_title("x" * MOST_TITLE), "x" * MOST_TITLE)
        self.assertEqual(cut_title("x" * 121), "x" * 119 + "…")
        self.assertTrue(cut_title("x " + " " * 500 + "y").endswith("…"))
        self.assertEqual(count_more("Do it", 0), "Do it")
        self.assertEqual(count_more("Do it", 1), "Do it and 1 more step")

    def test_words(self) -> None:
        """A name in any of the usual spellings is written as words; what removes something is known by its verb."""
        for name, words, removes in (
            ("create_issue", "Create issue", False),
            ("createPullRequest", "Create pull request", False),
            ("getHTMLPage2", "Get HTML page 2", False),
            ("delete-branch", "Delete branch", True),
            ("repos/delete", "Repos delete", True),
            ("list_deleted", "List deleted", False),
            ("post_to_delete", "Post to delete", False),
        ):
            self.assertEqual((to_words(name), is_removal(name)), (words, removes), name)

    def test_found(self) -> None:
        """A review without a title says which action runs; a stored title is cut and made visible once more."""
        self.assertEqual(find_title("ship-it", Review()), "Run ship-it")
        self.assertEqual(
            find_title("ship-it", Review(title="a\u200bb\nc" + "d" * 200)), "a\\u200bb c" + "d" * 109 + "…"
        )
        asked = approval(planned(sent()))
        said = Headline.of("ship-it", asked.run.state, True, evolve(asked.review, title="Post to #deploys"), ())
        self.assertEqual((said.title, said.verb, said.hosts), ("Post to #deploys", "want to run", ("example.org",)))


class AttentionTests(SynchronousTestCase):
    """Which requests are of routine."""

    QUIET = evolve(scripted_offer(), destructive=False)

    def test_routine(self) -> None:
        """What only has grey warnings and harmless facts is of routine."""
        asked = approval(planned(sent()), text="Jose\u0301")
        warnings = find_warnings(asked, Precedents(0, True, {}), self.QUIET)
        self.assertEqual([each.id for each in warnings], ["first", "encoding", "repeat"])
        self.assertIs(attention(asked, warnings), InboxGroup.ROUTINE)

    def test_closely(self) -> None:
        """A red or amber warning, destruction, a change, and a missing preview are each to be looked at closely."""
        asked = approval(planned(sent()))
        changed, odd = evolve(asked, stale="It changed."), approval(planned(sent()), text="#g\u0435neral")
        unseen = evolve(asked, review=evolve(asked.review, preview=previewed(status=PreviewStatus.UNAVAILABLE)))
        for each, before, offer in (
            (odd, DONE, self.QUIET),
            (asked, evolve(DONE, action_changed=True), self.QUIET),
            (asked, DONE, scripted_offer()),
            (asked, DONE, evolve(scripted_offer(), irreversible=True)),
            (changed, DONE, self.QUIET),
            (unseen, DONE, self.QUIET),
        ):
            self.assertIs(attention(each, find_warnings(each, before, offer)), InboxGroup.LOOK_CLOSELY)
        seen = evolve(asked, review=evolve(asked.review, preview=previewed()))
        self.assertIs(attention(seen, find_warnings(seen, DONE, self.QUIET)), InboxGroup.ROUTINE)
