"""The page of what is to be trusted: every file whole, what differs, and one button for exactly that."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.model.audit import Actor
from aileron.model.trust import TrustKind

from .case import WebCase, read


class TrustCase(WebCase):
    """Files, and the operator's word about them."""

    def shown(self) -> Any:
        """The fragment, read."""
        heard = self.fragment("/trust")
        self.assertEqual(heard.status, 200)
        return read(heard.text)

    def trust(self, kind: TrustKind, name: str, text: str) -> None:
        """Have the operator trust a file with this text, which lies there from now on."""
        candidate = self.runner.put_file(kind, name, text)
        word = self.runner.trust([(kind, name, candidate.digest)], Actor("human", "ops_1"))
        self.successResultOf(Deferred.fromCoroutine(word))

    def buttons(self) -> list[dict[str, str]]:
        """What the buttons would trust."""
        return [attributes for tag, attributes in self.shown().tags if tag == "button"]


class TrustPageTests(TrustCase):
    """What is shown."""

    def test_nothing(self) -> None:
        """Where nothing is new a sentence says so, and there is nothing to trust; what is trusted can be taken back."""
        self.trust(TrustKind.ACTION, "ship-update", "one\n")
        shown = self.shown()
        self.assertIn("No new or changed files", shown.text)
        self.assertIn("ship-update", shown.text)
        self.assertEqual(shown.tags[0][1]["data-title"], "Trust – Aileron")
        (button,) = self.buttons()
        self.assertEqual((button["data-kind"], button["data-name"]), ("action", "ship-update"))
        self.assertEqual((button["class"], button.get("data-digest")), ("distrust", None))

    def test_new(self) -> None:
        """A new file is shown whole, counted, and its button names the digest of exactly that text."""
        text = "".join(f"line {number}\n" for number in range(500))
        candidate = self.runner.put_file(TrustKind.ACTION, "ship-update", text)
        shown = self.shown()
        self.assertTrue(text in shown.text)
        self.assertIn("New. Not active until you trust it.", shown.text)
        self.assertIn("/home/actions/ship-update", shown.text)
        self.assertEqual(shown.tags[0][1]["data-said"], "Files to review: 1")
        (button,) = self.buttons()
        named = (button["data-kind"], button["data-name"], button["data-digest"])
        self.assertEqual(named, ("action", "ship-update", candidate.digest))
        self.assertIn("disabled", button, "the script brings it to life")

    def test_first(self) -> None:
        """That an action runs without asking, or cannot run, is said before all else of it."""
        self.runner.put_file(
            TrustKind.ACTION, "a", "1\n", unasked=True, lacks=("needs the connector x, which is not there",)
        )
        text = self.shown().text
        unasked = text.index("Makes changes without asking you.")
        lacks = text.index("Cannot run, so it cannot be trusted: it needs the connector x, which is not there.")
        self.assertLess(max(unasked, lacks), text.index("New. Not active until you trust it."))

    def test_changed(self) -> None:
        """Of a changed file what differs is shown before the whole."""
        self.trust(TrustKind.CONNECTOR, "local://me/chat", 'hosts = ["good.example"]\nheader = "X-Key"\n')
        self.runner.put_file(TrustKind.CONNECTOR, "local://me/chat", 'hosts = ["evil.example"]\nheader = "X-Key"\n')
        text = self.shown().text
        self.assertIn("Changed since you trusted it.", text)
        self.assertIn('\n-hosts = ["good.example"]\n+hosts = ["evil.example"]\n header = "X-Key"', text)
        self.assertLess(text.index("Changes"), text.index("Full text"))

    def test_order(self) -> None:
        """The configuration and connectors come before the actions that need them."""
        self.runner.put_file(TrustKind.ACTION, "a", "1\n")
        self.runner.put_file(TrustKind.CONNECTOR, "local://me/z", "2\n")
        self.runner.put_file(TrustKind.CONFIG, "config.yaml", "3\n")
        *each, every = self.buttons()
        self.assertEqual([button["data-kind"] for button in each], ["config", "connector", "action"])
        self.assertEqual((every["id"], every.get("data-digest")), ("trust-all", None))
        self.assertIn("Trust all 3 as shown above", self.shown().text)

    def test_one_action(self) -> None:
        """The page of one action has its file, those of the connectors that it needs, and nothing else."""
        mine = self.runner.put_file(TrustKind.ACTION, "ship-update", "1\n")
        self.runner._on_disk[mine.key] = evolve(mine, needs=("local://me/needed",))
        self.runner.put_file(TrustKind.ACTION, "other", "2\n")
        self.runner.put_file(TrustKind.CONNECTOR, "local://me/chat", "3\n")
        self.runner.put_file(TrustKind.CONNECTOR, "local://me/needed", "4\n")
        shown = read(self.fragment("/trust?action=ship-update").text)
        names = [each["data-name"] for _, each in shown.tags if "data-digest" in each]
        self.assertEqual(names, ["local://me/needed", "ship-update"])

    def test_gone(self) -> None:
        """What was trusted and lies there no more is said to be gone."""
        self.trust(TrustKind.ACTION, "ship-update", "one\n")
        self.runner.remove(TrustKind.ACTION, "ship-update")
        self.assertIn("the file no longer exists", self.shown().text)
