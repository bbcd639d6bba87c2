"""Actions: run by the agents' door, and files judged and copied without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.actions.run import typed
from aileron.errors import ExternalApiError
from tests.cli.daemon import RUN, CommandCase

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "sure": {"type": "boolean"},
        "tags": {"type": "array"},
    }
}
ACTION = """+++
name = "hello"
version = "1.0.0"

[[requires.connectors]]
name = "builtin://slack"
version = "1.0.0"
capabilities = ["list_channels"]

[[execute]]
id = "look"
connector = "builtin://slack"
op = "list_channels"
inputs = { limit = "10" }
+++
# Hello
"""


class TypedTests(SynchronousTestCase):
    def test_types(self) -> None:
        """Text stays text, whatever it looks like; other types are read as JSON."""
        found = typed(["text=1", "count=2", "sure=true", 'tags=["a", 1]'], SCHEMA)
        self.assertEqual(found, {"text": "1", "count": 2, "sure": True, "tags": ["a", 1]})
        self.assertEqual(typed(["text=a=b"], SCHEMA), {"text": "a=b"})

    def test_refused(self) -> None:
        """What is no pair, unknown, twice or of another type is a usage error."""
        for pairs in (["text"], ["other=1"], ["text=a", "text=b"], ["count=x"], ["sure=yes"], ["tags=[NaN]"]):
            self.assertRaises(click.UsageError, typed, pairs, SCHEMA)


class ShowTests(CommandCase):
    def shown(self, **changed: object) -> str:
        """What is printed of an action of which the daemon tells this."""
        item: dict[str, object] = dict.fromkeys(("tool_name", "source", "digest", "description"), "x")
        item |= {"name": "hello", "version": "1.0.0", "gated": True, "enabled": True, "input_schema": SCHEMA}
        self.site.answer("GET", "/v1/actions/hello", {**item, "connectors": [], **changed})
        return self.as_operator("action", "show", "hello")[1]

    def test_told(self) -> None:
        """What is shown before deciding, left to the person or taken back is told, where it is anything."""
        self.serve()
        preview = {"connector": "builtin://slack", "operation": "read", "shows": ["Topic", "Text"]}
        for name, given, nothing, told in (
            ("preview", preview, None, "you are shown  Topic, Text, by read of builtin://slack\n"),
            ("on_cancel", "withdraw", "keep", "once the agent cancels its call"),
            ("asks", ["text", "co\x1bunt"], [], "may leave to you: text, co␛unt\n"),
        ):
            self.assertIn(" ".join(told.split()), " ".join(self.shown(**{name: given}).split()))
            self.assertNotIn(told.split("  ")[0][:16], self.shown(**{name: nothing}))


class RunTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.site.answer("GET", "/v1/actions/hello", {"input_schema": SCHEMA})

    def test_done(self) -> None:
        """The result's output is printed."""
        self.site.answer("POST", "/v1/actions/hello/run", {"run_id": RUN, "result": {"output": "hi", "steps": {}}})
        self.assertEqual(self.command("action", "run", "hello", "--arg", "count=3")[:2], (0, "hi\n"))
        self.assertEqual(self.site.bodies("POST", "/v1/actions/hello/run"), [{"args": {"count": 3}}])

    def test_attachments(self) -> None:
        """What is attached is told, and how to have it; a terminal is not filled with it."""
        output = {"caption": "c", "picture": {"media_type": "image/png", "base64": "AAEC"}}
        self.site.answer("POST", "/v1/actions/hello/run", {"run_id": RUN, "result": {"output": output}})
        code, out, err = self.command("action", "run", "hello", "--args", "{}")
        self.assertEqual(
            (code, '"picture": "[attachment 1: image/png, 3 bytes]"' in out, "AAEC" in out), (0, True, False)
        )
        self.assertIn(f"aileron runs save {RUN} DIRECTORY", err)

    def test_pending(self) -> None:
        """A run that waits for approval has an exit code of its own, and says what waits."""
        waits = {"status": "pending_approval", "run_id": RUN, "message": "hello waits"}
        self.site.answer("POST", "/v1/actions/hello/run", waits)
        self.assertEqual(self.command("action", "run", "hello", "--args", "{}")[:2], (75, "hello waits\n"))
        code, out, _ = self.command("action", "run", "hello", "--json")
        self.assertEqual((code, json.loads(out)), (75, waits))

    def test_failed(self) -> None:
        """A failure is an error."""
        self.site.answer("POST", "/v1/actions/hello/run", ExternalApiError("Slack said no."))
        code, out, err = self.command("action", "run", "hello")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("Slack said no.", err)

    def test_usage(self) -> None:
        """Malformed arguments never reach the daemon."""
        for arguments in (("--args", "[]"), ("--args", "{"), ("--args", "{}", "--arg", "count=1")):
            self.assertEqual(self.command("action", "run", "hello", *arguments)[0], 2, arguments)
        self.assertEqual(self.site.bodies("POST", "/v1/actions/hello/run"), [])


class FilesTests(CommandCase):
    def file(self, text: str, name: str = "hello.md") -> Path:
        """A file of the user's."""
        directory = Path(self.mktemp())
        directory.mkdir()
        path = directory / name
        path.write_text(text)
        return path

    def test_check(self) -> None:
        """A sound file is said to be so; a fault is told with file and line."""
        sound, faulty = self.file(ACTION), self.file(ACTION.replace('version = "1.0.0"', "version = 1", 1))
        self.assertEqual(self.command("action", "check", str(sound)), (0, f"{sound}: sound\n", ""))
        code, out, _ = self.command("action", "check", str(faulty))
        self.assertEqual(code, 1)
        self.assertIn(f"{faulty}:3: ", out)
        code, out, _ = self.command("action", "check", "--json", str(faulty))
        self.assertEqual((code, json.loads(out)["faults"][0]["line"]), (1, 3))

    def test_add(self) -> None:
        """A sound file is copied, private; the same again is nothing new."""
        path = self.file(ACTION)
        self.assertEqual(self.command("action", "add", str(path))[:2], (0, "hello.md was added.\n"))
        added = self.home.actions / "hello.md"
        self.assertEqual((added.read_text(), added.stat().st_mode & 0o777), (ACTION, 0o600))
        self.assertEqual(self.command("action", "add", str(path))[:2], (0, "hello.md is there already.\n"))

    def test_add_faulty(self) -> None:
        """With one faulty file nothing is added."""
        code, _, err = self.command("action", "add", str(self.file(ACTION)), str(self.file("no", "bad.md")))
        self.assertEqual((code, "Nothing was added" in err), (1, True))
        self.assertEqual(list(self.home.actions.iterdir()), [])

    def test_add_different(self) -> None:
        """A different file of that name is left as it is, with the difference shown, unless forced."""
        self.command("action", "add", str(self.file(ACTION)))
        other = self.file(ACTION.replace("# Hello", "# Good bye"))
        code, out, err = self.command("action", "add", str(other))
        self.assertEqual((code, "--force" in err), (1, True))
        self.assertIn("│ +# Good bye", out)
        self.assertEqual((self.home.actions / "hello.md").read_text(), ACTION)
        self.assertEqual(self.command("action", "add", "--force", str(other))[:2], (0, "hello.md was replaced.\n"))
        self.assertIn("Good bye", (self.home.actions / "hello.md").read_text())

    def test_add_name(self) -> None:
        """Only what the daemon would look at is added."""
        self.assertEqual(self.command("action", "add", str(self.file(ACTION, "hello.txt")))[0], 1)

    def test_check_connector(self) -> None:
        """A connector file is judged as well."""
        code, out, _ = self.command("connector", "check", str(self.file("[connector]\n", "x.toml")))
        self.assertEqual((code, ".toml:" in out), (1, True))
