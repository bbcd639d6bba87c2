"""Recognises the format of a foreign document and searches its operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from aileron.base.json import JSON

from ._aws import AwsModel
from ._derive import name_of
from ._discovery import DiscoveryDocument
from ._documents import read_document
from ._openapi import OpenApi
from ._references import table_of
from .curl import CurlCommand
from .description import ApiReader, NotImported, OperationSummary

READERS: Sequence[Callable[[Mapping[str, JSON], str, str], ApiReader | None]] = (
    OpenApi.recognise,
    DiscoveryDocument.recognise,
    AwsModel.recognise,
)
"""Functions that return a reader of a document, or None if the document has another format."""

_KNOWN = (
    "Supported: OpenAPI 3.0 and 3.1, as JSON or YAML; Google API Discovery documents; AWS service models; "
    "GraphQL schemas, as SDL or as the answer of an introspection; a curl command."
)
_SDL = re.compile(rb'"""|(?:schema|type|interface|enum|input|union|scalar|directive|extend)\s*[^\s:]')
_CURL = re.compile(rb"\s{0,80}(?:\$ )?curl\s")
_MOST_COMMENTS = 64 * 1024


def read_api(data: bytes, address: str = "", base_url: str = "") -> ApiReader:
    """Parse a document that describes an API: a curl command, GraphQL, or one of the formats in L{READERS}.

    :param address: the URL from which the document was fetched; empty for a file.
    :param base_url: the base URL to use instead of the document's; empty to use the document's.
    :raises NotImported: if the format is unknown or the document cannot be imported.
    """
    if _CURL.match(data):
        return CurlCommand.read([data.decode("utf-8", "replace")], base_url)
    if _is_sdl(data):
        return _read_graphql(data.decode("utf-8-sig", "replace"), base_url)
    document = read_document(data)
    if "__schema" in (found := table_of(document.get("data", document))):
        return _read_graphql(found, base_url)
    for recognise in READERS:
        reader = recognise(document, address, base_url)
        if reader is not None:
            return reader
    raise NotImported("The document describes no API in a known format.", _KNOWN)


def _is_sdl(data: bytes) -> bool:
    """Return whether a document begins like a GraphQL schema in SDL."""
    lines = (line.strip() for line in data[:_MOST_COMMENTS].removeprefix(b"\xef\xbb\xbf").splitlines())
    return _SDL.match(next((line for line in lines if line and not line.startswith(b"#")), b"")) is not None


def _read_graphql(schema: Mapping[str, JSON] | str, base_url: str) -> ApiReader:
    try:
        from ._graphql import GraphqlSchema
    except ImportError:
        advice = "Install Aileron with its extra named graphql."
        raise NotImported("GraphQL is read by graphql-core, which is not installed.", advice) from None
    return GraphqlSchema.read(schema, base_url)


def search(operations: Iterable[OperationSummary], words: str) -> tuple[OperationSummary, ...]:
    """Return the operations that contain all of C{words} in their name, key, method, path or description.

    Case is ignored.
    """
    wanted = words.lower().split()
    return tuple(each for each in operations if all(word in _text(each) for word in wanted))


def _text(operation: OperationSummary) -> str:
    return f"{operation.name} {operation.key} {operation.method} {operation.path} {operation.words}".lower()


def choose(operations: Sequence[OperationSummary], names: Iterable[str]) -> tuple[OperationSummary, ...]:
    """Return the distinct operations with these names. A name may also be a document's key or C{METHOD /path}.

    :raises NotImported: if there is no such operation.
    """
    known = {f"{each.method} {each.path}": each for each in operations}
    known |= {each.key: each for each in operations} | {each.name: each for each in operations}
    missing = [name for name in names if name not in known]
    if missing:
        near = search(operations, missing[0].replace("_", " "))[:5]
        advice = f"Did you mean {', '.join(each.name for each in near)}?" if near else "Search: --search WORDS"
        raise NotImported(f"The document has no operation {missing[0]}.", advice)
    return tuple(dict.fromkeys(known[name] for name in names))


def connector_name(title: str) -> str:
    """Derive a connector's name from the title of an API."""
    short = name_of(title.lower().removesuffix("api").strip() or "api", most=24).replace("_", "-")
    return f"local://me/{short}"
