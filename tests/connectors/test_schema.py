"""Of reading connector files: the closed schema, and the line of every fault."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.connectors._files import shipped
from aileron.connectors._schema import read_file
from aileron.model.connectors import WRITE, Presentation
from aileron.model.titles import inputs_of_title, write_title
from tests.extent import examples

GOOD = """[connector]
name = "local://me/tracker"
version = "1.2.3"
base_url = { default = "https://api.example", bindable = false }
hosts = ["api.example:443"]

[credential]
kind = "api_key"
header = "X-Key"
format = "{key}"

[operations.create]
method = "POST"
path = "/items/${in.id}"
headers = { X-One = "1" }
json = { title = "${in.title}" }
error = { when = "ok == false" }
"""


def problems(text: str, scheme: str | None = "local") -> tuple[LoadError, ...]:
    """What is wrong with a file."""
    return read_file(text.encode("utf-8"), "tracker.toml", scheme).problems


class SchemaTests(SynchronousTestCase):
    """What a file may say."""

    def fault(self, old: str, new: str) -> LoadError:
        """The one fault of the good file with C{old} made C{new}."""
        self.assertIn(old, GOOD)
        found = problems(GOOD.replace(old, new))
        self.assertEqual(1, len(found), (new, found))
        self.assertEqual("connector_manifest", found[0].boundary)
        return found[0]

    def test_good(self) -> None:
        """A file without fault says what the connector is; its hash is that of its bytes."""
        spec = read_file(GOOD.encode(), "tracker.toml").spec
        assert spec is not None
        description = spec.description
        self.assertEqual(("local://me/tracker", "1.2.3"), (description.name, description.version))
        self.assertEqual(digest_of_bytes(GOOD.encode()), description.content_hash)
        create = description.operations["create"]
        self.assertEqual(("write", False), (create.effect, create.idempotent))
        self.assertEqual({"id", "title"}, spec.operations["create"].inputs)

    def test_hints(self) -> None:
        """A write is destructive unless it says otherwise, a read never; an output's schema is kept as it stands."""
        more = 'destructive = false\noutput = { type = "object" }\n[operations.look]\nmethod = "GET"\npath = "/"\n'
        text = GOOD + more + 'effect = "read"\n'
        for file, destructive, schema in ((GOOD, True, None), (text, False, {"type": "object"})):
            spec = read_file(file.encode(), "tracker.toml").spec
            assert spec is not None
            create = spec.description.operations["create"]
            self.assertEqual((create.destructive, create.output_schema), (destructive, schema))
            looks = [each for each in spec.description.operations.values() if each.effect == "read"]
            self.assertFalse(any(each.destructive for each in looks))
        self.fault('error = { when = "ok == false" }', 'output = { type = "text" }')

    def presented(self, hint: str) -> str:
        """The good file with a hint as its last line, the 18th."""
        return f"{GOOD}present = {{ {hint} }}\n"

    def test_presentation(self) -> None:
        """An operation may say as what its inputs are shown, and which of them are which part; the hash binds that."""
        for hint, parts in (
            ('kind = "issue", number = "id", title = "title"', {"number": ("id",), "title": ("title",)}),
            ('kind = "issue", repository = ["id", "title"]', {"repository": ("id", "title")}),
        ):
            data = self.presented(hint).encode()
            spec = read_file(data, "tracker.toml").spec
            assert spec is not None
            self.assertEqual(Presentation("issue", parts), spec.description.operations["create"].presentation)
            self.assertEqual(digest_of_bytes(data), spec.description.content_hash)
        plain = read_file(GOOD.encode(), "tracker.toml").spec
        assert plain is not None
        self.assertIsNone(plain.description.operations["create"].presentation)

    def test_presentation_faults(self) -> None:
        """An unknown kind, part or input, no part at all, and a part that is no name are faults on their line."""
        for hint, said in (
            ('kind = "poem", text = "title"', "must be one of: message, mail, issue, event, file"),
            ('text = "title"', "`kind` is missing"),
            ('kind = "message", subject = "title"', "`subject` is not a known key"),
            ('kind = "message", text = "titel"', "names 'titel', which is not an input of the operation"),
            ('kind = "message", text = ["title", "x"]', "names 'x', which is not an input"),
            ('kind = "message", text = []', "must be an array of one or more strings"),
            ('kind = "message", text = 7', "must be a string"),
            ('kind = "message"', "needs a headline or at least one of its parts: to, text"),
        ):
            found = problems(self.presented(hint))
            self.assertIn(said, " ".join(each.message for each in found), hint)
            self.assertEqual({18}, {each.line for each in found}, hint)

    def test_headline(self) -> None:
        """A presentation may say what the operation does, in a line, or several of which the first possible is used."""
        for hint, titles in (
            ('kind = "issue", headline = "Open ${in.title}"', ("Open ${in.title}",)),
            ('kind = "delete", headline = ["Drop ${in.id}", "Drop it"]', ("Drop ${in.id}", "Drop it")),
        ):
            spec = read_file(self.presented(hint).encode(), "tracker.toml").spec
            assert spec is not None
            create = spec.description.operations["create"]
            assert create.presentation is not None
            self.assertEqual((create.presentation.parts, create.presentation.titles), ({}, titles))
        for headline, said in (
            ('"Open ${in.titel}"', "names an input that is not one of the operation"),
            ('"Open ${effect.key}"', "can refer to inputs only"),
            ('"Open ${in.title"', "can refer to inputs only"),
            ('"a\\nb"', "must be one line of at most 120 characters"),
            (f'"{"x" * 121}"', "must be one line of at most 120 characters"),
            ('""', "must not be blank"),
            ("[]", "must be an array of one or more strings"),
        ):
            found = problems(self.presented(f'kind = "issue", headline = {headline}'))
            self.assertIn(said, " ".join(each.message for each in found), headline)
            self.assertEqual({18}, {each.line for each in found}, headline)

    def test_irreversible(self) -> None:
        """What deletes cannot be undone unless the file says so; what only adds can."""
        deletes = 'present = { kind = "delete", headline = "Drop it" }\n'
        for more, expected in (
            ("", False),
            ("irreversible = true\n", True),
            (deletes, True),
            (f"irreversible = false\n{deletes}", False),
            (f"destructive = false\n{deletes}", False),
        ):
            spec = read_file(f"{GOOD}{more}".encode(), "tracker.toml").spec
            assert spec is not None
            self.assertIs(spec.description.operations["create"].irreversible, expected, more)
        (found,) = problems(f"{GOOD}destructive = false\nirreversible = true\n")
        self.assertIn("must not be true of an operation that is not destructive", found.message)

    def test_shipped(self) -> None:
        """The connectors that come with Aileron say what their writes are, and every part is an input."""
        kinds, titles = {}, {}
        for file in shipped():
            spec = read_file(file.data or b"", file.name, file.scheme).spec
            assert spec is not None
            for name, operation in spec.description.operations.items():
                if operation.effect == WRITE:
                    assert operation.presentation is not None, f"{file.name}: {name}"
                    kinds[file.name, name] = operation.presentation.kind
                    titles[file.name, name] = self.written(operation.presentation)
        self.assertEqual("message", kinds["slack.toml", "post_message"])
        self.assertEqual("issue", kinds["github.toml", "create_issue"])
        self.assertEqual("Post to [channel]: [text]", titles["slack.toml", "post_message"])
        self.assertEqual("Open issue in [owner]/[repo]: [title]", titles["github.toml", "create_issue"])
        self.assertEqual("Mail [to]: [subject]", titles["gmail.toml", "send"])
        self.assertEqual([], [where for where, title in titles.items() if not title])

    def written(self, presentation: Presentation) -> str:
        """The title where all inputs are given, each as its own name."""
        names = {name for each in presentation.titles for name in inputs_of_title(each)}
        return write_title(presentation.titles, {name: f"[{name}]" for name in names})

    def test_unknown_keys(self) -> None:
        """A key that nothing obeys is a fault on its own line, at every level."""
        for old, new, line in (
            ("[credential]", "[secrets]\n[credential]", 7),
            ('version = "1.2.3"', 'version = "1.2.3"\ncolour = "red"', 4),
            ('header = "X-Key"', 'header = "X-Key"\nregion = "eu"', 10),
            ("[operations.create]", '[operations.create]\nretry = "often"', 13),
            ('when = "ok == false"', 'when = "ok == false", retry = 1', 17),
            ("bindable = false", "bindable = false, pick = 1", 4),
        ):
            fault = self.fault(old, new)
            self.assertEqual(("validation_error", line), (fault.kind, fault.line), new)
            self.assertIn("not a known key", fault.message)

    def test_values(self) -> None:
        """A value of the wrong kind or out of range is a fault on its line."""
        for old, new, line in (
            ('"local://me/tracker"', '"builtin://tracker"', 2),
            ('"local://me/tracker"', '"local://Me/Tracker"', 2),
            ('"local://me/tracker"', '"local://../x"', 2),
            ('"local://me/tracker"', '""', 2),
            ('"local://me/tracker"', "7", 2),
            ('"1.2.3"', '"1.2"', 3),
            ("https://api.example", "http://api.example", 4),
            ('"https://api.example"', '"https://${in.host}"', 4),
            ('["api.example:443"]', '["api.example:443", "x"]', 5),
            ('["api.example:443"]', '["other.example:443"]', 5),
            ('"api_key"', '"password"', 8),
            ('"X-Key"', '"X Key"', 9),
            ('"X-Key"', '"Host"', 9),
            ('"{key}"', '"Bearer"', 10),
            ('"{key}"', '"{key} {user}"', 10),
            ("[operations.create]", "[operations.Create]", 12),
            ('"POST"', '"CONNECT"', 13),
            ('"POST"', '"HEAD"', 16),  # which carries no body
            ('"/items/${in.id}"', '"items"', 14),
            ('"/items/${in.id}"', '"/items/../x"', 14),
            ('"/items/${in.id}"', '"/items/a b"', 14),
            ('"/items/${in.id}"', '"/items?q=1"', 14),
            ('"/items/${in.id}"', '"/items/${args.id}"', 14),
            ('X-One = "1"', 'X-Key = "1"', 15),
            ('X-One = "1"', 'Content-Length = "1"', 15),
            ('X-One = "1"', '"${in.x}" = "1"', 15),
            ('X-One = "1"', 'X-One = "a\\nb"', 15),
            ('X-One = "1"', "X-One = 1", 15),
            ('"${in.title}"', '"${in.title"', 16),
            ('"${in.title}"', "2026-01-01", 16),
            ('"${in.title}"', "inf", 16),
            ('"ok == false"', '"ok"', 17),
        ):
            fault = self.fault(old, new)
            self.assertEqual(line, fault.line, (new, fault))

    def test_operation_rules(self) -> None:
        """Keys that contradict each other are faults."""
        for added in (
            "effect = 'sometimes'",
            "idempotent = 1",
            "redirect = 'same-origin'",
            "refused = [200]",
            "refused = ['503']",
            "max_response_bytes = 16777217",
            "timeout_seconds = 0",
            "timeout_seconds = 301",
            "text = 'x'",
            "answer = 'text'",
            "result = { id = 'a..b' }",
            "query = { a = { b = 1 } }",
        ):
            found = problems(GOOD + added)
            self.assertEqual([18], [each.line for each in found], (added, found))

    def test_refused_redirects(self) -> None:
        """A write may list redirects as refusals, since it follows none; a read may not."""
        self.assertEqual(problems(GOOD + "refused = [301, 307, 503]"), ())
        found = problems(
            GOOD.replace(
                "[operations.",
                "[operations.see]\nmethod = 'GET'\npath = '/x'\neffect = 'read'\nrefused = [301]\n\n[operations.",
                1,
            )
        )
        self.assertEqual(["has a redirect" in each.message for each in found], [True])

    def test_version(self) -> None:
        """A version is one that an action can pin."""
        for version in ("1.0", "v1.0.0", "1.0.0-01", "1.0.0+..", "1.0.\u0661"):
            self.assertIn("must be a version", self.fault('"1.2.3"', f'"{version}"').message)
        for version in ("0.0.0", "1.2.3-rc.1+build.5"):
            self.assertEqual((), problems(GOOD.replace("1.2.3", version)))

    def test_private_network(self) -> None:
        """Plain http to loopback is allowed where private networks are; a binding's base URL needs no default."""
        local = GOOD.replace("https://api.example", "http://127.0.0.1:8080").replace(
            "api.example:443", "127.0.0.1:8080"
        )
        self.assertEqual(1, len(problems(local)))
        self.assertEqual((), problems(local.replace("\n\n[credential]", "\nprivate_network = true\n\n[credential]")))
        bindable = GOOD.replace('default = "https://api.example", bindable = false', "bindable = true")
        self.assertEqual((), problems(bindable.replace('["api.example:443"]', "[]")))

    def test_addresses(self) -> None:
        """An address that two readers could take for two is a fault at its line, among the hosts too."""
        for url in ("https://127.1", "https://api.example:", "https://api.example:0", "https://[2001:db8:0::1]"):
            found = problems(GOOD.replace("https://api.example", url))
            self.assertEqual([(each.line, "must" in each.message) for each in found], [(4, True)], url)
        for host in ("127.1:443", "api.example:0443", "0x7f.1:443", "api.example.:443"):
            (found_at,) = problems(GOOD.replace('"api.example:443"', f'"api.example:443", "{host}"'))
            self.assertEqual((found_at.line, "must" in found_at.message), (5, True), host)

    def test_syntax(self) -> None:
        """What is no TOML or no UTF-8 is a parse error, with its line if there is one."""
        fault = self.fault('version = "1.2.3"', "version = ")
        self.assertEqual(("parse_error", 3), (fault.kind, fault.line))
        self.assertEqual("parse_error", read_file(b"\xff", "x.toml").problems[0].kind)
        self.assertEqual("parse_error", problems("a = " + "[" * 5000)[0].kind)
        self.assertEqual("parse_error", problems("a = " + "9" * 5000)[0].kind)
        self.assertEqual("parse_error", problems(".".join(["a"] * 20_000) + " = 1")[0].kind)

    def test_lines(self) -> None:
        """All faults of a file are told, each with the first line of its statement, and what it misses."""
        text = GOOD.replace(
            'hosts = ["api.example:443"]', 'hosts = [\n  "api.example:443",\n  "[credential]",\n]\ncolour = 1'
        )
        self.assertEqual({5, 9}, {each.line for each in problems(text)})
        bad = GOOD.replace("1.2.3", "x").replace("POST", "FETCH").replace('"X-Key"', '"Host"')
        self.assertEqual([3, 9, 13], sorted(each.line or 0 for each in problems(bad)))
        messages = {each.message for each in problems("")}
        self.assertLessEqual({"`connector` is missing", "`operations` is missing"}, messages)

    def test_hostile_files(self) -> None:
        """A file made to be slow, or nested to the brink, is told about in bounded time and number."""
        keys = "".join(f"k{number} = 1\n" for number in range(5000))
        self.assertEqual(50, len(problems(GOOD + keys)))
        unending = "x = [\n" + "1,\n" * 15000 + "]\n"
        self.assertEqual([18], [each.line for each in problems(GOOD + "query = 1\n" + unending)][:1])
        for depth in range(50, 500, 50):
            nested = GOOD.replace('"${in.title}"', "[" * depth + "]" * depth)
            self.assertIn(len(problems(nested)), (0, 1))

    @settings(deadline=None, max_examples=examples(150))
    @given(st.integers(0, len(GOOD)), st.integers(0, 8), st.text("[]{}=\"'$.\n a1#\\", max_size=6))
    def test_wild_files(self, at: int, cut: int, put: str) -> None:
        """Whatever a file holds, it is read or told, never raised about."""
        reading = read_file((GOOD[:at] + put + GOOD[at + cut :]).encode(), "wild.toml")
        self.assertNotEqual(reading.spec is None, not reading.problems)
