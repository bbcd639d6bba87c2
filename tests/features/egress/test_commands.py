"""Network access of sandboxes: listed, allowed and denied as it was shown."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.daemon import CommandCase

_PATH = "/v1/egress"


def host(number: int, name: str = "a.example:443", **changed: Any) -> dict[str, Any]:
    """A host as the daemon shows it."""
    return {
        "id": f"H{number}",
        "session_id": f"S{number}",
        "project": "/work\u202e",
        "host": name,
        "state": "pending",
        "basis": "",
        "asked_at": "2026-01-01T00:00:00.000000Z",
        "times": 3,
        "sent": 0,
        "received": 0,
        **changed,
    }


class EgressTests(CommandCase):
    """C{aileron network}."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.given(host(1), host(2, "b.example:8443", state="allowed", basis="npm"))

    def given(self, *items: dict[str, Any]) -> None:
        """What there is."""
        self.site.answer("GET", _PATH, {"items": list(items)})
        for each in items:
            self.site.answer("POST", f"{_PATH}/{each['id']}/decision", each)

    def decided(self, *words: str) -> list[Any]:
        """What was sent of a decision."""
        code, _, err = self.as_operator("egress", *words)
        self.assertEqual(code, 0, err)
        return [body for each in ("H1", "H2") for body in self.site.bodies("POST", f"{_PATH}/{each}/decision")]

    def test_list(self) -> None:
        """The hosts are listed, foreign text made visible; for programs as the daemon says them."""
        code, out, _ = self.as_operator("egress", "list")
        self.assertEqual(code, 0)
        for part in ("a.example:443", "pending", "b.example:8443", "npm"):
            self.assertIn(part, out)
        self.assertNotIn("\u202e", out)
        self.assertEqual(json.loads(self.as_operator("egress", "list", "--json")[1])["items"][0]["id"], "H1")

    def test_decide(self) -> None:
        """A host is decided by name, with or without the usual port, or by its ID, as it stood when looked up."""
        seen = {"state": "pending"}
        self.assertEqual(self.decided("allow", "a.example"), [{"decision": "session", **seen}])
        self.assertEqual(self.decided("allow", "H1", "--always")[-1], {"decision": "always", **seen})
        self.assertEqual(self.decided("deny", "b.example:8443")[-1], {"decision": "deny", "state": "allowed"})

    def test_several(self) -> None:
        """Several hosts are decided after one passphrase; the first that cannot be decided ends it."""
        code, out, _ = self.as_operator("egress", "deny", "H1", "H2", "H1")
        self.assertEqual((code, out.count("Denied ")), (0, 2))
        self.assertEqual(len(self.site.bodies("POST", "/v1/operator/login")), 1)
        told = json.loads(self.as_operator("egress", "allow", "H1", "H2", "--json")[1])
        self.assertEqual([each["id"] for each in told["items"]], ["H1", "H2"])
        code, out, err = self.as_operator("egress", "deny", "H1", "absent", "H2")
        self.assertEqual((code, out.count("Denied "), "No running session" in err), (1, 1, True))

    def test_said(self) -> None:
        """What was decided is said, for whom."""
        self.assertIn("Allowed a.example:443 for session S1.", self.as_operator("egress", "allow", "H1")[1])
        self.assertIn("for every session in /work", self.as_operator("egress", "allow", "H1", "--always")[1])
        self.assertIn("Denied a.example:443 to session S1.", self.as_operator("egress", "deny", "H1")[1])

    def test_none_or_several(self) -> None:
        """Where no session asked for it, or several did, nothing is decided."""
        self.given(host(1), host(2))
        for wanted, says in (("c.example", "No running session asked for c.example"), ("a.example", "use an ID")):
            code, _, err = self.as_operator("egress", "allow", wanted)
            self.assertEqual((code, says in err), (1, True), err)
        self.assertEqual(self.site.bodies("POST", f"{_PATH}/H1/decision"), [])


class LaunchTests(CommandCase):
    """C{aileron launch --egress}."""

    def test_refused(self) -> None:
        """A way out needs a sandbox, and presets or hosts that there are."""
        for options, says in (
            (("--egress", "npm"), "--egress requires --sandbox"),
            (("--sandbox", "--egress", "nmp"), "There is no preset of this name. Use a host, or one of: npm"),
            (("--sandbox", "--egress", "10.0.0.1"), "must be a name"),
            (("--sandbox", "--egress", " , "), "needs presets or hosts"),
        ):
            code, out, err = self.command("launch", *options, "opencode")
            self.assertEqual((code, out, says in " ".join(err.split())), (2, "", True), err)

    def test_off(self) -> None:
        """An option of a feature that is off is refused in one sentence."""
        for feature in ("sandbox", "egress"):
            self.home.config.write_text(f"features:\n  {feature}: off\n")
            self.home.config.chmod(0o600)
            code, out, err = self.command("launch", "--sandbox", "--egress", "npm", "opencode")
            said = f"aileron: The option --{feature} is off: config.yaml has the feature {feature} off."
            self.assertEqual((code, out, err.splitlines()[0]), (1, "", said))
