"""The operator's word about files, as the operator site takes it."""

from __future__ import annotations

from typing import Any

from aileron.model.trust import Candidate, TrustKind

from .case import ApiCase, Heard

ACTION, CONNECTOR = TrustKind.ACTION, TrustKind.CONNECTOR


def word(candidate: Candidate) -> dict[str, str]:
    """What trusting it sends."""
    return {"kind": candidate.kind.value, "name": candidate.name, "digest": candidate.digest}


class TrustTests(ApiCase):
    """An action and a connector that nobody has trusted."""

    def setUp(self) -> None:
        super().setUp()
        self.key = self.operator_token()
        self.action = self.runner.put_file(ACTION, "ship", "one\ntwo")
        self.other = self.runner.put_file(CONNECTOR, "local://me/chat", "hosts = []\n")

    def items(self) -> dict[str, Any]:
        """What is listed, by name."""
        heard = self.operator.ask("GET", "/v1/trust", self.key)
        return {item["name"]: item for item in heard.json["items"]}

    def trust(self, *candidates: Candidate) -> Heard:
        return self.operator.ask("POST", "/v1/trust", self.key, {"items": [word(each) for each in candidates]})

    def test_new(self) -> None:
        """A new file is shown whole, with its size, and by its kind and path."""
        found = self.items()["ship"]
        self.assertEqual((found["kind"], found["state"], found["digest"]), ("action", "new", self.action.digest))
        self.assertEqual((found["text"], found["difference"]), ("one\ntwo", "one\ntwo"))
        self.assertEqual((found["lines"], found["bytes"], found["path"]), (2, 7, self.action.path))
        self.assertIsNone(found["trusted"])

    def test_trusted(self) -> None:
        """Several are trusted at once, each by its digest; one that changes then is shown by its difference."""
        heard = self.trust(self.action, self.other)
        self.assertEqual([item["state"] for item in heard.json["items"]], ["trusted", "trusted"])
        found = self.items()["ship"]
        self.assertEqual((found["state"], found["difference"]), ("trusted", ""))
        self.assertEqual((found["trusted"]["digest"], found["trusted"]["enabled"]), (self.action.digest, True))
        self.trust(self.action)
        self.runner.put_file(ACTION, "ship", "one\n2")
        found = self.items()["ship"]
        self.assertEqual(found["state"], "changed")
        self.assertIn("-two\n+2", found["difference"])
        self.assertNotEqual(found["digest"], found["trusted"]["digest"])

    def test_moved(self) -> None:
        """Where one is not what was shown any more, none is trusted, and what lies there is told."""
        now = self.runner.put_file(ACTION, "ship", "other")
        heard = self.trust(self.other, self.action)
        self.assertEqual((heard.status, heard.kind), (409, "conflict"))
        self.assertEqual(heard.json["error"]["details"], {"items": [word(now)]})
        self.assertEqual({item["state"] for item in self.items().values()}, {"new"})

    def test_gone(self) -> None:
        """What was trusted and is there no more is listed, and can be taken back, once."""
        self.trust(self.action)
        self.runner.remove(ACTION, "ship")
        found = self.items()["ship"]
        self.assertEqual((found["state"], found["text"], found["path"]), ("gone", None, None))
        heard = self.operator.ask("DELETE", "/v1/trust", self.key, {"kind": "action", "name": "ship"})
        self.assertEqual(heard.json, {"kind": "action", "name": "ship"})
        self.assertNotIn("ship", self.items())
        heard = self.operator.ask("DELETE", "/v1/trust", self.key, {"kind": "action", "name": "ship"})
        self.assertEqual(heard.status, 404)

    def test_malformed(self) -> None:
        """Nothing looser than a list of kind, name and digest is a word of trust."""
        whole = word(self.action)
        for items in ([], [{**whole, "kind": "vault"}], [{**whole, "enabled": True}], [{"kind": "action"}], "all"):
            heard = self.operator.ask("POST", "/v1/trust", self.key, {"items": items})
            self.assertEqual(heard.status, 400, items)
