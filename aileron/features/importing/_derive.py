"""Derives what a connector file needs and a foreign document lacks: names, effects, pages, failures, credentials."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aileron.base.addresses import read_base_url, read_url
from aileron.base.json import JSON
from aileron.model.connectors import READ, WRITE

from ._references import ApiDocument, Inexpressible, WorkBudget, list_of, table_of, text_of
from ._schemas import flatten
from .description import ApiCredential, ApiOperation, OperationSummary
from .files import one_line

MOST_NAME = 40
_NOT_AS_EXPECTED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors that occur if a part of a document has an unexpected type."""
_MOST_ALIKE, _MOST_LEVELS = 20, 3

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER = re.compile(r"[^a-z0-9]+")
_READING = ("GET", "HEAD")
_CHANGING = frozenset(
    "add approve archive cancel close connect create delete destroy disable enable exec execute invite logout merge "
    "modify post purge put reboot reject remove replace reset restart revoke rotate run send set start stop terminate "
    "trash trigger unset update".split()
)
_LOOKING = frozenset(
    "check count describe download fetch find get has head is list lookup read search show view watch".split()
)
_ADDING = frozenset("add create insert new open post send upload".split())
"""Three sets of verbs: those that change something, those that only read, and those that only add things."""

_SECRETS = re.compile(
    r"secret|password|passphrase|credential|token|login_?profile|(?:access|api|private|signing)_?key", re.IGNORECASE
)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_SCOPE = re.compile(r"[!#-\[\]-~]+")
_STEP = re.compile(r"[A-Za-z0-9_$-]+")
_CURSORS: Mapping[str, tuple[str, ...]] = {
    "cursor": ("next_cursor", "nextCursor", "response_metadata.next_cursor", "meta.next_cursor"),
    "start_cursor": ("next_cursor",),
    "page_token": ("next_page_token", "nextPageToken"),
    "page-token": ("next_page_token",),
    "pageToken": ("nextPageToken", "next_page_token"),
    "next_page_token": ("next_page_token",),
    "nextPageToken": ("nextPageToken",),
    "after": ("paging.next.after", "paging.cursors.after", "meta.after"),
    "continue": ("metadata.continue",),
    "marker": ("next_marker", "nextMarker"),
    "offset": ("next_page.offset",),
}
"""For each parameter that selects a page: the members of a response that may contain the next page's value."""
_PAGES, _OFFSETS = ("page", "page_number", "pageNumber"), ("offset", "skip", "startAt")
_SIZES = ("per_page", "page_size", "pageSize", "limit", "max_results", "maxResults", "pagelen", "count", "size")
_OTHER_PAGES = ("starting_after", "Page", "PageToken", "next", "page[cursor]", "page[number]")
_ITEMS = ("items", "data", "results", "values", "entries", "records")
_MESSAGES = ("error.message", "message", "errors.message", "error_description", "error", "detail", "title")
_SUCCESS = ("ok", "success")
BEARER: Mapping[str, JSON] = {"kind": "api_key", "header": "Authorization", "format": "Bearer {key}"}
"""The usual credential, for documents that name none."""


def name_of(text: str, taken: Collection[str] = (), most: int = MOST_NAME) -> str:
    """Make a name of C{a-z}, digits and C{_} from a text.

    :param taken: names that the result must differ from.
    :param most: the maximal length of the name.
    """
    plain = _OTHER.sub("_", _HUMP.sub("_", text[:200]).lower()).strip("_")
    plain = (plain if plain[:1].isalpha() else f"x_{plain}").strip("_")[:most].strip("_")
    name, number = plain, 1
    while name in taken:
        number = number + 1 if number < _MOST_ALIKE else max(number, len(taken)) + 1
        name = f"{plain[: most - 7]}_{number}"
    return name


def effect_of(method: str, name: str) -> tuple[str, bool, tuple[str, ...]]:
    """Return the effect of an operation (read or write), judged by its method and name.

    The first known verb in the name counts.

    :param name: the operation's name without its HTTP method.
    :return: the effect, whether the operation may change or remove existing things, and texts about what is uncertain.
    """
    words = name.split("_")
    if method not in _READING:
        return WRITE, method != "POST" or words[0] not in _ADDING, ()
    verb = next((each for each in words if each in _CHANGING | _LOOKING), "")
    if verb in _CHANGING:
        return WRITE, True, (f"it is a {method}, but its name says {verb}, so it counts as a write",)
    return READ, False, ()


def list_summaries(found: Iterable[tuple[str, str, str, str, str, str]]) -> tuple[OperationSummary, ...]:
    """Return the summaries of operations, each with a unique name.

    :param found: name, key, method, path, words and effect of each operation, as written in the document.
    """
    summaries: dict[str, OperationSummary] = {}
    for text, key, method, path, words, effect in found:
        name = name_of(text, summaries)
        summaries[name] = OperationSummary(name, key, method, path, effect, one_line(words, 100))
    return tuple(summaries.values())


def guarded(summary: OperationSummary, describe: Callable[[OperationSummary], ApiOperation]) -> ApiOperation:
    """Return the description of an operation that C{describe} makes.

    If that fails, return a refused operation with the reason.
    """
    try:
        return describe(summary)
    except Inexpressible as problem:
        return ApiOperation(summary.name, summary.words, refused=str(problem))
    except _NOT_AS_EXPECTED as problem:  # the import of the other operations continues
        why = f"it is described in a way that is not understood ({type(problem).__name__})"
        return ApiOperation(summary.name, summary.words, refused=why)


def discloses(name: str) -> bool:
    """Return whether a read, judged by its name, may disclose a secret."""
    return _SECRETS.search(name) is not None


def paths_of(document: ApiDocument, schema: JSON, work: WorkBudget) -> Mapping[str, Mapping[str, Any]]:
    """Return the schemas of a response and of the members inside it, by dotted path. The empty path is the response.

    Parts that cannot be followed are omitted.
    """
    found: dict[str, Mapping[str, Any]] = {}

    def look(value: JSON, path: tuple[str, ...], trail: frozenset[str]) -> None:
        try:
            node = flatten(document, value, work, trail)
        except Inexpressible:
            return
        found[".".join(path)] = node.keys
        for name, each in table_of(node.keys.get("properties")).items():
            if len(path) < _MOST_LEVELS and _STEP.fullmatch(name):
                look(each, (*path, name), node.trail)

    look(schema, (), frozenset())
    return found


def pages_of(
    query: Sequence[str], paths: Mapping[str, Mapping[str, Any]], *, linked: bool
) -> tuple[dict[str, JSON], tuple[str, ...]]:
    """Derive the keys C{pages} and C{result} of a read's table.

    :param query: the names of the read's query parameters.
    :param paths: the members of the response, from L{paths_of}.
    :param linked: whether the document describes a header C{Link} of the response.
    :return: the keys, and marks about what could not be derived. No keys if the read seems not to be paged.
    """
    items = _items(paths)
    if items is None:
        return {}, ()
    for parameter in query:
        for cursor in _CURSORS.get(parameter, ()):
            if cursor in paths:
                kind: dict[str, JSON] = {"kind": "cursor", "cursor": cursor, "parameter": parameter}
                return {"pages": {**kind, **({"items": items} if items else {})}}, ()
    numbered = next((each for each in query if each in (*_PAGES, *_OFFSETS)), None)
    if linked:
        kind = {"kind": "link"}
    elif numbered is not None:
        size = next((each for each in query if each in _SIZES), None)
        kind = {"kind": "page" if numbered in _PAGES else "offset", "parameter": numbered}
        kind |= {} if size is None else {"size": size}
    else:
        other = next((each for each in query if each in (*_CURSORS, *_OTHER_PAGES)), None)
        return {}, () if other is None else (f"it may be paged by `{other}`: to read all pages, add a table `pages`",)
    pages = {**kind, **({"items": items} if items else {}), "more": "more"}
    return {"result": {items.rpartition(".")[2] or "items": items or "items"}, "pages": pages}, ()


def _items(paths: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the path of the array to page through: empty if the response is an array, None if no array fits."""
    arrays = [path for path, keys in paths.items() if keys.get("type") == "array" and path.count(".") < 2]
    if "" in arrays:
        return ""
    top = [path for path in arrays if "." not in path]
    return next(iter([path for path in arrays if path.rpartition(".")[2] in _ITEMS] or top * (len(top) == 1)), None)


def error_of(success: Mapping[str, Mapping[str, Any]], failure: Mapping[str, Mapping[str, Any]]) -> dict[str, JSON]:
    """Derive the table C{error} from the members of a successful response and of a failure; empty if nothing fits."""
    found: dict[str, JSON] = {}
    both = {**failure, **success} if any(each in success for each in _SUCCESS) else failure
    said = next((each for each in _SUCCESS if success.get(each, {}).get("type") == "boolean"), None)
    if said is not None:
        found["when"] = f"{said} == false"
    message = next((each for each in _MESSAGES if both.get(each, {}).get("type") == "string"), None)
    if message is None and both.get("errors", {}).get("type") == "array":
        message = "errors.0.message"
    return {**found, "message": message} if message is not None else found


def credential_of(schemes: Mapping[str, Any], wanted: Sequence[Sequence[str]], scopes: Sequence[str]) -> ApiCredential:
    """Choose a credential from the security schemes of an API. Prefer one without uncertainty.

    :param schemes: the security schemes by name.
    :param wanted: the alternatives, each a list of names of schemes that are needed together.
    :param scopes: the OAuth scopes that the chosen operations need.
    :return: the credential; a bearer token, with a text that this is a guess, if C{wanted} is empty.
    """
    found = [_scheme(table_of(schemes.get(names[0])), names[0], scopes) for names in wanted if names]
    if not found:
        return ApiCredential(BEARER, ("the document names no credential; this one is a guess",))
    order = sorted(range(len(found)), key=lambda at: (bool(found[at].marks), _preference(found[at].keys)))
    chosen, names = found[order[0]], [each for each in wanted if each][order[0]]
    further = [f"the service also wants {each}, and a connector has one credential" for each in names[1:]]
    return ApiCredential(chosen.keys, (*chosen.marks, *further))


def _preference(keys: Mapping[str, JSON]) -> int:
    """Rank a credential, best first: a key in a header, OAuth, others, a key in the URL (which servers log)."""
    if keys["kind"] == "api_key":
        return 0 if "header" in keys else 3
    return 1 if keys["kind"] == "oauth2" else 2


def _scheme(scheme: Mapping[str, Any], name: str, scopes: Sequence[str]) -> ApiCredential:
    kind, word = text_of(scheme.get("type")), text_of(scheme.get("scheme")).lower()
    if kind == "apiKey" and scheme.get("in") in ("header", "query"):
        return _api_key(scheme, f"{name} {text_of(scheme.get('description'))}".lower())
    if kind == "http" and word in ("basic", "bearer"):
        return ApiCredential({"kind": "basic"} if word == "basic" else BEARER)
    if kind == "oauth2" and (keys := _oauth2(table_of(scheme.get("flows")), scopes)):
        return ApiCredential(keys)
    return ApiCredential(BEARER, (f"the document asks for {kind or 'something'} ({name}); a token is a guess",))


def _api_key(scheme: Mapping[str, Any], words: str) -> ApiCredential:
    name = text_of(scheme.get("name"))
    if scheme.get("in") == "query":
        return ApiCredential({"kind": "api_key", "query": name})
    if not _HEADER.fullmatch(name):
        return ApiCredential(
            BEARER, (f"the document has no usable name of the key's header ({one_line(name, 40)}); a guess",)
        )
    keys: dict[str, JSON] = {"kind": "api_key", "header": name}
    if name.lower() != "authorization":
        return ApiCredential(keys)
    if "bearer" in words:
        return ApiCredential({**keys, "format": "Bearer {key}"})
    return ApiCredential(keys, ("the document does not say what comes before the key",))


def _oauth2(flows: Mapping[str, Any], scopes: Sequence[str]) -> dict[str, JSON] | None:
    """Return the credential for the first usable flow, authorization code or client credentials, or None if none is."""
    for name in ("authorizationCode", "clientCredentials"):
        flow = table_of(flows.get(name))
        urls = {"token_url": flow.get("tokenUrl")}
        urls |= {"authorize_url": flow.get("authorizationUrl")} if name == "authorizationCode" else {}
        if flow and all(_is_address(each) for each in urls.values()):
            known = [each for each in scopes if each in table_of(flow.get("scopes"))]
            return {"kind": "oauth2", **urls, **({"scopes": known} if known else {})}
    return None


def _is_address(value: object) -> bool:
    try:
        url = read_url(text_of(value))
        read_base_url(text_of(value).partition("?")[0])
    except ValueError:
        return False
    return url.fragment is None


def wanted_of(requirements: object) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield the alternatives of a security requirement: the names of the schemes of each, and its valid scopes."""
    for each in list_of(requirements):
        names = table_of(each)
        yield (
            list(names),
            [scope for found in names.values() for scope in list_of(found) if _SCOPE.fullmatch(text_of(scope))],
        )
