"""Recorded answers are replayed as a real call goes, and whatever comes out otherwise is reported with its line."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import Registry, Replayed, check, replay
from tests.connectors.service import Service

CONNECTOR = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = { default = "https://tracker.example/v2", bindable = false }
hosts = ["tracker.example:443"]

[operations.create]
method = "POST"
path = "/issues/${in.project}"
query = { notify = "${in.notify}" }
json = { title = "${in.title}", key = "${effect.key}" }
error = { when = "ok == false", message = "error" }
result = { number = "number" }
output = { type = "object", properties = { number = { type = "integer" } } }

[operations.create.reconcile]
op = "find"
inputs = { key = "${effect.key}" }
items = "issues"
absent = "did_not_happen"
result = { number = "number" }

[operations.find]
method = "GET"
path = "/issues"
query = { key = "${in.key}" }
effect = "read"
"""
FIXTURES = """
[[operations.create]]
inputs = { project = "a b", title = "It breaks", notify = ["ada", "bob"] }
request.method = "POST"
request.path = "/issues/a%20b"
request.query = { notify = ["ada", "bob"] }
request.headers = { content-type = "application/json" }
request.json = { title = "It breaks", key = "${effect.key}" }
answer = { status = 201, json = { number = 7, more = true } }
output = { number = 7 }

[operations.create.reconcile]
request = { method = "GET", path = "/issues", query = { key = "${effect.key}" } }
answer = { status = 200, json = { issues = [{ number = 7, more = true }] } }
finding = "happened"
output = { number = 7 }

[[operations.create]]
inputs = { project = "a", title = "It breaks" }
answer = { status = 200, json = { ok = false, error = "no such project" } }
outcome = "refused"
message = "no such project"

[[operations.create]]
inputs = { project = "a", title = "It breaks" }
answer = { status = 500, headers = { Retry-After = "5" }, text = "<html>" }
outcome = "unknown"

[operations.create.reconcile]
answer = { status = 200, json = { issues = [] } }
finding = "did_not_happen"
"""


class FixtureTests(SynchronousTestCase):
    """C{tracker.fixtures.toml}, beside C{tracker.toml}."""

    def setUp(self) -> None:
        self.directory = Path(self.mktemp()).absolute()
        self.directory.mkdir()
        self.file = self.directory / "tracker.toml"
        self.file.write_text(CONNECTOR)

    def replayed(self, fixtures: str) -> Replayed:
        """The replay of these."""
        self.file.with_suffix(".fixtures.toml").write_text(fixtures)
        found = replay(str(self.file), self.directory)
        assert found is not None
        return found

    def problems(self, fixtures: str) -> list[tuple[int | None, str]]:
        """What is reported of these, and in which line."""
        return [(each.line, each.message) for each in self.replayed(fixtures).problems]

    def test_sound(self) -> None:
        """Requests, outputs, failures and findings that come out as recorded are counted, and nothing is reported."""
        found = self.replayed(FIXTURES)
        self.assertEqual(found.problems, ())
        seen = ["done", "reconcile", "refused", "unknown", "reconcile"]
        self.assertEqual(found.seen, {"create": seen, "find": []})

    def test_differences(self) -> None:
        """Each part of a record that differs from what the connector does is reported, with both."""
        for recorded, other, words in (
            ('request.method = "POST"', 'request.method = "PUT"', '"PUT", and is "POST"'),
            ('"/issues/a%20b"', '"/v2/issues/a b"', "`path` is expected"),
            ('query = { notify = ["ada", "bob"] }', 'query = { notify = "ada" }', "`query` is expected"),
            ('"application/json"', '"text/plain"', "`headers` is expected"),
            ('title = "It breaks", key = "${effect.key}" }', 'title = "It" }', "`json` is expected"),
            ("number = 7, more = true } }\noutput", 'number = "7" } }\noutput', "`output` is expected"),
            (
                "number = 7, more = true } }\noutput = { number = 7 }",
                'number = "7" } }\noutput = { number = "7" }',
                "declares",
            ),
            ('outcome = "refused"', 'outcome = "unknown"', '"unknown", and is "refused"'),
            ('message = "no such project"', 'message = "no such title"', "is not in"),
            ('"/issues", query', '"/v2/issue", query', "`path` is expected"),
            ('finding = "happened"', 'finding = "unknown"', "`finding` is expected"),
            ('project = "a b", title', "title", "make no request"),
            ("status = 201", "state = 201", "`state` is not a known key"),
        ):
            self.assertIn(recorded, FIXTURES)
            found = self.problems(FIXTURES.replace(recorded, other, 1))
            self.assertTrue(any(words in message for _, message in found), (words, found))
            self.assertTrue(all(line for line, _ in found), found)

    def test_of_nothing(self) -> None:
        """An answer is recorded only for an operation that there is, and a look only for one that declares it."""
        found = self.problems(
            "[[operations.find]]\nanswer = { status = 200 }\n[operations.find.reconcile]\nanswer = { status = 200 }\n"
            "[[operations.crate]]\nanswer = { status = 200 }"
        )
        words = ["find declares no `reconcile`", "`crate` is not an operation of the connector"]
        self.assertEqual([message for _, message in found], words)

    def test_unusable(self) -> None:
        """A file that is missing or no TOML is reported, and so is what is wrong with the connector itself."""
        found = replay(str(self.file), self.directory)
        assert found is not None
        self.assertEqual(
            [each.message for each in found.problems], ["the file cannot be opened: No such file or directory"]
        )
        self.assertEqual(self.problems("\na = [1, }\n")[0][0], 2)
        self.file.write_text(CONNECTOR.replace("1.0.0", "one"))
        self.assertIn("version", self.problems(FIXTURES)[0][1])
        self.assertEqual(len(replay(str(self.directory / "none.toml"), self.directory).problems), 1)  # type: ignore[union-attr]

    def test_other_kinds(self) -> None:
        """A connector of another kind has no recorded answers, and says so."""
        self.file.write_text(
            '[connector]\nname = "local://me/tracker"\nversion = "1.0.0"\nkind = "command"\n'
            '[command]\ndirectory = "/"\n'
            '[operations.list]\nprogram = "/bin/ls"\n'
        )
        self.assertEqual(check(self.file), [])
        found = self.problems(FIXTURES)
        self.assertEqual([message for _, message in found], ["only a connector of kind http has recorded answers"])

    def test_by_name(self) -> None:
        """A connector of the home is found by its name, and its recorded answers are never taken for a connector."""
        self.replayed(FIXTURES)
        found = replay("local://me/tracker", self.directory)
        assert found is not None
        self.assertEqual(found.problems, ())
        self.assertIsNone(replay("local://me/other", self.directory))
        registry = Registry(self.directory, Service().workshop)
        self.assertEqual(registry.problems(), ())
        self.assertEqual(check(self.file), [])
