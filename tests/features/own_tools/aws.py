"""Requests as botocore sends them with the placeholder, and the shipped connector that they are recognised with."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aileron.base.json import JSON
from aileron.connectors import read_descriptions
from aileron.features.own_tools._recognition import Recognised, recognise
from aileron.features.own_tools.values import ToolRequest
from aileron.model.connectors import ConnectorDescription

# Its package has no types.
Session: Any = import_module("botocore.session").Session
Config: Any = import_module("botocore.config").Config

REGION = "eu-central-1"
BASE = f"https://sts.{REGION}.amazonaws.com"
PLACEHOLDER = "AKIAAILERON000000000"


class _CapturedError(Exception):
    """A request that would have left."""


@lru_cache
def aws(region: str = REGION) -> ConnectorDescription:
    """Return the description of the shipped connector, bound to a region."""
    found = {each.name: each for each, _ in read_descriptions(Path("no-such-directory"))}
    return found["builtin://aws"].fill(f"https://sts.{region}.amazonaws.com")


@lru_cache
def client(service: str, region: str = REGION, key_id: str = PLACEHOLDER, **config: Any) -> Any:
    """Return botocore's client."""
    return Session().create_client(
        service,
        region,
        aws_access_key_id=key_id,
        aws_secret_access_key="aileron-placeholder",
        config=Config(retries={"total_max_attempts": 1}, **config),
    )


def ask(asked: Any, operation: str, **parameters: JSON | bytes) -> ToolRequest:
    """Return the request that a client of botocore would send."""
    made: list[Any] = []

    def capture(request: Any, **_more: object) -> None:
        made.append(request)
        raise _CapturedError

    name = f"before-send.{asked.meta.service_model.service_id.hyphenize()}"
    asked.meta.events.register(name, capture)
    try:
        getattr(asked, operation)(**parameters)
    except _CapturedError:
        return read_request(made[0])
    finally:
        asked.meta.events.unregister(name, capture)
    raise AssertionError("nothing was sent")


def read_request(sent: Any) -> ToolRequest:
    """Return what a prepared request of botocore is on the wire."""
    url, body = urlsplit(sent.url), sent.body or b""
    content = body.read() if hasattr(body, "read") else body.encode() if isinstance(body, str) else bytes(body)
    pairs = ((name, value.decode() if isinstance(value, bytes) else str(value)) for name, value in sent.headers.items())
    left_out = ("content-length", "host", "transfer-encoding", "expect")
    headers = tuple((name, value) for name, value in pairs if name.lower() not in left_out)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return ToolRequest("ses_1", 1, url.netloc, sent.method, target, headers, content)


def see(request: ToolRequest, region: str = REGION) -> Recognised:
    """Return what a request is recognised as."""
    return recognise(request, aws(region))
