"""A vault file for tests, made once: stretching a passphrase takes a quarter of a second."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.vault import DataKey, VaultFile, keys

PASSPHRASE = "Canary battery staple 42"


@cache
def _template() -> tuple[bytes, bytes]:
    """An empty vault's bytes, and its data key."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "secrets.json"
        key = keys.create(path, PASSPHRASE)
        return path.read_bytes(), bytes(key._secret)


class VaultCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.path = Path(self.mktemp())
        content, secret = _template()
        self.path.write_bytes(content)
        self.secret = secret

    def key(self) -> DataKey:
        return DataKey(self.secret)

    def unlocked(self) -> VaultFile:
        return VaultFile(self.path, self.clock, lambda: True, self.key())

    def locked(self) -> VaultFile:
        return VaultFile(self.path, self.clock, lambda: True)

    def content(self) -> Any:
        return json.loads(self.path.read_bytes())

    def rewrite(self, content: Any) -> None:
        """What another process might do: replace the file."""
        other = self.path.with_suffix(".other")
        other.write_text(json.dumps(content))
        other.rename(self.path)
