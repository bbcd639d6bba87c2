"""A small API of our own, which has a bit of everything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aileron.actions import parse
from aileron.features.importing.description import ApiDescription, ApiOperation, ApiReader
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from aileron.model.actions import Action
from tests.connectors.service import Service, spec_of

LIBRARY = Path(__file__).with_suffix(".yaml")
NAME = "local://me/library"


def reader() -> ApiReader:
    """What reads it."""
    return read_api(LIBRARY.read_bytes())


def describe(*names: str) -> ApiDescription:
    """Describe it with these operations; none: with all."""
    found = reader()
    return found.describe(NAME, tuple(each for each in found.list_operations() if not names or each.name in names))


def operation(name: str) -> ApiOperation:
    """Describe one operation."""
    (found,) = describe(name).operations
    return found


def actions(*names: str) -> Mapping[str, Action]:
    """The actions that are written, by their names, each read as the daemon reads it."""
    written = write_connector(describe(*names))
    return {each.name.removesuffix(".md"): parse(each.text.encode(), each.name) for each in written.actions}


def request(name: str, **inputs: object) -> tuple[str, str, Mapping[str, str], bytes | None]:
    """The request that the written connector makes: method, URL, headers and body."""
    connector = Service().connector(spec_of(write_connector(describe(name)).connector.text))
    made = connector.prepare(name, inputs, connector.describe().base_url or "", "effect-1")  # type: ignore[arg-type]
    return made.method, made.url, dict(made.headers), made.body
