"""How a foreign text is read, and what is said beside it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.text import visible
from aileron.review import MOST_MARKS, MOST_PLACES, addresses, markup
from aileron.web.approvals.reading import reading
from tests.extent import examples


class ReadingTests(SynchronousTestCase):
    """What must be read to its end, and what is noted of hidden characters."""

    def test_short(self) -> None:
        """A short plain text needs no word."""
        found = reading("Dark mode\nand search")
        self.assertEqual(
            (found.text, found.size, found.must_read, found.notes), ("Dark mode\nand search", "", False, "")
        )
        self.assertTrue(found.harmless)

    def test_harmless(self) -> None:
        """Honest values in any language can be decided at a glance; disguised, piled or covered ones cannot."""
        for text in ("нет", "Добрый вечер, это обычный текст", "Kære Ærø", "cœur", "Satış", "Γειά", "会议", "20 m²"):
            self.assertTrue(reading(text).harmless, text)
        for text in ("рауре ж", "evil。com", "/etc／passwd", "1․000", "a" + "\u0301" * 3, "a\u20dd", "#сор", "paypaı"):
            self.assertFalse(reading(text).harmless, text)
        for text, said in (("#g\u0435neral", "looks like “general”"), ("שלום", "right-to-left")):
            self.assertIn(said, reading(text).notes)

    def test_long(self) -> None:
        """More than 1000 characters or 20 lines are read to their end; bytes and lines are told."""
        for text, size in (
            ("é" * 1001, "2,002 bytes, 1 line"),
            ("\n".join("x" * 21), "41 bytes, 21 lines"),
            ({"a": "x" * 1001}, "1,014 bytes, 3 lines"),
        ):
            found = reading(text)
            self.assertTrue(found.must_read)
            self.assertEqual(found.size, f"{size}, shown in full")
        for short in ("x" * 1000, "\n".join("x" * 20)):
            self.assertFalse(reading(short).must_read)

    def test_blanks(self) -> None:
        """Blanks that push words out of sight make it one to read to its end, wherever they are."""
        for text in ("a" + " " * 10 + "b", "a\n\n\n\nb", "\n\n\nb", "a\n  \n \n\nb", "a\n\n\n\n"):
            found = reading(text)
            self.assertTrue(found.must_read, repr(text))
            self.assertIn("long runs of whitespace", found.notes)
            self.assertNotEqual(found.size, "")
        for text in ("a" + " " * 9 + "b", "a\n\n\nb"):
            self.assertFalse(reading(text).must_read, repr(text))

    def test_unseen(self) -> None:
        """Characters that nobody would see are counted, and those that turn the reading round are told apart."""
        notes = reading("a\u200bb\u200bc").notes
        self.assertIn("Contains 2 invisible or overlapping characters, shown as \\u200b or similar.", notes)
        self.assertNotIn("direction", notes)
        covered = reading("pay n\u0336o\u0336t\u0336 me")
        self.assertEqual((covered.text, covered.harmless), ("pay n\\u0336o\\u0336t\\u0336 me", False))
        self.assertIn("3 invisible or overlapping characters", covered.notes)
        self.assertIn("Contains 1 invisible or overlapping character,", reading("\u202egnp").notes)
        for mark in "\u202e\u2066\u200f":
            self.assertIn("Some change the reading direction.", reading({"deep": [mark]}).notes, repr(mark))

    def test_keys(self) -> None:
        """What stands in a key misleads as well as in a value."""
        for key, said in (
            ("p\u0430ypal", "looks like “paypal”"),
            ("a\u200bb", "invisible"),
            ("<!channel>", "notifies a group"),
            ("e\u0301", "Not in composed form"),
        ):
            found = reading({"deep": [{key: 1}]})
            self.assertIn(said, found.notes)
            self.assertFalse(found.harmless)

    def test_not_composed(self) -> None:
        """A text that is not in composed form is told, since it looks like another."""
        self.assertIn("NFC", reading("e\u0301").notes)
        self.assertEqual(reading("\u00e9").notes, "")

    def test_many_notes(self) -> None:
        """Of many notes of a kind the first are there, and that there are more."""
        found = reading(" ".join(f"<@U{number}>" for number in range(10))).notes
        self.assertEqual(found.count("notifies a person"), 6)
        self.assertIn("More warnings about markup are not listed.", found)

    @settings(deadline=None, max_examples=examples(200))
    @given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
    def test_visible(self, value: Any) -> None:
        """Whatever it is, nothing that is said of it acts or hides."""
        found = reading(value)
        for text in (found.text, found.notes):
            self.assertEqual(visible(text, multiline=True), text)


class MarkupTests(SynchronousTestCase):
    """What a service makes of it."""

    def test_notifies(self) -> None:
        """Marks that notify people are told."""
        for text in ("<!channel>", "<!here|here>", "<!everyone>", "<!subteam^S01>", "@everyone", "hi @here!"):
            self.assertIn("notifies a group", " ".join(markup(text)), text)
        for text in ("<@U012AB>", "<@U012AB|ann>", "<@!123>", "<@&456>"):
            self.assertIn("notifies a person", " ".join(markup(text)), text)
        self.assertEqual(list(markup("ann@here.example and @everyoneelse, <!hereabouts, <@Override>")), [])

    def test_labels(self) -> None:
        """A label, however long and whatever is in it, hides no mark that notifies people; nor do capitals."""
        for label in ("|a<b>", f"|{'x' * 81}>", f"|{'x' * 5000}>", "|a\nb>", "|", " >"):
            for sign in ("<!here", "<!channel", "<!everyone", "<!subteam^S01", "<!HERE", "<!Channel"):
                self.assertIn("notifies a group", "".join(markup(sign + label)), sign + label)
            self.assertIn("notifies a person", "".join(markup("<@U012AB" + label)), label)
        self.assertIn("notifies a group", "".join(markup("Hi @Channel")))

    def test_links(self) -> None:
        """A link that does not read as it leads is told, in the ways of Slack, Markdown and HTML."""
        for text in (
            "<http://evil.example/x|our wiki>",
            "[our wiki](http://evil.example/x)",
            "[our wiki](http://evil.example/x 'title')",
            "Read [our wiki][].\n\n[our wiki]: http://evil.example/x",
            "[our wiki]\n> - [our wiki]:\n  http://evil.example/x 'title'",
            '<a class="x" href="http://evil.example/x">our wiki</a>',
            "<A HREF=http://evil.example/x>our wiki</A>",
            '<a href=" http://evil.example/x">our wiki</a>',
            "<a href = ' \n http://evil.example/x '>our wiki</a>",
            '<area href="http://evil.example/x">our wiki</area>',
        ):
            (found,) = markup(text)
            self.assertEqual(found, "A link shows “our wiki” but leads to “http://evil.example/x”.", text)

    def test_honest_links(self) -> None:
        """A link that reads as it leads needs no word."""
        for text in (
            "<https://a.example/|a.example>",
            "[https://a.example](https://a.example/)",
            "<mailto:ann@a.example|ann@a.example>",
            "https://a.example",
            "<HTTPS://A.example|a.example>",
            "[a.example]: https://a.example",
            "See [1]: it is there.\n[INFO]: all is well",
            '<a href=" https://a.example "> https://a.example </a>',
        ):
            self.assertEqual(list(markup(text)), [], text)

    def test_hidden_links(self) -> None:
        """So is one whose form is unusual: a service may draw it all the same."""
        target = "http://evil.example/x"
        for text in (
            f"[our\nwiki]({target})",
            f"[our [new] wiki]({target})",
            f"[![](p.png)]({target})",
            f"[our wiki]( \n {target})",
            f"[our wiki]({target} '{'t' * 3000}')",
            f"[a](b [our wiki]({target}))",
            f"<{target}|{'our wiki ' * 100}>",
            f"<{target}|our <wiki>",
            f"<{target}|our\nwiki>",
            f"[our \\] wiki]: {target}",
            f'<a title=">" href="{target}">our wiki</a>',
            f'<a title="<img " href="{target}">our wiki</a>',
            f'<a href="{target}"><b>our wiki</b></a>',
            f"<a {'x' * 3000} href={target}>our wiki</a>",
            f"<a href={target} <a >our wiki</a>",
        ):
            self.assertIn(f"leads to “{target}”", "\n".join(markup(text)), text[:60])
        for scheme in ("HTTPS://", "Http://", "MailTo:", "FTP://"):
            self.assertIn(f"leads to “{scheme}evil.example”", "".join(markup(f"<{scheme}evil.example|our wiki>")))

    def test_long(self) -> None:
        """A target of any length is told, as far as anybody reads, and is never the same as words that are not."""
        (found,) = markup(f"[{'a' * 400}]({'a' * 5000})")
        self.assertTrue(found.endswith(f"leads to “{'a' * 400}…”."), found)
        self.assertEqual(list(markup(f"[{'a' * 5000}]({'a' * 5000})")), [])

    def test_too_many(self) -> None:
        """Where more stand in a text than are looked at, it is told: one that misleads may be among the others."""
        for mark in ("[a](a) ", "<https://a/|a> ", "<a href=a>a</a>"):
            honest, misleading = mark * (MOST_MARKS - 1), mark.replace("a", "b", 1).replace("<b", "<a")
            self.assertEqual(list(markup(honest + mark)), [], mark)
            self.assertIn("were not checked", "".join(markup(honest + mark + misleading)), mark)
            self.assertFalse(reading(honest + mark + misleading).harmless)

    def test_pictures(self) -> None:
        """A picture, or whatever else a tag fetches, tells its sender who looks; a form says where it is sent."""
        url = "http://evil.example/p.png"
        for text in (
            f"![x]({url})",
            f'<img alt="" src="{url}">',
            f'<img srcset=" {url} 2x">',
            f"<iframe src={url}>",
            f"<video poster = '{url}'>",
            f"<table background={url}>",
        ):
            self.assertEqual(list(markup(text)), [f"Loads an image or other resource from “{url}”."], text)
        for text in ("<form action='//evil.example/x'>", "<button formaction=//evil.example/x>"):
            self.assertEqual(list(markup(text)), ["Contains a form that is sent to “//evil.example/x”."], text)


class AddressTests(SynchronousTestCase):
    """Addresses that need a second look."""

    def test_plain(self) -> None:
        """Plain addresses, and letters beyond ASCII elsewhere, need no word."""
        for text in ("ann@a.example", "https://a.example/é", "é", "Grüße an alle.", "a.b", "3.14"):
            self.assertEqual(list(addresses(text)), [], text)

    def test_beyond_ascii(self) -> None:
        """Letters beyond ASCII are told with code point, name, and what the host is on the wire."""
        (found,) = addresses("to ann@m\u00fcnchen.example now")
        self.assertIn(
            "“ann@münchen.example” contains non-ASCII characters: ü U+00FC LATIN SMALL LETTER U WITH DIAERESIS", found
        )
        self.assertIn("The host is sent as xn--mnchen-3ya.example.", found)
        self.assertNotIn("mixes", found)

    def test_mixed(self) -> None:
        """Several scripts in one word are told; the scripts of one language are one."""
        for text in ("https://p\u0430ypal.com/x", "bob@p\u0430ypal.com", "p\u0430ypal.com", "\u0430nn@a.example"):
            self.assertIn("mixes scripts: Cyrillic, Latin.", " ".join(addresses(text)), text)
        self.assertNotIn("mixes", " ".join(addresses("\u6771\u4eac\u30c6\u30b9\u30c8.example")))

    def test_encoded(self) -> None:
        """An A-label is told as it reads."""
        (found,) = addresses("https://xn--pypal-4ve.com")
        self.assertEqual(found.partition(" decodes")[0], "“xn--pypal-4ve.com”")
        self.assertIn("mixes scripts", found)
        self.assertEqual(list(addresses("https://xn--0.example")), ["“xn--0.example” is not a valid name."])

    def test_too_many(self) -> None:
        """Where more stand in a text than are looked at, it is told."""
        for piece in ("a@b.c ", "http://b.c "):
            self.assertEqual(list(addresses(piece * MOST_PLACES)), [], piece)
            self.assertIn("were not checked", "".join(addresses(piece * (MOST_PLACES + 1))), piece)

    def test_where(self) -> None:
        """What surrounds an address is none of it, and keeps none from being found."""
        strange = "\u0430.example"
        for text in (f"mailto:ann@{strange}", f"(ann@{strange})", f"x@x@{strange}", f"{'x' * 100}@{strange}"):
            self.assertIn("CYRILLIC", "".join(addresses(text)), text)
        for text in (
            f"see http://{strange}/x",
            f"(http://{strange})",
            f"1http://{strange}",
            f"http://http://{strange}",
        ):
            self.assertIn(f"“{strange}” contains non-ASCII characters", "".join(addresses(text)), text)
        self.assertEqual(list(addresses("\u0430 ://x.example @ b @\u0430 :// \u0430")), [])

    def test_disguise(self) -> None:
        """What stands before the @ of a URL is no host."""
        (found,) = addresses("https://paypal.com@evil.example/login")
        self.assertEqual(found, "“paypal.com@evil.example” leads to evil.example. The part before the @ is not a host.")
