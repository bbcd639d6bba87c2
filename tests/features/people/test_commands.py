"""C{aileron people}: a name is checked before anything is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aileron.model.errors import Conflict
from tests.cli.daemon import CommandCase


class PeopleCommandTests(CommandCase):
    """A daemon that must not be asked."""

    def test_bad_name(self) -> None:
        """A name that no account can have is told in words, before a passphrase is asked for."""
        self.serve()
        for name in ("Alice", "al ice", "a.b", "a" * 33, "alice\n", ""):
            code, _, err = self.command("people", "add", name)
            self.assertEqual((2, True), (code, "at most 32 small letters" in " ".join(err.split())), err)
        self.assertEqual([], self.site.bodies("POST", "/v1/people"))

    def test_several(self) -> None:
        """Several people are added with one login, each once. Links are shown even if a later name is refused."""
        self.serve()
        self.site.answer("POST", "/v1/people", _add)
        code, out, err = self.as_operator("people", "add", "alice", "bob", "alice", "--group", "finance")
        self.assertEqual(0, code, err)
        for name in ("alice", "bob"):
            self.assertIn(f"https://desk.example.org/join#{name}", out)
        wanted = [{"name": name, "role": "approver", "groups": ["finance"]} for name in ("alice", "bob")]
        self.assertEqual(wanted, self.site.bodies("POST", "/v1/people"))
        code, out, err = self.as_operator("people", "add", "carol", "taken", "dave", "--json")
        self.assertEqual((1, "carol"), (code, json.loads(out)["name"]))
        self.assertIn("taken", err)
        code, out, err = self.as_operator("people", "add", "erin", "frank", "--json")
        self.assertEqual(["erin", "frank"], [each["name"] for each in json.loads(out)["items"]])

    def test_groups(self) -> None:
        """An account gets exactly the groups that are named, or none; a name that no group can have is refused."""
        self.serve()
        self.site.answer("POST", "/v1/people/alice/groups", lambda body: {"name": "alice", **body})
        for words, told in (("--group board --group finance", "board, finance"), ("", "none")):
            code, out, err = self.as_operator("people", "groups", "alice", *words.split())
            self.assertEqual((0, f"The groups of alice are now: {told}.\n"), (code, out), err)
        wanted = [{"groups": ["board", "finance"]}, {"groups": []}]
        self.assertEqual(wanted, self.site.bodies("POST", "/v1/people/alice/groups"))
        for name in ("group:finance", "Finance", "a b", ""):
            for command in (("groups", "alice"), ("add", "bob")):
                self.assertEqual(2, self.command("people", *command, "--group", name)[0], name)
        self.assertEqual([], self.site.bodies("POST", "/v1/people"))


def _add(body: Mapping[str, Any]) -> Mapping[str, Any]:
    if body["name"] == "taken":
        raise Conflict("There is an account with the name taken.")
    until = "2026-11-20T00:00:00.000000Z"
    link = f"https://desk.example.org/join#{body['name']}"
    return {"name": body["name"], "role": body["role"], "url": link, "invited_until": until}
