"""The kinds of connector: a table of those that ship, and those of other packages that the configuration names."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from jsonschema import Draft202012Validator
from twisted.trial.unittest import SynchronousTestCase

import aileron
from aileron.connectors import (
    ConnectorKind,
    KindTable,
    NotTried,
    Registry,
    Screened,
    build_request,
    check,
    kit,
    load_kinds,
    make_schema,
    read_descriptions,
)
from aileron.connectors.kinds import BUILT_IN
from aileron.features.proving._benches import BENCHES
from aileron.model.errors import InvalidRequest
from tests.connectors.foreign.install import FILE, install
from tests.connectors.service import Service

_NUMBERS = count()
_ROOT = Path(aileron.__file__).parent


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield str(node.module)


class BuiltInTests(SynchronousTestCase):
    """The kinds that ship with Aileron."""

    def test_complete(self) -> None:
        """Each has a package, a bench and a form of its own in the schema."""
        names = {path.name for path in (_ROOT / "connectors" / "kinds").iterdir() if (path / "_kind.py").exists()}
        self.assertEqual({each.name for each in BUILT_IN}, names)
        self.assertEqual(set(BENCHES), names)
        self.assertLessEqual(names, make_schema(KindTable())["$defs"].keys())

    def test_page(self) -> None:
        """The page for authors of kinds lists all that a kind can have, and no more."""
        page = (_ROOT.parent / "doc" / "writing-a-kind.md").read_text("utf-8")
        members = {name for name in vars(ConnectorKind) if not name.startswith("_")}
        self.assertEqual(set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)), members)
        imported = re.findall(r"^from aileron\.connectors\.kit import (.*)$", page, re.MULTILINE)
        self.assertLessEqual({name for line in imported for name in line.split(", ")}, set(kit.__all__))

    def test_apart(self) -> None:
        """None imports another, nor does what they share import one."""
        kinds = _ROOT / "connectors" / "kinds"
        found = {
            (path.relative_to(kinds).parts[0], name.split(".")[3])
            for path in kinds.glob("*/*.py")
            for name in _imports(path)
            if name.startswith("aileron.connectors.kinds.")
        }
        self.assertEqual([pair for pair in found if pair[0] != pair[1]], [])
        room = _ROOT / "connectors"
        shared = [path for path in (*room.glob("_*.py"), *room.glob("programs/*.py")) if path.name != "__init__.py"]
        for path in shared:
            named = [name for name in _imports(path) if name.startswith(("kinds.", "aileron.connectors.kinds."))]
            self.assertEqual(named, [], path.name)

    def test_asked_of_none(self) -> None:
        """Nothing asks of what class the content of a connector file is: its kind does what differs."""
        classes = {f"{each.name.title()}Spec" for each in BUILT_IN}
        for path in _ROOT.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "type"):
                    words = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                    self.assertFalse(words & classes, f"{path}:{node.lineno}")


class ForeignCase(SynchronousTestCase):
    """A package with a kind, installed beside Aileron under a name of its own."""

    def setUp(self) -> None:
        self.root = Path(mkdtemp(prefix="aileron-kinds-"))  # not below the working directory
        self.addCleanup(shutil.rmtree, self.root)
        self.package = f"acme_rpc_{next(_NUMBERS)}"
        self.patch(sys, "path", [str(self.root), *sys.path])
        self.addCleanup(sys.modules.pop, self.package, None)
        self.directory = Path(self.mktemp()).resolve()
        self.directory.mkdir()
        self.file = self.directory / "notes.toml"
        self.file.write_text(FILE.format(port=8080), "utf-8")

    def install(self, text: str = "", **more: str) -> None:
        """Install it."""
        install(self.root, text, package=self.package, **more)

    def registry(self, *packages: str) -> Registry:
        """A registry where these packages are named."""
        return Registry(self.directory, Service().workshop, packages)


class ForeignKindTests(ForeignCase):
    """A kind of another package."""

    def test_registry(self) -> None:
        """Where its package is named its connectors load, to be trusted as others are, and are searched for secrets."""
        self.install()
        registry = self.registry(self.package)
        self.assertEqual(registry.problems(), ())
        found = registry.get("local://me/notes")
        self.assertIsInstance(found, Screened)
        (candidate,) = registry.candidates()
        assert found is not None
        self.assertEqual(candidate.digest, found.describe().content_hash)
        request = found.prepare("add_note", {"text": "x"}, "http://127.0.0.1:8080", "key")
        body = json.loads(request.body or b"")
        self.assertEqual((body["id"], body["params"]), ("key", {"text": "x"}))
        self.assertRaises(InvalidRequest, found.prepare, "add_note", {"more": 1}, "http://127.0.0.1:8080", "key")

    def test_not_named(self) -> None:
        """Where no package is named, or another, none of its code is loaded, whatever a file asks for."""
        self.install()
        for packages in ((), ("acme",), (self.package[:-1],)):
            registry = self.registry(*packages)
            self.assertIsNone(registry.get("local://me/notes"))
            (told,) = (each for each in registry.problems() if each.file == str(self.file) and "kind" in each.message)
            self.assertIn("must be one of: http, git", told.message)
            self.assertFalse(self.package in sys.modules)

    def test_commands(self) -> None:
        """Check, try, the schema and the list of what operations take know it where it is loaded, and only there."""
        self.install()
        kinds = load_kinds((self.package,)).kinds
        self.assertEqual((check(self.file, kinds=kinds), len(check(self.file)) > 0), ([], True))
        tried = build_request(str(self.file), self.directory, "add_note", {"text": "x"}, kinds=kinds)
        self.assertEqual((tried.request.method, tried.credential), ("POST", "api_key"))
        self.assertRaises(NotTried, build_request, str(self.file), self.directory, "add_note", {"text": "x"})
        takes = {about.name: inputs for about, inputs in read_descriptions(self.directory, kinds)}
        self.assertEqual(takes["local://me/notes"], {"add_note": ["text"], "list_notes": []})
        schema = make_schema(kinds)
        Draft202012Validator.check_schema(schema)
        self.assertIn("json_rpc", schema["$defs"])

    def test_broken(self) -> None:
        """One that is no kind, or has another's name, is reported and breaks no other connector."""
        good = "from aileron.connectors.kit import ConnectorKind\nclass Kind(ConnectorKind):\n    name = 'json_rpc'\n"
        for text, name, told in (
            ("KIND = 7", "json_rpc", "is no ConnectorKind"),
            ("1 / 0", "json_rpc", "raises ZeroDivisionError"),
            (f"{good}KIND = Kind()", "other", "must have the name of its entry point"),
            (f"{good.replace('json_rpc', 'http')}KIND = Kind()", "http", "another kind of connector is named http"),
        ):
            self.setUp()
            self.install(text, name=name)
            registry = self.registry(self.package)
            messages = [each.message for each in registry.problems() if each.kind == "malformed"]
            self.assertTrue(any(told in each for each in messages), (told, messages))
            self.assertIsNotNone(registry.get("builtin://slack"))

    def test_faults_of_code(self) -> None:
        """One that raises, describes another file or makes no connector is a fault of the file, and no other's."""
        head = "from aileron.connectors.kit import *\nfrom types import SimpleNamespace as Of\n"
        head += "class Kind(ConnectorKind):\n    name = 'json_rpc'\n    def read(self, document, head, identity):\n"
        take = "        [head.skip(*head.values), document.skip(*document.values)]\n"
        service = "        about = read_service(document, head).describe(identity, {})\n"
        made = "        return Of(description=about, operations={})\n    def make(self, *_):\n        return 7\n"
        for body, told in (
            ("        1 / 0\n", "cannot be read: ZeroDivisionError"),
            (f"{take}        return Of(description=None)\n", "its description is of another file"),
            (f"{take}{service}        return Of(description=about, operations={{}})\n", "raises NotImplementedError"),
            (f"{take}{service}{made}", "makes what does not provide IConnector"),
        ):
            self.setUp()
            self.install(f"{head}{body}KIND = Kind()\n")
            registry = self.registry(self.package)
            messages: list[Any] = [each.message for each in registry.problems()]
            self.assertTrue(any(told in each for each in messages), (told, messages))
            self.assertIsNone(registry.get("local://me/notes"))
            self.assertIsNotNone(registry.get("builtin://slack"))
