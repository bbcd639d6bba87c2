"""The difference between a request as it was shown and as it is now, as texts that a person can read."""

from __future__ import annotations

from tests.runner.kit import step
from tests.runner.previewed import PreviewedCase


class ChangesTests(PreviewedCase):
    """An action whose file is changed while a call of it waits."""

    def setUp(self) -> None:
        """Offer an action, and have a call wait."""
        super().setUp()
        self.offer("plain", step("post"), body="Some words.")
        self.waiting = self.submit("plain", {"text": "hello"})
        self.assertEqual(self.shown(self.waiting).changes, ())
        self.before = self.text("plain")

    def text(self, name: str) -> str:
        """The file as it is."""
        return self.directory.joinpath(f"{name}.md").read_text(encoding="utf-8")

    def changed(self) -> list[tuple[str, object, object]]:
        """What is told to differ."""
        return [(each.path, each.before, each.after) for each in self.shown(self.waiting).changes]

    def test_texts(self) -> None:
        """A file that changed is told by its texts, if both were trusted; not by two digests."""
        self.sync(self.store.contents.put(self.before))
        self.offer("plain", step("post"), body="Other words.")
        (unknown,) = self.changed()
        self.assertEqual(unknown[0], "/manifest_digest")
        self.assertIn("sha256:", str(unknown[2]))
        self.sync(self.store.contents.put(self.text("plain")))
        self.assertEqual(self.changed(), [("/manifest_digest", self.before, self.text("plain"))])

    def test_decided(self) -> None:
        """The texts are for the reader alone: the decision names the digest as before."""
        self.offer("plain", step("post"), body="Other words.")
        self.decide(self.waiting, self.shown(self.waiting).digest)
        self.assertEqual(self.effects(), ["post"])
