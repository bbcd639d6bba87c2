"""C{aileron ask}: prompts listed, shown and answered."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.daemon import CommandCase

_PATH = "/v1/asks"


def item(number: int, text: str = "npm test", **changed: Any) -> dict[str, Any]:
    """A prompt as the daemon shows it."""
    return {
        "id": f"01JAASK{number}",
        "session_id": f"S{number}",
        "agent": "claude",
        "tool": "Bash",
        "kind": "command",
        "text": text,
        "rest": "",
        "directory": "/work\u202e",
        "asked_at": "2026-01-01T00:00:00.000000Z",
        "ends_at": "2026-01-01T01:00:00.000000Z",
        "is_plain": True,
        "patterns": ["Bash(npm test)", "Bash(npm *)"],
        "state": "waiting",
        "by": "",
        "pattern": "",
        "reason": "",
        **changed,
    }


class AskTests(CommandCase):
    """C{aileron ask}."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        items = [item(1), item(2, "rm x\nls"), item(3, state="expired")]
        self.site.answer("GET", _PATH, {"items": items})
        for each in items:
            self.site.answer("POST", f"{_PATH}/{each['id']}/answer", each)

    def answered(self, number: int) -> list[Any]:
        """What was sent as an answer."""
        return self.site.bodies("POST", f"{_PATH}/01JAASK{number}/answer")

    def test_list(self) -> None:
        """What waits is listed, foreign text made visible; all on demand, and for programs as the daemon says it."""
        code, out, _ = self.as_operator("ask", "list")
        self.assertEqual(code, 0)
        for part in ("01JAASK1", "claude", "npm test", "rm x…"):
            self.assertIn(part, out)
        self.assertNotIn("01JAASK3", out)
        self.assertNotIn("\u202e", out)
        self.assertIn("01JAASK3", self.as_operator("ask", "list", "--all")[1])
        self.assertEqual(len(json.loads(self.as_operator("ask", "list", "--json")[1])["items"]), 2)

    def test_show(self) -> None:
        """One is shown in full, with the rules that can be allowed."""
        code, out, _ = self.as_operator("ask", "show", "ASK2")
        self.assertEqual(code, 0)
        for part in ("claude asks to use Bash", "rm x", "ls", "aileron ask allow 01JAASK2 --session 'Bash(npm *)'"):
            self.assertIn(part, out)

    def test_answer(self) -> None:
        """Several are allowed after one passphrase, or one for its session, or denied with a reason."""
        code, out, err = self.as_operator("ask", "allow", "ASK1", "01JAASK2")
        self.assertEqual((code, out.count("Allowed Bash of claude.")), (0, 2), err)
        self.assertEqual((self.answered(1), self.answered(2)), ([{"answer": "once"}], [{"answer": "once"}]))
        self.as_operator("ask", "allow", "ASK1", "--session", "Bash(npm *)")
        self.assertEqual(self.answered(1)[-1], {"answer": "session", "pattern": "Bash(npm *)"})
        self.assertIn("Denied Bash", self.as_operator("ask", "deny", "ASK2", "--reason", "Use git rm.")[1])
        self.assertEqual(self.answered(2)[-1], {"answer": "deny", "reason": "Use git rm."})
        self.assertEqual(json.loads(self.as_operator("ask", "deny", "ASK1", "--json")[1])["id"], "01JAASK1")

    def test_unknown(self) -> None:
        """Nothing is answered if a name is unknown, or of several."""
        for wanted, says in (("X", "No agent asks X"), ("", "3 prompts end in")):
            code, _, err = self.as_operator("ask", "allow", wanted)
            self.assertEqual((code, says in err), (1, True), err)
        self.assertEqual(self.answered(1), [])

    def test_try_rule(self) -> None:
        """What a rule would have answered is listed with its number."""
        past = {**item(1), "at": "2026-01-01T00:00:00.000000Z"}
        found = {"rule": "Bash(npm *)", "tried": 60, "unknown": 2, "answered": [past]}
        self.site.answer_unknown = lambda _: found
        code, out, err = self.as_operator("ask", "try-rule", "Bash(npm *)", "--deny", "--project", "/work")
        self.assertEqual(code, 0, err)
        for part in ("Bash(npm *) would have answered 1 of the last 60.", "Of 2 the audit log", "npm test"):
            self.assertIn(part, out)
        self.assertEqual(json.loads(self.as_operator("ask", "try-rule", "Bash", "--json")[1])["tried"], 60)
