"""The published JSON Schema of connector files: it is what the reader goes by, and refuses what the reader refuses.

C{AILERON_SCHEMA=yes trial tests.connectors.test_format} writes it anew.
"""

from __future__ import annotations

import copy
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.tables import FileFaults, FileTable
from aileron.base.toml import read_toml
from aileron.connectors._files import shipped
from aileron.connectors._schema import make_schema, read_document, read_file
from aileron.connectors.kinds import KindTable
from aileron.connectors.kinds.http._operation import BODIES
from tests.connectors import (
    mailhost,
    mcpserver,
    repository,
    test_places,
    test_schema,
)
from tests.connectors.kinds.command import test_command
from tests.connectors.kinds.http import test_graphql, test_multipart, test_pages
from tests.connectors.kinds.mcp import test_mcp_api, test_mcp_local
from tests.extent import is_all

SHIPPED = Path(str(files("aileron.connectors"))) / "connector.schema.json"
FILES = {file.name: (file.data or b"").decode() for file in shipped()} | {
    module.__name__: text
    for module, text in (
        (test_graphql, test_graphql.SPEC),
        (test_multipart, test_multipart.SPEC),
        (test_pages, test_pages.SPEC),
        (test_places, test_places.SPEC),
        (test_schema, test_schema.GOOD),
    )
}
OTHERS = {
    "git": repository.FILE.format(port=8080, path="/srv/site"),
    "mail": mailhost.FILE,
    "command": test_command.FILE.format(directory="/srv", python="/bin/python", code="pass"),
    "mcp": mcpserver.filled(),
    "local mcp": mcpserver.filled(test_mcp_local.FILE),
    "mcp with an api": mcpserver.filled(test_mcp_api.FILE),
}
"""Connectors of the other kinds."""

KINDS = KindTable()

_STEP = 1 if is_all() else 5
"""Of so many mutants of a file one is tried; there are a dozen files, and each is made of nearly all."""

Table = dict[str, Any]
OTHER_FAULTS: dict[str, dict[str, Table]] = {
    "git": {
        "git": {"repository": "site", "branches": "main", "tags": [7], "hooks": True},
        "connector": {"base_url": 7, "kind": "svn"},
        "credential": {"kind": "aws_sigv4"},
    },
    "mail": {
        "mail": {"from": 7, "save_sent": "yes", "more": 1},
        "smtp": {"host": 7, "port": 70000, "tls": "maybe", "more": 1},
        "imap": {"port": 0},
        "credential": {"kind": "api_key", "header": "X"},
        "connector": {"hosts": ["x:1"]},
    },
    "command": {
        "command": {
            "directory": "srv",
            "environment": {"A": 1},
            "inherit": "PATH",
            "sandbox": "no",
            "network": 1,
            "repository": 1,
        },
        "credential": {"kind": "basic", "variable": 7, "stdin": True},
        "connector": {"base_url": "https://x.example"},
        "operations": {"A b": {"program": "/bin/true"}, "deploy": {"program": "true"}, "status": {"answer": "xml"}},
    },
    "mcp": {
        "mcp": {"url": 7, "max_response_bytes": 0, "hosts": []},
        "connector": {"base_url": "https://x.example", "private_network": 1},
        "credential": {"kind": "aws_sigv4", "more": 1},
        "operations": {"A b": {"tool": "x"}, "create_issue": {"tool": "x", "pin": "md5:1"}, "search": {"tool": 7}},
    },
    "local mcp": {
        "mcp": {"command": ["x"], "directory": "srv", "inherit": "PATH", "sandbox": "no", "url": "https://x.example"},
        "credential": {"kind": "basic", "variable": 7, "header": "X", "readable_by": "nobody"},
    },
    "mcp with an api": {
        "mcp": {"api": {"url": "https://x.example", "post_reads": "yes"}},
        "credential": {"kind": "ssh_key", "variable": "X", "path": "/bot{key}"},
    },
}
"""Values that are wrong, by kind, table and key."""

WRONG: dict[str, Table] = {
    "connector": {"name": "github", "version": "1.0", "base_url": 7, "hosts": "x", "private_network": 1, "more": 1},
    "variables": {"site": {"title": "Site", "pattern": "[a-z]+"}, "A b": {}},
    "hosts": {"fixed": 7, "A b": "https://x.example"},
    "credential": {"kind": "secret", "more": "x", "format": "Bearer"},
}


def refused(document: Table) -> bool:
    """Whether the reader refuses what it is given as a table."""
    faults = FileFaults("x.toml", read_toml(""), "connector_manifest")
    read_document(FileTable(document, (), faults), "sha256:x", None, KINDS)
    return bool(faults.found)


def operations(document: Table) -> Iterator[Table]:
    """Its operations."""
    yield from document["operations"].values()


def mutants(document: Table) -> Iterator[tuple[str, Table]]:
    """Copies of a good file with one thing wrong in each, and what."""

    def changed(where: str, change: Any) -> tuple[str, Table]:
        made = copy.deepcopy(document)
        change(made)
        return where, made

    yield changed("no connector", lambda made: made.pop("connector"))
    yield changed("no operations", lambda made: made.update(operations={}))
    yield changed("unknown table", lambda made: made.update(more={}))
    yield changed("operation's name", lambda made: made["operations"].update({"A b": {"method": "GET", "path": "/"}}))
    for key in ("name", "version", "base_url"):
        yield changed(f"no connector.{key}", lambda made, key=key: made["connector"].pop(key))
    for table, wrong in WRONG.items():
        for key, value in wrong.items() if table in document else ():
            yield changed(f"{table}.{key}", lambda made, at=(table, key, value): made[at[0]].update({at[1]: at[2]}))
    one_of_a_kind = {frozenset(each) - {"query", "headers"}: name for name, each in document["operations"].items()}
    for name in list(one_of_a_kind.values())[:2]:
        operation = document["operations"][name]
        for where, bad in wrong_operations(operation):
            yield changed(f"{name}: {where}", lambda made, at=(name, bad): made["operations"].update({at[0]: at[1]}))


def wrong_operations(operation: Table) -> Iterator[tuple[str, Table]]:
    """An operation with one thing wrong, and what."""
    wrong: Table = {
        "method": "FETCH",
        "path": "no-slash",
        "query": {"a": {"b": 1}},
        "headers": {"X-A": 1},
        "effect": "look",
        "destructive": "no",
        "output": "object",
        "idempotent": "yes",
        "answer": "html",
        "slashes": "x",
        "lists": [7],
        "scopes": "read",
        "mail": {"to": "${in.a}"},
        "result": {"a": "not a path"},
        "error": {"class": "other"},
        "refused": [700],
        "precondition": "x",
        "answer_headers": {"a": 1},
        "redirect": "always",
        "max_response_bytes": 0,
        "timeout_seconds": 301,
        "reconcile": {"more": 1},
        "present": {"kind": "poem"},
        "pages": {"kind": "scroll"},
        "host": 7,
        "description": 7,
        "graphql": {"query": "query { ${in.a} }"},
        "multipart": {"a": {"media_type": "a/b", "text": "x"}},
        "file": {"media_type": "a/b"},
        "form": [],
        "text": 7,
        "unknown": 1,
    }
    for key, value in wrong.items():
        yield key, {**operation, key: value}
    for key in ("method", "path"):
        yield f"no {key}", {name: value for name, value in operation.items() if name != key}
    yield "two bodies", {**operation, "method": "POST", "json": {}, "text": "x"}
    yield "body of GET", {**operation, "method": "GET", "text": "x"}
    for table in ("reconcile", "present", "pages", "graphql", "error"):
        if isinstance(inside := operation.get(table), Mapping):
            yield f"{table}.more", {**operation, table: {**inside, "more_of_it": 1}}


class FormatTests(SynchronousTestCase):
    """C{connector.schema.json}."""

    def setUp(self) -> None:
        self.validator = Draft202012Validator(make_schema(KINDS))

    def test_shipped(self) -> None:
        """What is shipped and published is what the reader's own tables make."""
        text = json.dumps(make_schema(KINDS), indent=1, ensure_ascii=False) + "\n"
        if "AILERON_SCHEMA" in os.environ:
            SHIPPED.write_text(text, "utf-8")
        self.assertEqual(SHIPPED.read_text("utf-8"), text)
        Draft202012Validator.check_schema(make_schema(KINDS))

    def test_good(self) -> None:
        """Every file that comes with the package, and every example, is sound for both."""
        for name, text in FILES.items():
            self.assertEqual(read_file(text.encode(), name).problems, (), name)
            self.assertEqual([each.message for each in self.validator.iter_errors(tomllib.loads(text))], [], name)

    def test_found(self) -> None:
        """Reader and schema agree where a server may say where one signs in, and what may not stand beside that."""
        good = tomllib.loads(OTHERS["mcp"])
        for settings, right in (
            ({"discover": True}, True),
            ({"discover": True, "issuer": "https://x.example", "client_id": "a", "scopes": ["a"]}, True),
            ({"discover": True, "client_metadata_url": "https://x.example/c"}, True),
            ({"discover": False, "token_url": "https://x.example/t"}, True),
            ({"discover": True, "token_url": "https://x.example/t"}, False),
            ({"client_metadata_url": "https://x.example/c"}, False),
            ({"discover": "true"}, False),
            ({"discover": True, "resource": "https://x.example"}, False),
        ):
            made = {**good, "credential": {"kind": "oauth2", **settings}}
            self.assertEqual((not refused(made), self.validator.is_valid(made)), (right, right), settings)
        elsewhere = tomllib.loads(FILES[test_schema.__name__]) | {"credential": {"kind": "oauth2", "discover": True}}
        self.assertEqual((refused(elsewhere), self.validator.is_valid(elsewhere)), (True, False))

    def test_other_kinds(self) -> None:
        """A repository, a mail account, a program and an MCP server have forms of their own, and no other's tables."""
        for kind, text in OTHERS.items():
            good = tomllib.loads(text)
            self.assertEqual(read_file(text.encode(), kind).problems, (), kind)
            self.assertEqual([each.message for each in self.validator.iter_errors(good)], [], kind)
            wrong = [
                {**good, "more": {}},
                *({**good, other: {}} for other in ("pages", "git", "smtp") if other not in good),
            ]
            for table, values in OTHER_FAULTS[kind].items():
                wrong += [{**good, table: {**good[table], key: value}} for key, value in values.items()]
            for each in wrong:
                changed = {name: table for name, table in each.items() if table != good.get(name)}
                self.assertTrue(refused(each), f"{kind}: {changed}, by the reader")
                self.assertFalse(self.validator.is_valid(each), f"{kind}: {changed}, by the schema")

    def test_mutants(self) -> None:
        """What is made wrong is refused by both; of each file a fifth is tried, another for the next one."""
        for number, (name, text) in enumerate(FILES.items()):
            for where, mutant in islice(mutants(tomllib.loads(text)), number % _STEP, None, _STEP):
                self.assertTrue(refused(mutant), f"{name}: {where}, by the reader")
                self.assertFalse(self.validator.is_valid(mutant), f"{name}: {where}, by the schema")

    def test_keys(self) -> None:
        """The schema has in each table the keys that the reader asks for there, and no other."""
        asked: dict[tuple[str, ...], set[str]] = {}
        original = FileTable._take

        def take(table: FileTable, key: str, *rest: Any, **more: Any) -> Any:
            asked.setdefault(general(table.path), set()).add(key)
            return original(table, key, *rest, **more)

        self.patch(FileTable, "_take", take)
        for text in FILES.values():
            refused(tomllib.loads(text))
        for path in (
            (),
            ("connector",),
            ("operations", "*"),
            ("operations", "*", "error"),
            ("operations", "*", "reconcile"),
        ):
            found: Any = make_schema(KINDS)["$defs"]["http"]
            for step in path:
                found = found["additionalProperties"] if step == "*" else found["properties"][step]
            self.assertLessEqual(asked[path], set(found["properties"]), path)
            bodies = set(BODIES) if "*" in path[-1:] else set()
            self.assertLessEqual(set(found["properties"]) - bodies, asked[path] | bodies, path)


def general(path: tuple[str | int, ...]) -> tuple[str, ...]:
    """The path with the name of an operation left open."""
    return tuple("*" if at == 1 and path[0] == "operations" else str(step) for at, step in enumerate(path))
