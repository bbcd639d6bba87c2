"""Requests as tools send them, and the connector that they are recognised with."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from attrs import evolve

from aileron.connectors import read_descriptions
from aileron.features.own_tools._recognition import Recognised, recognise
from aileron.features.own_tools.values import ToolRequest
from aileron.model.connectors import ConnectorDescription
from aileron.model.own_tools import ToolDeclaration
from tests.connectors.service import spec_of

TRACKER = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = "https://api.example/v2"

[credential]
kind = "api_key"
header = "Private-Token"

[own_tools]
service = "tracker"
variables = { TRACKER_TOKEN = "aileron-placeholder" }
headers = ["Private-Token"]
graphql = ["/graphql"]
reads = ["POST /v2/search"]
credentials = ["GET /v2/projects/{project}/token"]
refused = ["POST /v2/many"]
varying = ["Idempotency-Key"]
errors = "error"

[operations.create]
method = "POST"
path = "/projects/${in.project}/issues"
json = { title = "${in.title}", kind = "issue", meta = { by = "${in.by}", tags = ["x", "${in.tag}"] } }

[operations.label]
method = "POST"
path = "/projects/${in.project}/labels"
query = { notify = "${in.notify}", mode = "add" }
form = { name = "${in.name}", project = "${in.project}" }

[operations.find]
method = "POST"
path = "/projects/${in.project}/find"
json = { text = "${in.text}" }
effect = "read"

[operations.archive]
method = "GET"
path = "/projects/${in.project}/archive.${in.format}"
effect = "write"

[operations.latest]
method = "PUT"
path = "/releases/latest"
json = { name = "${in.name}" }

[operations.release]
method = "PUT"
path = "/releases/${in.id}"
json = { name = "${in.name}" }

[operations.alias]
method = "PUT"
path = "/aliases/${in.id}"
json = { name = "${in.name}" }

[operations.other_alias]
method = "PUT"
path = "/aliases/${in.key}"
json = { name = "${in.title}" }
"""
JSON_TYPE = ("Content-Type", "application/json; charset=utf-8")
GH_HEADERS = (
    ("Accept", "application/vnd.github.merge-info-preview+json"),
    ("Authorization", "token aileron-placeholder"),
    JSON_TYPE,
    ("Time-Zone", "Etc/UTC"),
    ("User-Agent", "GitHub CLI 2.23.0"),
)
"""The headers of gh 2.23."""


@lru_cache
def shipped(name: str) -> ConnectorDescription:
    """Return the description of a connector that comes with Aileron."""
    found = {each.name: each for each, _ in read_descriptions(Path("no-such-directory"))}
    return found[f"builtin://{name}"]


def github() -> ConnectorDescription:
    """Return the description of the shipped GitHub connector."""
    return shipped("github")


def declared(about: ConnectorDescription) -> ToolDeclaration:
    """Return the declarations for tools."""
    assert about.own_tools is not None
    return about.own_tools


@lru_cache
def tracker(raw: str = "ask") -> ConnectorDescription:
    """Return the description of a connector with operations of every kind."""
    about = spec_of(TRACKER).description
    return evolve(about, own_tools=evolve(declared(about), raw=raw))


def ask_github(
    method: str, target: str, body: object = b"", headers: tuple[tuple[str, str], ...] = GH_HEADERS
) -> ToolRequest:
    """Return a request to GitHub's API. A body that is not bytes is encoded as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ToolRequest("ses_1", 1, "api.github.com", method, target, headers, content)


def ask_tracker(
    method: str, target: str, body: object = b"", *headers: tuple[str, str], host: str = "api.example"
) -> ToolRequest:
    """Return a request to the tracker. A body that is not bytes is encoded as JSON, and has its type."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    typed = () if isinstance(body, bytes) else (JSON_TYPE,)
    return ToolRequest("ses_1", 1, host, method, target, (*typed, *headers), content)


def see_github(*given: object) -> Recognised:
    """Return what a request to GitHub is recognised as, given as to L{ask_github}."""
    return recognise(ask_github(*given), github())  # type: ignore[arg-type]


def see_tracker(method: str, target: str, body: object = b"", *headers: tuple[str, str]) -> Recognised:
    """Return what a request to the tracker is recognised as."""
    return recognise(ask_tracker(method, target, body, *headers), tracker())


def see(name: str, method: str, target: str, body: object = b"", *headers: tuple[str, str]) -> Recognised:
    """Return what a request to the first host of a shipped connector is recognised as."""
    about = shipped(name)
    return recognise(ask_tracker(method, target, body, *headers, host=declared(about).hosts[0]), about)
