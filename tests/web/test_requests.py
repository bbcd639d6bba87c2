"""How a request is drawn: what is open at a glance, what is folded, and what must be read before."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.model.reviews import Card, Cut, PreviewField, Review, ReviewedArgument, ReviewedRequest
from aileron.review import find_in_cards, find_places
from aileron.web.approvals.requests import is_accounted_for, leaves, to_curl

from .case import Reading, WebCase, planned, previewed, read, sent

KEY = "effect-1.post"
SHOWN = frozenset(leaves({"channel": "#general", "text": 'Dark "mode"', "count": 3}))


def body(**fields: JSON) -> str:
    """A body as it is sent."""
    return json.dumps(fields, separators=(",", ":"))


class AccountedTests(SynchronousTestCase):
    """Whether a request says nothing that does not stand open on the page."""

    def accounted(self, content: JSON, **more: Any) -> bool:
        """Whether a request with this body is."""
        request: ReviewedRequest = sent(content, **more)
        return is_accounted_for(request, SHOWN, KEY)

    def test_shown(self) -> None:
        """Values of the page, a UUID, the effect key and a mark with it behind a value say nothing new."""
        uuid = "123e4567-e89b-12d3-a456-426614174000"
        for content in (
            None,
            body(channel="#general", text='Dark "mode"', deep=[{"count": 3}], left=None),
            body(text='Dark "mode"', id=uuid),
            body(text=f'Dark "mode"\n\n<!-- aileron:{KEY} -->', key=KEY),
            "#general",
        ):
            self.assertTrue(self.accounted(content), content)
        self.assertTrue(self.accounted(None, headers=(("Accept", "text/x"), ("X-Where", "#general"), ("X-New", "1"))))

    def test_new(self) -> None:
        """Anything else does: another text or type, words around a value, a flag, bytes, very long headers or URLs."""
        for content in (
            body(channel="#other"),
            body(count="3"),
            body(count=3.0),
            body(text='Shipped: Dark "mode"'),
            body(text=f'Dark "mode"{"x" * 41}{KEY}'),
            body(text=f'Dark "mode"{KEY}{"x" * 41}'),
            body(text=f"Something else, {'x' * 41} {KEY}"),
            body(delete=True),
            body(**{str(each): KEY for each in range(11)}),
            "channel=%23general",
            {"base64": "/w=="},
            {"parts": [{"name": "text", "text": "#general"}]},
        ):
            self.assertFalse(self.accounted(content), content)
        self.assertFalse(self.accounted(None, headers=(("X-New", "x" * 1000),)))
        self.assertFalse(self.accounted(None, url="https://example.org/" + "x" * 1000))


class CopiedTests(SynchronousTestCase):
    """A request as a command."""

    def test_command(self) -> None:
        """A shell reads it as what is sent, with a placeholder for the credential in each place where one can be."""
        text = body(text="It's $HOME `done`\n", channel="@file")
        words = shlex.split(to_curl(sent(text, method="PUT", url="https://example.org/a?b=[1]")))
        placeholder = "(the credential, added by the daemon)"
        headers = ["--header", "Content-Type: application/json", "--header", f"Authorization: {placeholder}"]
        self.assertEqual(words[:5], ["curl", "--globoff", "--request", "PUT", "https://example.org/a?b=[1]"])
        self.assertEqual(words[5:], [*headers, "--data-raw", text])
        self.assertNotIn(placeholder, to_curl(sent(credential_header=None)))
        for place, written in (
            ({"credential_query": "key"}, f"key={placeholder}"),
            ({"credential_path": "/bot{key}"}, f"https://example.org/bot{placeholder}/api/post"),
        ):
            self.assertIn(written, shlex.split(to_curl(sent(credential_header=None, **place))))

    def test_none(self) -> None:
        """There is none for bytes, parts, a long body, and characters that are not seen in a terminal."""
        contents: tuple[JSON, ...] = ({"base64": "/w=="}, {"parts": []}, "x" * 9000, "one\u202etwo", "\x1b[2J")
        for content in contents:
            self.assertEqual(to_curl(sent(content)), "")


class DrawnTests(WebCase):
    """The same on the page of an approval."""

    def shown(self, content: JSON, text: str = "Dark mode", **more: Any) -> Reading:
        """The page of an approval whose request has this body."""
        run = self.ask(text, review=Review(steps=(planned(sent(content)),), **more))
        return read(self.fragment(f"/approvals/{run.id}").text)

    def marks(self, shown: Reading, name: str) -> dict[str, str]:
        """The attributes of the element of that id; none: it is not there."""
        return next((each for _, each in shown.tags if each.get("id") == name), {})

    def test_folded(self) -> None:
        """What repeats the arguments is folded under its method and URL, and nobody has to read it twice."""
        shown = self.shown(body(text="x" * 2000), "x" * 2000)
        self.assertIn("id", self.marks(shown, "sent-1"))
        self.assertEqual(self.marks(shown, "request-1")["data-label"], "")
        self.assertEqual(self.marks(shown, "argument-0")["data-label"], "text")
        self.assertIn("POST https://example.org/api/post", shown.text)

    def test_headers(self) -> None:
        """A header whose value stands nowhere else stands beside the fold."""
        headers = (("Accept", "text/x"), ("X-Where", "Dark mode"), ("X-New", "2022-11-28"))
        run = self.ask(review=Review(steps=(planned(sent(headers=headers)),)))
        text = self.fragment(f"/approvals/{run.id}").text
        summary = text[text.index('id="sent-1"') :].partition("</summary>")[0]
        self.assertIn('<code class="header">X-New: 2022-11-28</code>', summary)
        self.assertEqual(summary.count("header"), 1)

    def test_open(self) -> None:
        """What says more stands open, cannot be closed, and is to be read to its end."""
        shown = self.shown(body(text="Shipped: " + "x" * 2000), "x" * 2000)
        self.assertEqual(self.marks(shown, "sent-1"), {})
        box = self.marks(shown, "request-1")
        self.assertEqual((box["class"], box["data-label"]), ("text code long", "request 1"))

    def test_parts(self) -> None:
        """An upload stands open, each part with its type, size, digest and text."""
        part: JSON = {
            "name": "report",
            "filename": "r.csv",
            "type": "text/csv",
            "text": "a\u202eb",
            "size": 5,
            "digest": "d",
        }
        shown = self.shown({"parts": [part]})
        self.assertEqual(self.marks(shown, "sent-1"), {})
        for text in ("r.csv", "text/csv", "a\\u202eb"):
            self.assertIn(text, shown.text)

    def test_preview(self) -> None:
        """What the preview shows counts as shown, but not what it has cut."""
        for cut, folded in ((None, True), (Cut(70000, "sha256:x"), False)):
            line = PreviewField("Tie", "etag-7", missing=False, multiline=False, cut=cut)
            shown = self.shown(body(tie="etag-7"), preview=previewed(line))
            self.assertEqual("id" in self.marks(shown, "sent-1"), folded)

    def test_coloured(self) -> None:
        """JSON is coloured by classes of the stylesheet, host and method stand out, and the text stays as it was."""
        text = self.fragment(
            f"/approvals/{self.ask(review=Review(steps=(planned(sent(body(a='x: 1', n=-2.5, t=True))),))).id}"
        ).text
        for part in (
            "<b>POST</b> https://<strong>example.org</strong>/api/post",
            '<span class="key">Content-Type</span>: application/json',
            '<span class="key">"a"</span>: <span class="string">"x: 1"</span>',
            '<span class="literal">-2.5</span>',
            '<span class="literal">true</span>',
        ):
            self.assertIn(part, text)

    def test_large(self) -> None:
        """A very large body is not coloured, and shown in full."""
        shown = self.shown(body(text="\n".join("x" * 15000)))
        self.assertNotIn("string", [each.get("class") for _, each in shown.tags])
        self.assertIn("x\\n" * 14999, shown.text)


class CardTests(WebCase):
    """What is sent, as what it is."""

    CARD = Card("post", "message", (("to", ("#general",)), ("text", ("Shipped: Dark mode",))))

    def shown(self, *cards: Card, text: str = "Dark mode", **more: Any) -> Reading:
        """The page of an approval with these cards."""
        run = self.ask(text, **more)
        self.runner.shown_cards[run.id] = cards
        return read(self.fragment(f"/approvals/{run.id}").text)

    def test_message(self) -> None:
        """Each part stands under its name, the place in the heading too; what the card shows otherwise stays open."""
        shown = self.shown(self.CARD)
        words = re.sub(r"\s+", " ", shown.text)
        self.assertIn("You want to run ship-update · #general", words)
        self.assertIn("MessageTo #generalText Shipped: Dark mode", words)
        self.assertNotIn("Raw arguments", words)
        self.assertIn("Arguments text Dark mode", words)

    def test_raw(self) -> None:
        """An argument that stands in the card as it is can be unfolded, and is to be read in the card alone."""
        long = "x" * 2000
        shown = self.shown(Card("post", "message", (("text", (long,)),)), text=long)
        labels = {each["id"]: each["data-label"] for _, each in shown.tags if "data-label" in each}
        self.assertEqual((labels["card-post-text"], labels["argument-0"]), ("Text", ""))
        self.assertIn("Raw arguments", shown.text)
        self.assertNotIn("Arguments\n", shown.text)

    def test_cautions(self) -> None:
        """The words of a card mislead as little as those of an argument, and none of them acts."""
        shown = self.shown(Card("post", "message", (("text", ("<b>\u202e<!channel> #g\u0435neral",)),)))
        for words in ("<b>\\u202e<!channel>", "notifies a group", "invisible", "looks like “general”"):
            self.assertIn(words, shown.text)
        self.assertEqual([tag for tag, _ in shown.tags if tag == "b"], [])

    def test_found(self) -> None:
        """An argument is folded if its whole value is a part, alone of all arguments, and no slash raises doubts."""
        issue = Card("x", "issue", (("repository", ("octo", "hello")), ("number", (7,)), ("title", ("A",))))
        doubtful = Card("x", "issue", (("repository", ("octo/a", "hello")),))
        cases: tuple[tuple[dict[str, JSON], list[Card], set[str]], ...] = (
            (
                {"owner": "octo", "repo": "hello", "n": 7, "title": "A", "more": "B"},
                [issue],
                {"owner", "repo", "n", "title"},
            ),
            ({"n": "7", "t": True}, [issue], set()),
            ({"owner": "octo", "also": "octo"}, [issue], set()),
            ({"owner": "octo/a", "repo": "hello"}, [doubtful], set()),
        )
        for arguments, cards, found in cases:
            given = [ReviewedArgument(name, name, value) for name, value in arguments.items()]
            self.assertEqual(find_in_cards(given, cards), found, arguments)
        self.assertEqual([*find_places([issue, doubtful, self.CARD])], ["octo/hello", "octo/a/hello", "#general"])
        self.assertEqual([*find_places([Card("x", "mail", (("to", ("x" * 61,)),)), Card("x", "file", ())])], [])
