"""Calls as text."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.prompts.calls import MOST_RECORDED, describe_call, identify_call, record_text
from aileron.features.prompts.values import CallKind

SECRET = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


class DescribeTests(SynchronousTestCase):
    """What a person is shown."""

    def test_command(self) -> None:
        """A command is shown as it is, and the other members of the input beside it."""
        call = describe_call({"command": "npm test", "description": "Run"})
        self.assertEqual((call.kind, call.subject, call.text), (CallKind.COMMAND, "npm test", "npm test"))
        self.assertEqual((call.rest, call.is_plain), ('{"description": "Run"}', True))
        self.assertEqual(describe_call({"command": ["sh", "-c", "a b"]}).text, "sh -c 'a b'")

    def test_file(self) -> None:
        """A change of a file is shown line by line, in each agent's own words."""
        wanted = "/a.py\n- one\n- two\n+ three"
        for names in (
            ("file_path", "old_string", "new_string"),
            ("filePath", "oldString", "newString"),
            ("path", "oldText", "newText"),
        ):
            call = describe_call(dict(zip(names, ("/a.py", "one\ntwo", "three"), strict=True)))
            self.assertEqual((call.kind, call.subject, call.text, call.rest), (CallKind.FILE, "/a.py", wanted, ""))
        edits = [{"old_string": "one\ntwo", "new_string": "three"}]
        self.assertEqual(describe_call({"file_path": "/a.py", "edits": edits}).text, wanted)
        self.assertEqual(describe_call({"file_path": "/a.py", "content": "x\ny"}).text, "/a.py\n+ x\n+ y")

    def test_nothing_hidden(self) -> None:
        """Each member of an input is in what is shown, whatever it is."""
        samples: tuple[dict[str, Any], ...] = (
            {"command": "a", "sandbox": False},
            {"command": 5, "x": [1]},
            {"file_path": "/a", "edits": [{"old_string": "a", "new_string": "b", "more": "seen"}]},
            {"file_path": "/a", "edits": "seen", "old_string": 7, "content": None},
            {"url": "https://a.example", "prompt": "seen"},
            {},
        )
        for given in samples:
            call = describe_call(given)
            shown = call.text + call.rest
            for word in json.dumps(given).replace('"', " ").split():
                if word.strip("{}[],:") in ("seen", "sandbox", "false", "5", "7", "null"):
                    self.assertIn(word.strip("{}[],:"), shown, given)

    def test_identity(self) -> None:
        """The order of members is no difference, and anything else is one."""
        self.assertEqual(identify_call("T", {"a": 1, "b": [2]}), identify_call("T", {"b": [2], "a": 1}))
        self.assertNotEqual(identify_call("T", {"a": 1}), identify_call("T", {"a": "1"}))
        self.assertNotEqual(identify_call("T", {"a": 1}), identify_call("U", {"a": 1}))


class RecordTests(SynchronousTestCase):
    """What the audit log keeps."""

    def test_whole(self) -> None:
        """A short text without secrets is kept."""
        self.assertEqual(record_text("npm test"), ("npm test", True))

    def test_secrets(self) -> None:
        """A secret is not kept, also where it is cut, nor with a name before it."""
        for text in (
            f"curl -H 'Authorization: Bearer {SECRET}' https://a.example",
            f"export TOKEN={SECRET}",
            f"{'x' * 980} {SECRET}",
            f"{'x ' * 3980}{SECRET}{SECRET}",
            "PASSWORD=hunter22x make",
        ):
            kept, is_whole = record_text(text)
            self.assertFalse(is_whole)
            self.assertNotIn(SECRET[:12], kept)
            self.assertNotIn("hunter22x", kept)
        self.assertIn("npm", record_text(f"npm publish --token={SECRET}")[0])

    def test_cut(self) -> None:
        """A long text is cut."""
        kept, is_whole = record_text("ab " * 1000)
        self.assertEqual((len(kept), kept[-1], is_whole), (MOST_RECORDED, "…", False))
