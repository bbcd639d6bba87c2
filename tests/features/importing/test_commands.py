"""Of C{aileron connector import}."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from aileron.base.load_error import LoadError
from aileron.cli.actions.copying import Sort
from aileron.cli.context import CliContext
from aileron.features.importing import commands as importing
from aileron.features.importing.files import WrittenFiles
from aileron.model.errors import NetworkError
from tests.cli.daemon import CommandCase
from tests.features.importing.library import LIBRARY


class ImportTests(CommandCase):
    """A small API as a file, or as an address that answers with it."""

    def setUp(self) -> None:
        super().setUp()
        self.output = Path(self.mktemp()).absolute()
        self.fetched: list[str] = []

    def cli_context(self) -> CliContext:
        """What the commands of this test find: one address has the document."""

        async def fetch(url: str, most_bytes: int) -> bytes:
            self.fetched.append(url)
            if "library" not in url:
                raise NetworkError("The address answered with status 404.")
            return LIBRARY.read_bytes()[:most_bytes]

        return evolve(super().cli_context(), fetch=fetch)

    def imported(self, *arguments: str, source: str = str(LIBRARY)) -> tuple[int, str, str]:
        """Run it, with its files in a directory of the test's."""
        return self.command("connector", "import", source, "--output", str(self.output), *arguments)

    def names(self) -> list[str]:
        """The files that were written."""
        return sorted(each.name for each in self.output.iterdir()) if self.output.exists() else []

    def test_listed(self) -> None:
        """Without a choice the operations are listed, those with all the words, and nothing is written."""
        code, out, err = self.imported()
        self.assertEqual((code, out.count("\n")), (0, 9))
        self.assertIn("Library API: 8 of 8 operations", err)
        self.assertIn("--op NAME", err)
        code, out, _ = self.imported("--search", "cover PUT")
        self.assertEqual((code, out.count("\n"), "set_cover" in out), (0, 2, True))
        listed = json.loads(self.imported("--json", "--search", "remove")[1])
        self.assertEqual([each["key"] for each in listed["operations"]], ["removeBook"])
        self.assertEqual(self.names(), [])

    def test_written(self) -> None:
        """The chosen operations are written, what is to be completed is told, and what comes next."""
        code, out, err = self.imported("--op", "addBook", "--op", "GET /books", "--op", "put_raw")
        self.assertEqual(code, 0)
        self.assertEqual(self.names(), ["library-add-book.md", "library-list-books.md", "library.toml"])
        self.assertIn("# TODO(import)", out)
        self.assertIn("add_book: left out, because it refers to itself: sequel", out)
        self.assertIn(f"aileron connector add {self.output}/library.toml", out)
        self.assertIn(f"aileron action add {self.output}/library-add-book.md {self.output}/library-list-books.md", out)
        self.assertIn("Not imported: put_raw", err)
        for sort, pattern in (("connector", "*.toml"), ("action", "*.md")):
            files = map(str, self.output.glob(pattern))
            self.assertEqual(self.command(sort, "check", *files)[0], 0)
        self.assertEqual(list(self.home.connectors.iterdir()) + list(self.home.actions.iterdir()), [])

    def test_asked(self) -> None:
        """At a terminal operations are searched for until some are named, here or as --op takes them; else none."""
        self.typed = ["cover", "addBook, remove_book"]
        code, out, _ = self.imported()
        self.assertEqual((code, self.names()), (0, ["library-add-book.md", "library-remove-book.md", "library.toml"]))
        self.assertEqual(out.count("set_cover"), 2)
        self.typed = [""]
        self.assertEqual(self.imported("--name", "local://me/other")[0], 0)
        self.assertEqual(len(self.names()), 3)

    def test_base_url(self) -> None:
        """A base URL that the document does not have is asked for, or given, or left to the binding."""
        bare = Path(self.mktemp()).absolute()
        bare.write_text('{"openapi": "3.0.0", "paths": {"/x": {"get": {"operationId": "x"}}}}')
        self.typed = ["https://x.example/v1"]
        self.imported("--op", "x", "--name", "local://me/a", source=str(bare))
        self.imported("--op", "x", "--name", "local://me/b", "--base-url", "https://y.example", source=str(bare))
        self.imported("--op", "x", "--name", "local://me/c", source=str(bare))
        for name, line in (("a", '"https://x.example/v1"'), ("b", '"https://y.example"'), ("c", "{bindable = true}")):
            self.assertIn(f"base_url = {line}\n", (self.output / f"{name}.toml").read_text())

    def test_again(self) -> None:
        """A second import adds to the connector file; an action file that was changed is kept, unless forced."""
        self.imported("--op", "add_book")
        file, action = self.output / "library.toml", self.output / "library-add-book.md"
        file.write_text(f"# Ours\n{file.read_text()}")
        action.write_text(f"{action.read_text()}\nOurs.\n")
        self.assertEqual(self.imported("--op", "remove_book")[0], 0)
        self.assertEqual(file.read_text().count("[operations."), 2)
        code, _, err = self.imported("--op", "add_book")
        self.assertEqual((code, "different contents" in err), (1, True))
        self.assertIn("Ours.", action.read_text())
        self.assertEqual(self.imported("--op", "add_book", "--force")[0], 0)
        self.assertTrue(file.read_text().startswith("# Ours\n"))
        self.assertNotIn("Ours.", action.read_text())
        code, _, err = self.imported("--op", "add_book", "--name", "local://you/library")
        self.assertEqual((code, "belongs to another connector" in err), (1, True))
        file.write_text("[connector")
        code, _, err = self.imported("--op", "remove_book")
        self.assertEqual((code, "has errors; nothing was written" in err), (1, True))
        self.assertEqual(file.read_text(), "[connector")

    def test_kept(self) -> None:
        """An operation that was changed by hand is replaced by force only, and one that was not stays as it is."""
        self.imported("--op", "add_book")
        file = self.output / "library.toml"
        file.write_text(file.read_text().replace("destructive = false", "destructive = false\nidempotent = true"))
        code, _, err = self.imported("--op", "add_book")
        self.assertEqual((code, "other contents for add_book" in err), (1, True))
        self.assertIn("idempotent", file.read_text())
        self.assertEqual(self.imported("--op", "add_book", "--force")[0], 0)
        self.assertNotIn("idempotent", file.read_text())
        file.write_text(file.read_text().replace("# TODO(import): left out", "# Left out"))
        self.assertEqual(self.imported("--op", "add_book")[0], 0)
        self.assertIn("# Left out", file.read_text())

    def test_other_place(self) -> None:
        """Operations of an API at another base URL are not put into the file, where they would be sent elsewhere."""
        self.imported("--op", "add_book")
        before = (self.output / "library.toml").read_text()
        code, _, err = self.imported("--op", "remove_book", "--base-url", "https://other.example", "--force")
        self.assertEqual((code, "https://other.example" in err, "--name" in err), (1, True, True))
        self.assertEqual((self.output / "library.toml").read_text(), before)

    def test_link(self) -> None:
        """A link in the place of a file is replaced, and what it leads to is not written."""
        self.output.mkdir()
        target = self.output / "target"
        (self.output / "library-add-book.md").symlink_to(target)
        self.assertEqual(self.imported("--op", "add_book")[0], 0)
        self.assertFalse(target.exists())
        self.assertFalse((self.output / "library-add-book.md").is_symlink())

    def test_no_actions(self) -> None:
        """Actions are left out if so wished; for programs the result is JSON."""
        code, out, _ = self.imported("--op", "add_book", "--no-actions", "--json")
        self.assertEqual((code, self.names()), (0, ["library.toml"]))
        self.assertEqual(json.loads(out)["written"], [str(self.output / "library.toml")])

    def test_address(self) -> None:
        """A document is fetched from the address that was named; why it was not is told."""
        self.assertEqual(self.imported("--op", "add_book", source="https://x.example/library.yaml")[0], 0)
        self.assertEqual(self.fetched, ["https://x.example/library.yaml"])
        code, _, err = self.imported(source="https://x.example/other")
        self.assertEqual(code, 1)
        self.assertIn("status 404. Nothing was written.", err)
        self.assertIn("--mcp", err)

    def test_command(self) -> None:
        """A curl command is a description of one operation, in the argument and in a file."""
        command = "curl -X POST https://tracker.example/api/issues -H 'Authorization: Bearer $KEY' -d '{\"a\": 1}'"
        file = Path(self.mktemp()).absolute()
        file.write_text(command)
        for source, more in ((command, ("--op", "post_api_issues")), (str(file), ("--op", "POST /api/issues"))):
            code, _, err = self.imported(*more, "--name", "local://me/tracker", source=source)
            self.assertEqual((code, self.names()), (0, ["tracker-post-api-issues.md", "tracker.toml"]), err)
        self.assertIn('format = "Bearer {key}"', (self.output / "tracker.toml").read_text())
        code, _, err = self.imported(source="curl -k https://tracker.example")
        self.assertEqual((code, "-k of the curl command is not understood" in err), (1, True))

    def test_wrong(self) -> None:
        """What is no document, no operation or no name is told, with what to do, and nothing is written."""
        swagger = Path(self.mktemp()).absolute()
        swagger.write_text('{"swagger": "2.0"}')
        for arguments, source, words in (
            ((), "/nowhere/x.json", "cannot be read"),
            ((), str(swagger), "swagger2openapi"),
            (("--op", "cover"), str(LIBRARY), "Did you mean set_cover?"),
            (("--op", "put_raw"), str(LIBRARY), "none of the operations"),
            (("--op", "add_book", "--name", "wrong"), str(LIBRARY), "the files would have errors"),
            (("--op", "add_book", "--base-url", "http://x.example"), str(LIBRARY), "the files would have errors"),
        ):
            code, _, err = self.imported(*arguments, source=source)
            self.assertEqual((code, words in err), (1, True), (arguments, err))
        self.assertEqual(self.names(), [])

    def test_one_bad(self) -> None:
        """An operation of which no sound file can be made is left out with its reason, and the others are written."""
        paths = {
            f"/{name}": {
                "get": {
                    "operationId": name,
                    "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}],
                    "responses": {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}},
                }
            }
            for name in ("good", "bad")
        }
        document = {
            "openapi": "3.0.0",
            "info": {"title": "Two"},
            "paths": paths,
            "servers": [{"url": "https://a.example"}],
        }
        source = Path(self.mktemp()).absolute()
        source.write_text(json.dumps(document))
        real = importing.find_faults

        def find_faults(written: WrittenFiles, connectors: Sort) -> Sequence[LoadError]:
            fault = LoadError("validation_error", "`query` is odd", "two.toml")
            return [fault] if "[operations.bad]" in written.connector.text else real(written, connectors)

        self.patch(importing, "find_faults", find_faults)
        code, _, err = self.imported("--op", "good", "--op", "bad", source=str(source))
        self.assertEqual((code, self.names()), (0, ["two-good.md", "two.toml"]), err)
        self.assertIn("Not imported: bad: its files would have an error: `query` is odd", err)
        _, _, err = self.imported("--op", "bad", "--force", source=str(source))
        self.assertIn("the files would have errors", err)
