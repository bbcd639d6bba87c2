"""Key sources over HTTP: who may add one, and what is on record."""

from __future__ import annotations

from typing import Any

from aileron.base.json import JSON, utc
from aileron.features.key_sources.routes import RunningKeySources
from aileron.model.errors import Forbidden, StoreUnavailable
from aileron.model.vault import KeySource, KeySourceKind
from tests.api.case import LOCAL_KEY, NOW, ApiCase, running

PATH = "/v1/vault/key-sources"
SOURCE = KeySource("S1", KeySourceKind.SYSTEMD, "server", "ab", utc(NOW))


class ScriptedSources:
    """Key sources that take the proof C{right}."""

    def __init__(self) -> None:
        self.kept: tuple[KeySource, ...] = ()
        self.full = False

    def list(self) -> tuple[KeySource, ...]:
        return self.kept

    def check(self, given: JSON, proof: str) -> KeySource:
        if proof != "right":
            raise Forbidden("Not made with the vault's key.")
        return SOURCE

    def add(self, given: JSON, proof: str) -> KeySource:
        if self.full:
            raise StoreUnavailable("The vault could not be written.")
        self.kept = (SOURCE,)
        return SOURCE

    def remove(self, source_id: str) -> KeySource:
        self.kept = ()
        return SOURCE


class RouteTests(ApiCase):
    """A daemon with key sources."""

    def setUp(self) -> None:
        super().setUp()
        self.sources = ScriptedSources()
        self.build(features=running(RunningKeySources(self.sources)))
        self.token = self.operator_token()

    def add(self, token: str | None = None, proof: str = "right", **more: Any) -> Any:
        """Add a source."""
        body = {"entry": {}, "proof": proof}
        return self.operator.ask("POST", PATH, token, body, **more)

    def test_whole(self) -> None:
        """A terminal adds one, which is listed without a login and removed with one; each is on record."""
        self.assertEqual(self.add(self.token).status, 201)
        (listed,) = self.operator.ask("GET", PATH, LOCAL_KEY).json["items"]
        self.assertEqual((listed["id"], listed["kind"], listed["name"]), ("S1", "systemd", "server"))
        self.assertEqual(self.operator.ask("DELETE", f"{PATH}/S1", self.token).status, 200)
        self.assertEqual(self.events()[-2:], ["vault.key_source_added", "vault.key_source_removed"])

    def test_refused(self) -> None:
        """No page, no local program and no wrong proof adds one."""
        browser, _ = self.operators.open_browser()
        self.assertEqual(self.add(browser=browser).status, 403)
        self.assertIn(self.add(LOCAL_KEY).status, (401, 403))
        self.assertEqual(self.add(self.token, "wrong").status, 403)
        self.assertIn(self.operator.ask("DELETE", f"{PATH}/S1", LOCAL_KEY).status, (401, 403))
        self.assertEqual(self.sources.kept, ())
        self.assertNotIn("vault.key_source_added", self.events())

    def test_recorded_first(self) -> None:
        """Where the vault cannot be written, the record names the source: no source is ever without a record."""
        self.sources.full = True
        self.assertEqual(self.add(self.token).status, 503)
        self.assertEqual(self.events()[-1], "vault.key_source_added")
