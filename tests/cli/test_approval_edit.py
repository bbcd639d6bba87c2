"""What is asked for, edited; what the service shows; and what changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aileron.cli.approvals import edit as _approval_edit
from aileron.cli.context import CliContext
from aileron.model.errors import InvalidRequest
from tests.cli.daemon import DIGEST, ONE, PASSPHRASE, RUN, SESSION, ServedCase, approval

EDIT = f"{ONE}/edit"
ASKED = {"channel": "#eng", "count": 1, "note": "x"}
SCHEMA = {
    "properties": {"channel": {"type": "string"}, "count": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["channel", "count"],
}


def asked(**changed: Any) -> dict[str, Any]:
    """An approval of a run with arguments."""
    found = approval(**changed)
    found["run"] = {**found["run"], "arguments": ASKED}
    return found


class EditCase(ServedCase):
    """A daemon that takes edits."""

    def setUp(self) -> None:
        super().setUp()
        self.site.answer("GET", ONE, asked())
        self.site.answer("GET", "/v1/sessions/S", SESSION)
        self.site.answer("GET", "/v1/actions/ship-update", {"input_schema": SCHEMA})
        self.site.answer("POST", EDIT, asked())

    def sent(self) -> list[Any]:
        """What was edited."""
        return self.site.bodies("POST", EDIT)


class EditTests(EditCase):
    """C{aileron approval edit}."""

    def test_arguments(self) -> None:
        """Some arguments are replaced or left out, in their types; the rest stays; the digest is of what was shown."""
        code, out, err = self.as_operator("approval", "edit", RUN, "--arg", "count=2", "--without", "note")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.sent(), [{"args": {"channel": "#eng", "count": 2}, "digest": DIGEST}])
        self.assertIn("POST https://slack.com/api/chat.postMessage", out)
        self.assertIn(f"Nothing is decided yet. To approve it: aileron approve {RUN}", err)
        out = self.as_operator("approval", "edit", RUN, "--arg", "channel=#all", "--json")[1]
        self.assertEqual(json.loads(out)["session"]["agent"], "opencode")

    def test_usage(self) -> None:
        """Without anything to edit, or with two ways, nothing is asked."""
        for arguments in ((), ("--arg", "count=2", "--editor"), ("--editor", "--passphrase-fd", "3")):
            self.assertEqual(self.command("approval", "edit", RUN, *arguments)[0], 2, arguments)
        for option, value in (("--arg", "nobody=2"), ("--arg", "count=x"), ("--without", "nobody")):
            self.assertEqual(self.as_operator("approval", "edit", RUN, option, value)[0], 2, value)
        self.assertEqual(self.sent(), [])

    def test_refused(self) -> None:
        """The daemon's reasons are told; what is decided is not edited."""
        self.site.answer("POST", EDIT, InvalidRequest.listing("Wrong.", ("/args/count", "must be 5 or less")))
        code, _, err = self.as_operator("approval", "edit", RUN, "--arg", "count=7")
        self.assertEqual(code, 1)
        self.assertIn("must be 5 or less", err)
        found = asked()
        found["run"]["state"] = "denied"
        self.site.answer("GET", ONE, found)
        self.assertIn(
            "Already denied; nothing was decided.", self.as_operator("approval", "edit", RUN, "--arg", "count=2")[2]
        )


class EditorTests(EditCase):
    """C{--editor}."""

    def setUp(self) -> None:
        super().setUp()
        self.patch(_approval_edit, "shown_by_child", self.shown)

    def shown(self, cli: CliContext, approval_id: str) -> Mapping[str, Any]:
        """What the child would say; by then no passphrase was read here."""
        self.assertEqual((approval_id, self.typed[-1]), (RUN, PASSPHRASE))
        return asked()

    def left(self) -> list[Path]:
        """Files that are left behind."""
        return list(self.home.root.glob("edit-*"))

    def test_edited(self) -> None:
        """What the person leaves in the editor is asked for, and no file is left."""
        self.editing('{"channel": "#all"}')
        code, _, err = self.as_operator("approval", "edit", RUN, "--editor")
        self.assertEqual((code, self.sent()), (0, [{"args": {"channel": "#all"}, "digest": DIGEST}]), err)
        self.assertEqual(self.left(), [])

    def test_faulty(self) -> None:
        """What is no object of JSON is told, and edited again."""
        self.editing("{", '["a"]', '{"channel": "#all"}')
        self.typed = ["", "y", PASSPHRASE]
        code, out, err = self.command("approval", "edit", RUN, "--editor")
        self.assertEqual((code, len(self.sent())), (0, 1), err)
        self.assertIn("This is not valid JSON", out)
        self.assertIn("must be one JSON object", out)

    def test_refused(self) -> None:
        """What the daemon refuses is kept for another try; what is left as it was is not asked for."""
        self.editing(json.dumps(dict(reversed(ASKED.items()))))
        code, _, err = self.as_operator("approval", "edit", RUN, "--editor")
        self.assertEqual((code, self.sent(), self.left()), (1, [], []))
        self.assertIn("Nothing was edited", err)
        self.site.answer("POST", EDIT, InvalidRequest("Wrong."))
        self.editing('{"channel": 1}')
        code, _, err = self.as_operator("approval", "edit", RUN, "--editor")
        (kept,) = self.left()
        self.assertEqual((code, kept.read_text()), (1, '{"channel": 1}'))
        self.assertIn(str(kept), err)


class ShownTests(EditCase):
    """C{aileron approval show} of previews and differences."""

    def shown(self, preview: dict[str, Any], **changed: Any) -> str:
        """What is printed."""
        found = asked(**changed)
        read = {**found["review"]["steps"][0], "id": "preview", "operation": "get", "request": None}
        usual: dict[str, Any] = {"fields": [], "fault": None, "carried": {}, "read": read, "lacking": None}
        found["review"]["preview"] = {"connector": "builtin://slack", "operation": "get", **usual, **preview}
        self.site.answer("GET", ONE, found)
        return self.as_operator("approval", "show", RUN)[1]

    def test_preview(self) -> None:
        """Each line by its label, long ones below it, a missing one as missing, a cut one as cut."""
        cut = {"bytes": 70000, "digest": "sha256:text"}
        fields = [
            {"label": "Topic", "value": "old\u202e", "missing": False, "multiline": False},
            {"label": "Text", "value": "one\ntwo", "missing": False, "multiline": True, "cut": cut},
            {"label": "Owner", "value": None, "missing": True, "multiline": False},
        ]
        out = self.shown({"status": "shown", "fields": fields})
        for part in (
            "Preview from builtin://slack",
            "Topic  old\\u202e",
            "  Text\n    │ one\n    │ two\n",
            "Only the beginning is shown; the full value has 70000 bytes",
            "Owner  -",
        ):
            self.assertIn(part, out)

    def test_no_preview(self) -> None:
        """Why there is none is told, and what that means."""
        out = self.shown({"status": "unavailable", "fault": {"class": "network_error", "message": "Gone."}})
        self.assertIn("Not available: Gone. (network_error)", out)
        self.assertIn("Not loaded yet", self.shown({"status": "fetching"}))
        self.assertIn("It cannot be approved", self.shown({"status": "fetching", "lacking": "It cannot be approved."}))

    def test_changes(self) -> None:
        """What is otherwise is told by its label, with what was and what is."""
        changes = [
            {"path": "/fields/0/value", "kind": "changed", "before": "#eng", "after": "#all"},
            {"path": "/steps/0/request/url", "kind": "changed", "before": "a", "after": "b"},
            {"path": "/steps/0/binding", "kind": "removed", "before": {"name": "n"}, "after": None},
            {"path": "", "kind": "more", "before": None, "after": "There are more."},
        ]
        out = self.shown({"status": "fetching"}, changes=changes)
        self.assertIn("  channel\n    │ - #eng\n    │ + #all\n  step post: request url\n    │ - a\n    │ + b\n", out)
        self.assertIn("  There are more.", out)
        self.assertNotIn("│ + null", out)

    def test_edits(self) -> None:
        """What was edited of what was asked for is told, of a run as well."""
        found = asked()
        found["run"]["edited"] = [{"path": "/channel", "kind": "changed", "before": "#all", "after": "#eng"}]
        self.site.answer("GET", ONE, found)
        out = self.as_operator("approval", "show", RUN)[1]
        self.assertIn("Edited since the request\n  channel\n    │ - #all\n    │ + #eng\n", out)
