"""What a version wrote, held against what this one makes of the same."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import canonical, digest
from aileron.model.trust import Mark
from aileron.vault import ControlKey
from aileron.vault.keys import open_vault
from tests.api.case import ApiCase, Site
from tests.golden.home import unpack, versions

_HERE = Path(__file__).parent
_PASSPHRASE = "Blaue Wiese 47 Kuchen Turm"
_DECISIONS = """
SELECT runs.id, effect_key, digest, approved, decided_by, decided_at, not_before, not_after, decision_mark
FROM runs JOIN approvals ON run_id = runs.id WHERE decision_mark IS NOT NULL
"""


def read(name: str) -> Any:
    """One of the files beside this one."""
    return json.loads((_HERE / name).read_text(encoding="utf-8"))


class DecisionTests(SynchronousTestCase):
    """The vault's file opens, and its key still knows the marks under decisions."""

    def test_marks(self) -> None:
        """Each mark in the database of a home is the one that its key gives to the statement of the row."""
        for version in versions():
            home = Path(self.mktemp()) / "opened"
            home.parent.mkdir()
            unpack(version, home)
            key = ControlKey.of(open_vault(home / "secrets.json", _PASSPHRASE))
            with closing(sqlite3.connect(home / "aileron.db")) as database:
                rows = database.execute(_DECISIONS).fetchall()
            self.assertGreater(len(rows), 2)
            for row in rows:
                self.assertIs(key.verify(self._statement(row), row[-1]), Mark.SOUND, row)

    @staticmethod
    def _statement(row: tuple[Any, ...]) -> dict[str, Any]:
        names = ("run", "effect_key", "digest", "approved", "decided_by", "decided_at", "not_before", "not_after")
        values = dict(zip(names, row, strict=False))
        return {"tag": "aileron.decision.v1", **values, "approved": bool(values["approved"])}


class DigestTests(SynchronousTestCase):
    """The canonical form, and what is made of it."""

    def test_values(self) -> None:
        """Each value has the bytes and the digest that it had."""
        for value, text, found in read("values.json"):
            self.assertEqual((canonical(value).decode(), digest(value)), (text, found))


class ContractTests(ApiCase):
    """What clients are promised."""

    maxDiff = None

    def test_documents(self) -> None:
        """Each site has the routes, parameters and answers that its document in this directory says.

        The sentences about them are for people, and may change; what is required has no order.
        A promise that was changed on purpose is written there by C{AILERON_GOLDEN_CONTRACT=yes trial tests.golden}.
        """
        for name, site in (("agents", self.agents), ("operator", self.operator)):
            document, path = _document(site), _HERE / "contract" / f"{name}.json"
            if "AILERON_GOLDEN_CONTRACT" in os.environ:
                path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            self.assertEqual(_promised(document), _promised(read(f"contract/{name}.json")))


def _promised(document: Any) -> Any:
    """The document without its sentences, and without an order of the members that a schema requires."""
    for path in document["paths"].values():
        for operation in path.values():
            operation.pop("summary", None)
    return _unordered(document)


def _unordered(value: Any) -> Any:
    if isinstance(value, list):
        return [_unordered(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: sorted(each) if name == "required" and isinstance(each, list) else _unordered(each)
        for name, each in value.items()
    }


def _document(site: Site) -> Any:
    document = site.ask("GET", "/v1/openapi.json").json
    del document["info"]["version"]
    return document
