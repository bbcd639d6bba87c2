"""Finding one of three hundred actions: what their list costs a model, and how often a question finds the right one.

Tokens are counted by C{gpt-tokenizer} where C{bench.mcp.install} has put it, and else estimated by bytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from aileron.actions import parse, tool_name
from aileron.mcp._definitions import ToolDefinition, own_definitions, read_definitions
from aileron.mcp.offering.access import ACCESS_DEFINITIONS, MOST_FAVOURITES
from aileron.mcp.offering.catalog import to_tool
from aileron.mcp.offering.search import ActionIndex
from bench.mcp import PEERS
from bench.table import row

_COUNT = (
    "import {encode} from 'gpt-tokenizer'; import fs from 'fs'; console.log(encode(fs.readFileSync(0, 'utf8')).length)"
)

Questions: TypeAlias = Sequence[tuple[str, Sequence[str]]]
"""Words, and the actions that would do."""


def report(_seconds: float) -> None:
    """Print what the lists cost, and how often the right action is found, first or among five."""
    told = tomllib.loads(Path(__file__).with_name("questions.toml").read_text())
    made, asked = zip(*_make(told["generated"]), strict=True)
    definitions = read_definitions([*_shipped(), *made])
    own = (*own_definitions(45), *ACCESS_DEFINITIONS)
    _report_size(f"the list of {len(definitions)} actions, each a tool", definitions)
    _report_size("the list of those used most, and what finds the others", (*definitions[:MOST_FAVOURITES], *own))
    _report_hits("shipped", definitions, list(told["shipped"].items()))
    _report_hits("generated", definitions, asked)


def _shipped() -> Iterator[dict[str, Any]]:
    """Yield every action that ships, as the daemon lists it."""
    for service in sorted(files("aileron.connectors").joinpath("builtin", "actions").iterdir(), key=str):
        for file in service.iterdir():
            if file.name.endswith(".md"):
                action = parse(file.read_bytes(), file.name)
                yield _item(action.name, action.description, action.input_schema, gated=action.approval.gated)


def _make(spec: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], tuple[str, Sequence[str]]]]:
    """Yield actions of services that there are not, each with a question."""
    properties = {name: {"type": "string", "description": f"The {name}"} for name in ("id", "name", "note")}
    schema = {"type": "object", "properties": properties, "required": ["id"], "additionalProperties": False}
    for service, thing, (verb, asked) in product(spec["services"], spec["things"], spec["verbs"].items()):
        many = f"{thing}s" if verb == "list" else f"a {thing}"
        name = f"{service} {verb} {thing}".lower().replace(" ", "-")
        body = f"# {verb.title()} {many} in {service}\n\n{verb.title()}s {many} of the account.\n"
        yield _item(name, body, schema, gated=verb not in ("list", "get")), (f"{asked} {many} in {service}", [name])


def _item(name: str, body: str, schema: Mapping[str, Any], *, gated: bool) -> dict[str, Any]:
    known = {"enabled": True, "idempotent": False, "read_only": not gated, "gated": gated, "input_schema": schema}
    return {"name": name, "tool_name": tool_name(name), "description": body, **known}


def _report_size(what: str, definitions: Sequence[ToolDefinition]) -> None:
    tools = [to_tool(each).model_dump(by_alias=True, mode="json", exclude_none=True) for each in definitions]
    text = json.dumps(tools, ensure_ascii=False)
    directory = Path(os.environ.get(PEERS, "/nonexistent")) / "node"
    if (directory / "node_modules" / "gpt-tokenizer").exists():
        command = ["node", "--input-type=module", "--eval", _COUNT]
        counted = subprocess.run(command, cwd=directory, input=text, check=True, capture_output=True, text=True).stdout
        row(what, f"{int(counted):,} tokens", f"{len(text.encode()):,} bytes")
    else:
        row(what, f"{len(text.encode()) // 4:,} tokens", f"{len(text.encode()):,} bytes by 4; {PEERS} counts them")


def _report_hits(what: str, definitions: Sequence[ToolDefinition], questions: Questions) -> None:
    index = ActionIndex()
    first = five = 0
    began = time.perf_counter()
    for question, wanted in questions:
        found = [each.action for each in index.search(definitions, question, 5)]
        first += bool(found) and found[0] in wanted
        five += bool(set(found).intersection(wanted))
    spent = (time.perf_counter() - began) / len(questions)
    rates = f"first {first / len(questions):.0%}, among five {five / len(questions):.0%}"
    row(f"{len(questions)} questions for {what} actions", f"{spent * 1000:.2f} ms", rates)
