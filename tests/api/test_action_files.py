"""The routes by which the operator checks, writes and tries an action."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aileron.actions import MAX_FILE_BYTES
from aileron.actions.drafting import example, text_of
from aileron.base.json import digest_of_bytes
from aileron.model.errors import InvalidRequest
from aileron.testing import ScriptedRunner

from .case import LAUNCH_KEY, ApiCase, Heard

TEXT = text_of(example("tell"))


class ActionFileTests(ApiCase):
    """A home without action files."""

    def setUp(self) -> None:
        super().setUp()
        self.key = self.operator_token()
        self.path = self.state_directory.actions / "tell.md"

    def put(self, text: str, before: str | None = None, name: str = "tell") -> Heard:
        """Write a file."""
        return self.operator.ask("PUT", f"/v1/actions/{name}/file", self.key, {"text": text, "before": before})

    def there(self) -> list[str]:
        """The names of all that lies in the directory."""
        return sorted(each.name for each in self.state_directory.actions.iterdir())

    def test_check(self) -> None:
        """A sound text is told by its name; of any other every fault is listed with its line; nothing is written."""
        heard = self.operator.ask("POST", "/v1/actions/check", self.key, {"text": TEXT})
        self.assertEqual(heard.json, {"name": "tell", "faults": []})
        faulty = TEXT.replace('version = "1.0.0"\n', "", 1).replace("required = true", 'required = "yes"')
        heard = self.operator.ask("POST", "/v1/actions/check", self.key, {"text": faulty})
        self.assertIsNone(heard.json["name"])
        lines = faulty.split("\n")
        found = [(lines[fault["line"] - 1].strip(), fault["message"]) for fault in heard.json["faults"]]
        self.assertEqual(len(found), 2, found)
        self.assertIn(('required = "yes"', "`required` must be true or false"), found)
        self.assertEqual(self.there(), [])

    def test_written(self) -> None:
        """A new file, and what replaces it, is private and exactly the text, and is neither trusted nor on record."""
        events = self.events()
        heard = self.put(TEXT)
        self.assertEqual((heard.status, heard.json["name"]), (200, "tell"))
        self.assertEqual(heard.json["digest"], digest_of_bytes(TEXT.encode()))
        changed = TEXT + "\nÄnderung\n"
        self.assertEqual(self.put(changed, heard.json["digest"]).status, 200)
        self.assertEqual((self.path.read_text("utf-8"), self.path.stat().st_mode & 0o777), (changed, 0o600))
        self.assertEqual((self.there(), self.events()), (["tell.md"], events))

    def test_race(self) -> None:
        """Of two saves of one text the second is refused with the digest that is there, and changes nothing."""
        before = self.put(TEXT).json["digest"]
        first = self.put(TEXT + "first\n", before).json["digest"]
        for stale in (before, None, "sha256:0"):
            heard = self.put(TEXT + "second\n", stale)
            self.assertEqual((heard.status, heard.json["error"]["details"]), (409, {"digest": first}))
        self.assertEqual(self.path.read_text(), TEXT + "first\n")
        self.path.unlink()
        heard = self.put(TEXT, first)
        self.assertEqual((heard.status, heard.json["error"]["details"]), (409, {"digest": None}))
        self.assertEqual(self.there(), [])

    def test_again(self) -> None:
        """A save whose answer was lost is repeated without a conflict."""
        first, second = (self.put(TEXT) for _ in range(2))
        self.assertEqual((second.status, second.json), (200, first.json))

    def test_created_meanwhile(self) -> None:
        """A file that another program creates at the last moment is not replaced."""
        real = os.open

        def late(path: Any, *rest: Any) -> int:
            if Path(path).name.startswith(".tell.md."):
                self.path.write_text("theirs")
            return real(path, *rest)

        self.patch(os, "open", late)
        self.assertEqual(self.put(TEXT).status, 409)
        self.assertEqual((self.path.read_text(), self.there()), ("theirs", ["tell.md"]))

    def test_interrupted(self) -> None:
        """A write that fails in the middle, or whose process is killed there, leaves the old file as it was."""
        before = self.put(TEXT).json["digest"]

        def fail(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with_fault = self.patch(os, "fsync", fail)
        heard = self.put(TEXT + "more\n", before)
        self.assertEqual((heard.status, heard.kind), (503, "store_unavailable"))
        self.assertEqual((self.path.read_text(), self.there()), (TEXT, ["tell.md"]))
        with_fault.restore()
        (self.state_directory.actions / ".tell.md.0123").write_text("half of a f")  # as a killed process leaves it
        self.assertEqual(self.put(TEXT + "more\n", before).status, 200)
        self.assertEqual(self.path.read_text(), TEXT + "more\n")

    def test_faulty(self) -> None:
        """A text with errors is refused with all of them, and the file stays as it was."""
        before = self.put(TEXT).json["digest"]
        for text in ("", "no fence", TEXT.replace('name = "tell"', "name = 1"), "x" * (MAX_FILE_BYTES + 1)):
            heard = self.put(text, before)
            self.assertEqual((heard.status, heard.kind), (400, "invalid_request"))
            problems = heard.json["error"]["details"]["problems"]
            self.assertTrue(
                all(each["pointer"] == "/text" and each["message"].startswith("line ") for each in problems)
            )
        self.assertEqual(self.path.read_text(), TEXT)

    def test_names(self) -> None:
        """No name leads out of the directory, and a new file has the name of its action."""
        for name in ("..%2ftell", "Tell", "%2e%2e", ".tell", "tell%00", "-tell", "t" * 65, "tell%0a"):
            heard = self.put(TEXT, name=name)
            self.assertEqual(heard.status, 404, name)
        self.assertEqual(self.put(TEXT, name="other").status, 400)
        self.assertEqual((self.there(), self.state_directory.root.parent.joinpath("tell.md").exists()), ([], False))

    def test_links(self) -> None:
        """No file is written through a link, and none into a directory that is one."""
        aim = self.state_directory.root / "aim.md"
        aim.write_text(TEXT)
        self.path.symlink_to(aim)
        digest = digest_of_bytes(TEXT.encode())
        self.assertEqual([self.put(TEXT + "x", before).status for before in (digest, None)], [403, 403])
        self.path.unlink()
        self.path.symlink_to(self.state_directory.root / "nothing.md")
        self.assertEqual(self.put(TEXT).status, 403)
        self.path.unlink()
        elsewhere = self.state_directory.root / "elsewhere"
        self.state_directory.actions.rename(elsewhere)
        self.state_directory.actions.symlink_to(elsewhere)
        self.assertEqual(self.put(TEXT).status, 403)
        self.assertEqual((aim.read_text(), list(elsewhere.iterdir())), (TEXT, []))

    def test_other_file(self) -> None:
        """An action whose file has another name is written where it is."""
        (self.state_directory.actions / "other.md").write_text(TEXT)
        self.assertEqual(self.put(TEXT + "x", digest_of_bytes(TEXT.encode())).status, 200)
        self.assertEqual(self.there(), ["other.md"])

    def test_operators_only(self) -> None:
        """No agent and no launcher reaches any of it, on either site."""
        body = {"text": TEXT, "before": None}
        for method, path, sent in (
            ("POST", "/v1/actions/check", {"text": TEXT}),
            ("PUT", "/v1/actions/tell/file", body),
            ("POST", "/v1/actions/ship-update/dry-run", {"args": {}}),
        ):
            for token in (self.agent_token(), LAUNCH_KEY):
                self.assertEqual(self.agents.ask(method, path, token, sent).status in (404, 405), True, path)
                self.assertEqual(self.operator.ask(method, path, token, sent).status, 401, path)
            self.assertEqual(self.operator.ask(method, path, None, sent).status, 401, path)
        self.assertEqual(self.there(), [])

    def test_dry_run(self) -> None:
        """A dry run answers what an approval would show; no run is made of it."""
        heard = self.operator.ask("POST", "/v1/actions/ship-update/dry-run", self.key, {"args": {"text": "hello"}})
        self.assertEqual(heard.status, 200)
        self.assertEqual(heard.json["review"]["fields"][0]["value"], "hello")
        self.assertEqual(self.operator.ask("GET", "/v1/runs", self.key).json["items"], [])
        self.assertEqual(self.operator.ask("POST", "/v1/actions/none/dry-run", self.key, {}).status, 404)

    def test_dry_run_refused(self) -> None:
        """What is wrong with the arguments comes back in the one envelope."""
        refusal = InvalidRequest.listing("These do not fit.", ("/args/a", "is missing"), ("/args/b", "is unknown"))

        def refuse(_runner: Any, name: str, arguments: Any) -> Any:
            raise refusal

        self.patch(ScriptedRunner, "dry_run", refuse)
        heard = self.operator.ask("POST", "/v1/actions/ship-update/dry-run", self.key, {})
        self.assertEqual((heard.status, heard.kind), (400, "invalid_request"))
        self.assertEqual(
            [each["pointer"] for each in heard.json["error"]["details"]["problems"]], ["/args/a", "/args/b"]
        )
