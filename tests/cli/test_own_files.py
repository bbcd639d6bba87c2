"""Files of the home by their names: edited, removed, and the request of an operation that is only shown."""

from __future__ import annotations

import json

from aileron.model.errors import NotFound
from tests.cli.daemon import PASSPHRASE
from tests.cli.test_trust import TrustCase, item, word

_CONNECTOR = """\
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = "https://tracker.example/api"

[credential]
kind = "api_key"
header = "X-Key"

[operations.find]
method = "GET"
path = "/issues/${in.id}"
effect = "read"

[operations.create]
method = "POST"
path = "/issues"
json = {title = "${in.title}"}
effect = "write"
"""


_BOTH = '{"channel": "#eng", "text": "It flies."}'
_FIND = """\
+++
name = "find"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/tracker"
version = "1.0.0"
capabilities = ["find"]

[[inputs]]
name = "number"
type = "integer"
description = "Number of the issue."

[[execute]]
id = "only"
connector = "local://me/tracker"
op = "find"
inputs = { id = "${args.number}" }
+++
# Find an issue

Returns one issue.
"""


class OwnFilesCase(TrustCase):
    """A home with one connector, which an action needs."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.home.secrets.write_text("{}")
        self.path = self.home.connectors / "mine.toml"
        self.path.write_text(_CONNECTOR)
        self.path.chmod(0o600)
        found = item("local://me/tracker", "connector", state="trusted", path=str(self.path))
        self.lying(found, item("open-issue", state="trusted", needs=["local://me/tracker"]))
        self.site.answer("DELETE", "/v1/trust", {"kind": "connector", "name": "local://me/tracker"})


class RemoveTests(OwnFilesCase):
    """C{aileron connector remove}."""

    def test_removed(self) -> None:
        """Trust is revoked, the file is deleted, and the actions that need it are named; by either of its names."""
        for name in ("local://me/tracker", "mine"):
            self.path.write_text(_CONNECTOR)
            code, out, err = self.as_operator_last("connector", "remove", name)
            self.assertEqual((code, self.path.exists()), (0, False), err)
            self.assertIn("is not trusted any more", out)
            self.assertIn("open-issue", err)
        gone = word("local://me/tracker", "connector")
        del gone["digest"]
        self.assertEqual(self.site.bodies("DELETE", "/v1/trust"), [gone, gone])

    def as_operator_last(self, *arguments: str) -> tuple[int, str, str]:
        """Answer yes, and then log in."""
        self.typed = ["y", PASSPHRASE]
        return self.command(*arguments)

    def test_kept(self) -> None:
        """A no, an unknown name, and a daemon that refuses leave the file."""
        self.typed = ["n"]
        self.assertEqual(self.command("connector", "remove", "mine")[0], 1)
        code, _, err = self.command("connector", "remove", "other", "--yes")
        self.assertEqual((code, "aileron connector list" in err), (1, True))
        self.site.answer("DELETE", "/v1/trust", NotFound("It is not trusted."))
        self.assertEqual(self.as_operator("connector", "remove", "mine", "--yes")[0], 1)
        self.assertTrue(self.path.exists())

    def test_untrusted(self) -> None:
        """A file that nobody trusts is only deleted; a program is told which one."""
        self.lying(item("local://me/tracker", "connector", path=str(self.path)))
        code, out, _ = self.as_operator("connector", "remove", "mine", "--yes", "--json")
        self.assertEqual((code, json.loads(out)), (0, {"removed": str(self.path), "used_by": []}))
        self.assertEqual(self.site.bodies("DELETE", "/v1/trust"), [])


class EditTests(OwnFilesCase):
    """C{aileron connector edit}."""

    def test_edited(self) -> None:
        """It is opened by its name and trusted when it is closed; one that is not there is said to be missing."""
        self.lying(
            item("local://me/tracker", "connector", state="changed", path=str(self.path), trusted={"changed_at": "x"})
        )
        self.editing(_CONNECTOR.replace("1.0.0", "1.1.0"))
        code, out, err = self.as_operator("connector", "edit", "local://me/tracker", answers=["y"])
        self.assertEqual((code, "Trusted: local://me/tracker" in out), (0, True), err)
        self.assertIn("1.1.0", self.path.read_text())
        self.assertIn("There is no connector other", self.command("connector", "edit", "other")[2])


class TryTests(OwnFilesCase):
    """C{aileron connector try}."""

    def test_shown(self) -> None:
        """The request is shown as it would leave, without its credential; by name or by file, and nothing is asked."""
        for target in ("local://me/tracker", self.path.stem, str(self.path)):
            code, out, err = self.command("connector", "try", target, "create", "--arg", "title=Broken")
            self.assertEqual((code, self.site.asked), (0, []), err)
            for part in (
                "POST https://tracker.example/api/issues",
                '{"title":"Broken"}',
                "api_key, added by the daemon",
            ):
                self.assertIn(part, out)
        code, out, _ = self.command("connector", "try", "mine.toml", "find", "--args", '{"id": "a/b"}')
        self.assertEqual(code, 1)
        code, out, _ = self.command("connector", "try", str(self.path), "find", "--args", '{"id": "a b"}')
        self.assertIn("GET https://tracker.example/api/issues/a%20b", out)

    def test_missing(self) -> None:
        """Inputs that were not given are told, with what an action says of them and the option that gives each."""
        code, out, err = self.command("connector", "try", "slack", "post_message")
        self.assertEqual((code, "POST https://slack.com/api/chat.postMessage" in out), (0, True), err)
        self.assertIn("Inputs that were not given, and are left out of the request:", err)
        self.assertRegex(err, r"  channel \(string, required\): .*\n    --arg channel=TEXT\n")
        self.assertNotIn("not given", self.command("connector", "try", "slack", "post_message", "--args", _BOTH)[2])
        code, _, err = self.command("connector", "try", "local://me/tracker", "find")
        self.assertIn("Inputs that were not given:\n  id\n    --arg id=TEXT\n", err)
        self.assertIn("These inputs make no request", err)
        (self.home.actions / "find.md").write_text(_FIND)
        (self.home.actions / "find.md").chmod(0o600)
        err = self.command("connector", "try", "local://me/tracker", "find")[2]
        self.assertIn("  id (integer, required): Number of the issue.\n    --args '{\"id\": INTEGER}'\n", err)

    def test_refused(self) -> None:
        """What makes no request is said to, with what there is instead."""
        for arguments, words in (
            (("local://me/other", "find"), "There is no valid connector local://me/other"),
            (("local://me/tracker", "delete"), "has no operation delete. It has: find, create."),
            (("local://me/tracker", "find"), "These inputs make no request"),
            (("local://me/tracker", "find", "--arg", "id"), "expected NAME=TEXT"),
            (("local://me/tracker", "find", "--args", "[]"), "expected a JSON object"),
        ):
            code, _, err = self.command("connector", "try", *arguments)
            self.assertIn(words, err)
            self.assertNotEqual(code, 0)
