"""Recognises a foreign document, and finds operations in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from aileron.values import JSON

from ._derive import name_of
from ._description import ApiReader, NotImported, OperationSummary
from ._documents import read_document
from ._openapi import OpenApi

READERS: Sequence[Callable[[Mapping[str, JSON], str, str], ApiReader | None]] = (OpenApi.recognise,)
"""Each returns the reader of a document that it knows; L{None}: it is another's."""

_KNOWN = "Supported: OpenAPI 3.0 and 3.1, as JSON or YAML."


def read_api(data: bytes, address: str = "", base_url: str = "") -> ApiReader:
    """Read a document that describes an API.

    :param address: where it was fetched from; empty: it is a file.
    :param base_url: of the API, in the place of the document's own.
    :raises NotImported: it is none that is known, or is not read.
    """
    document = read_document(data)
    for recognise in READERS:
        reader = recognise(document, address, base_url)
        if reader is not None:
            return reader
    raise NotImported("The document describes no API in a known format.", _KNOWN)


def search(operations: Iterable[OperationSummary], words: str) -> tuple[OperationSummary, ...]:
    """Find the operations in which all of C{words} are, in any part, without case."""
    wanted = words.lower().split()
    return tuple(each for each in operations if all(word in _text(each) for word in wanted))


def _text(operation: OperationSummary) -> str:
    return f"{operation.name} {operation.key} {operation.method} {operation.path} {operation.words}".lower()


def choose(operations: Sequence[OperationSummary], names: Iterable[str]) -> tuple[OperationSummary, ...]:
    """Find operations by their names, those of the document, or C{METHOD /path}; each once.

    :raises NotImported: there is no such operation.
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
    """Make the name of a connector of what an API calls itself."""
    short = name_of(title.lower().removesuffix("api").strip() or "api", most=24).replace("_", "-")
    return f"local://me/{short}"
