"""Reads Google API Discovery documents, which describe most of Google's APIs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from aileron.base.json import JSON
from aileron.model.connectors import READ

from ._derive import discloses, effect_of, guarded, list_summaries, name_of, pages_of, paths_of
from ._references import Inexpressible, NamedTypes, WorkBudget, list_of, reference, table_of, text_of
from ._requests import Arguments
from .description import QUERY, ApiCredential, ApiDescription, ApiOperation, NotImported, OperationSummary

KIND = "discovery#restDescription"
MOST_LEVELS = 16
MOST_PATTERN_LENGTH = 1024
"""The maximal length of a text that has a pattern."""

_BASE = re.compile(r"https://(?:[a-z0-9-]+\.)+googleapis\.com/(?:[A-Za-z0-9_~-][A-Za-z0-9._~-]*/)*")
_SCOPE = re.compile(r"https://[A-Za-z0-9._~/-]{1,200}")
_READ_ONLY = re.compile(r"[._-]read-?only$")
_READ_VERBS = re.compile(r"(?:batch_)?(?:get|list|search|query|lookup|count)(?:_|$)")
_OUTPUT_ONLY = re.compile(r"\[?output[ -]only\b|\bread-only\.?\s*$", re.IGNORECASE)
_FORMATS = {"date": "date", "date-time": "date-time", "google-datetime": "date-time"}
_BOUNDS = ("minimum", "maximum")
_DIGITS = re.compile(r"-?[0-9]{1,15}")
_KEPT = ("$ref", "type", "description", "enum", "default")
_CREDENTIAL: Mapping[str, JSON] = {
    "kind": "oauth2",
    "authorize_url": "https://accounts.google.com/o/oauth2/v2/auth?access_type=offline&prompt=consent",
    "token_url": "https://oauth2.googleapis.com/token",
    "account": "id_token.email",
    "token_endpoint_auth_method": "client_secret_post",
}
_ONE_OF_SEVERAL = (
    "of several scopes that are enough for an operation, one was chosen: check that it is the one you want"
)


@frozen
class DiscoveryDocument:
    """A Google API Discovery document.

    :ivar api: Google's short name of the API, such as C{calendar}.
    :ivar base_url: the base URL: below googleapis.com, or the one that the user gave.
    :ivar methods: the methods by id.
    """

    title: str
    api: str
    base_url: str
    methods: Mapping[str, Mapping[str, Any]] = field(repr=False)
    schemas: Mapping[str, Any] = field(repr=False)
    types: NamedTypes = field(repr=False)

    @classmethod
    def recognise(cls, root: Mapping[str, JSON], address: str = "", base_url: str = "") -> DiscoveryDocument | None:
        """Return a reader of the document, or None if the document is not a Discovery document.

        :param base_url: the base URL to use instead of the document's.
        :raises NotImported: if the document's host is not below googleapis.com and C{base_url} is empty, or if its
            resources are nested too deeply.
        """
        if root.get("kind") != KIND:
            return None
        url, schemas = text_of(root.get("rootUrl")) + text_of(root.get("servicePath")), table_of(root.get("schemas"))
        if not base_url and not _BASE.fullmatch(url):
            raise NotImported("The document is of no host below googleapis.com, where Google's credentials may go.")
        return cls(
            title=text_of(root.get("title")) or "An API of Google's",
            api=text_of(root.get("name")),
            base_url=(base_url or url).rstrip("/"),
            methods={text_of(each["id"]): each for each in _methods(root, MOST_LEVELS)},
            schemas=schemas,
            types=NamedTypes.of({name: _schema(each) for name, each in schemas.items()}),
        )

    def list_operations(self) -> tuple[OperationSummary, ...]:
        """Return all methods, in the document's order."""
        return list_summaries(
            (
                key.removeprefix(f"{self.api}."),
                key,
                text_of(method.get("httpMethod")),
                "/" + text_of(method.get("path")),
                text_of(method.get("description")),
                _effect(key, method)[0],
            )
            for key, method in self.methods.items()
        )

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the API with the methods C{chosen}."""
        operations = tuple(guarded(each, self._operation) for each in chosen)
        scopes: list[JSON] = list(dict.fromkeys(scope for each in operations for scope in each.scopes))
        return ApiDescription(
            name=name,
            title=self.title,
            base_url=self.base_url,
            operations=operations,
            credential=ApiCredential({**_CREDENTIAL, "scopes": scopes}, (_ONE_OF_SEVERAL,)) if scopes else None,
            marks=() if scopes else ("the document names no scopes, so there is no [credential]",),
        )

    def _operation(self, summary: OperationSummary) -> ApiOperation:
        method = self.methods[summary.key]
        arguments, response = Arguments(self.types, WorkBudget(), frozenset()), method.get("response")
        extra: dict[str, JSON] = {"error": {"message": "error.message"}} if response else {"answer": "none"}
        marks: tuple[str, ...] = ()
        if method.get("supportsMediaUpload") is True:
            if "request" not in method:
                raise Inexpressible("it uploads a file in a form that a connector file cannot say")
            marks = ("only what describes the file is sent: a connector file cannot upload its content",)
        arguments.add_parameters(_parameters(method))
        if "request" in method:
            arguments.add_members(self._body(summary.key, table_of(method["request"])))
        path, slashes = arguments.write_path(summary.path)
        effect, destructive = _effect(summary.key, method)
        if method.get("supportsMediaDownload") is True and not response:
            extra = {"answer": "file", "query": {"alt": "media"}}
        elif response and effect == READ:
            paths = paths_of(self.types, _schema(response), WorkBudget())
            names = [each.steps[0] for each in arguments.found if each.place == QUERY]
            extra |= pages_of(names, paths, linked=False)[0]
        return ApiOperation(
            name=summary.name,
            title=summary.words.partition(". ")[0],
            description=text_of(method.get("description")),
            effect=effect,
            destructive=destructive,
            asked=effect == READ and discloses(summary.key),
            method=summary.method,
            path=path,
            parameters=tuple(arguments.found),
            body=arguments.body,
            scopes=self._scopes(summary.key, method, effect)[:1],
            extra={**extra, **slashes},
            marks=(*marks, *arguments.marks),
        )

    def _body(self, key: str, request: Mapping[str, Any]) -> JSON:
        """Return the schema of a method's body. A member is required if its annotations name the method C{key}."""
        members = table_of(table_of(self.schemas.get(text_of(request.get("$ref")))).get("properties"))
        needed = {
            name: list_of(table_of(table_of(each).get("annotations")).get("required")) for name, each in members.items()
        }
        required: list[JSON] = [name for name in needed if key in needed[name]]
        return {"allOf": [_schema(request), {"required": required}]}

    def _scopes(self, key: str, method: Mapping[str, Any], effect: str) -> tuple[str, ...]:
        """Return the scopes of which each suffices for a method, the narrowest first.

        These are the scopes named like the method's resource, then all others, the least used in the document first.
        """
        offered = [each for each in list_of(method.get("scopes")) if isinstance(each, str) and _SCOPE.fullmatch(each)]
        parts = key.split(".")[-2:0:-1]
        names = [*(f"{self.api}.{part}" for part in parts), self.api, *parts]
        names = [*(f"{each}.readonly" for each in names), *names] if effect == READ else names
        named = [scope for each in names for scope in offered if scope.endswith(f"/auth/{each}")]
        return tuple(dict.fromkeys([*named, *sorted(offered, key=lambda scope: self.usage[scope])]))

    @cached_property
    def usage(self) -> Counter[str]:
        """Count for each scope the methods that accept it."""
        return Counter(str(scope) for each in self.methods.values() for scope in list_of(each.get("scopes")))


def _methods(resource: Mapping[str, Any], levels: int) -> Iterator[Mapping[str, Any]]:
    if not levels:
        raise NotImported("The document has resources in resources, too deep.")
    yield from (each for each in table_of(resource.get("methods")).values() if text_of(table_of(each).get("id")))
    for each in table_of(resource.get("resources")).values():
        yield from _methods(table_of(each), levels - 1)


def _effect(key: str, method: Mapping[str, Any]) -> tuple[str, bool]:
    """Return whether a method reads or writes, as C{read} or C{write}, and whether its write may destroy something."""
    asked, verb = text_of(method.get("httpMethod")), name_of(key.rpartition(".")[2])
    effect, destructive, _ = effect_of(asked, verb)
    if asked == "POST" and _READ_VERBS.match(verb):
        readable = any(_READ_ONLY.search(str(scope)) for scope in list_of(method.get("scopes")))
        effect, destructive = (READ, False) if readable else (effect, destructive)
    return effect, destructive


def _parameters(method: Mapping[str, Any]) -> list[JSON]:
    """Return a method's parameters as OpenAPI describes parameters, without optional deprecated ones."""
    return [
        {"name": name, "in": each.get("location"), "required": each.get("required"), "schema": _schema(each)}
        for name, each in table_of(method.get("parameters")).items()
        if isinstance(each, Mapping) and (each.get("required") is True or not _is_outdated(each))
    ]


def _is_outdated(keys: Mapping[str, Any]) -> bool:
    return keys.get("deprecated") is True or text_of(keys.get("description")).lower().startswith("deprecated")


def _schema(raw: Any) -> dict[str, JSON]:
    """Convert a schema of the document to JSON Schema."""
    keys = table_of(raw)
    found: dict[str, JSON] = {key: keys[key] for key in _KEPT if key in keys and keys[key] != "any"}
    found |= reference(keys["$ref"]) if text_of(keys.get("$ref")) else {}
    found |= {"format": _FORMATS[keys["format"]]} if text_of(keys.get("format")) in _FORMATS else {}
    found |= {key: int(keys[key]) for key in _BOUNDS if _DIGITS.fullmatch(text_of(keys.get(key)))}
    if pattern := text_of(keys.get("pattern")):
        found |= {
            "pattern": pattern if pattern.startswith("^") else f"^(?:{pattern})$",
            "maxLength": MOST_PATTERN_LENGTH,
        }
    if "properties" in keys:
        found["properties"] = {name: _schema(each) for name, each in table_of(keys["properties"]).items()}
    if "items" in keys:
        found["items"] = _schema(keys["items"])
    if keys.get("readOnly") is True or _OUTPUT_ONLY.search(text_of(keys.get("description"))):
        found["readOnly"] = True
    if keys.get("repeated") is True:
        return {"type": "array", "description": found.pop("description", ""), "items": found}
    return found
