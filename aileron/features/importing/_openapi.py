"""Reads OpenAPI 3.0 and 3.1 documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from aileron.base.addresses import host_shown
from aileron.base.json import JSON
from aileron.model.connectors import READ

from ._derive import credential_of, discloses, effect_of, error_of, guarded, name_of, pages_of, paths_of, wanted_of
from ._references import ApiDocument, Inexpressible, Node, WorkBudget, list_of, table_of, text_of
from ._requests import JSON_TYPE, Arguments
from ._servers import FIXED, choose_server, read_server
from .description import QUERY, ApiCredential, ApiDescription, ApiOperation, ApiParameter, NotImported, OperationSummary
from .files import one_line

MOST_WORDS = 200
_MOST_TOLD = 5
MOST_LOOKED_AT = 2_000
"""The work budget for the schemas of one response."""
_EMPTY = ("204", "205")
_UNSENT = frozenset({"options", "trace"})
_METHODS = ("get", "head", "post", "put", "patch", "delete")
_IN_PATH = re.compile(r"\{([^{}/]{1,200})\}")
_BUNDLE = "Put all parts into one file first, for example with the npm package @redocly/cli: redocly bundle FILE"
_CONVERT = "Convert it first, for example with the npm package swagger2openapi: swagger2openapi FILE -o openapi.json"


@define
class OpenApi:
    """An OpenAPI document.

    :ivar address: the URL of the document, against which a relative base URL is resolved; empty for a file.
    :ivar base_url: the base URL to use instead of the document's; empty to use the document's.
    """

    document: ApiDocument
    address: str = ""
    base_url: str = ""
    _operations: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], OperationSummary]] = field(init=False)
    _skipped: dict[str, list[str]] = field(init=False, factory=dict)

    @classmethod
    def recognise(cls, root: Mapping[str, JSON], address: str = "", base_url: str = "") -> OpenApi | None:
        """Return a reader of the document, or None if the document is not OpenAPI.

        :raises NotImported: if the document is Swagger 2.0 or another version of OpenAPI, or has no usable operation.
        """
        version = text_of(root.get("openapi"))
        if "swagger" in root:
            raise NotImported("The document is Swagger 2.0; only OpenAPI 3.0 and 3.1 are read.", _CONVERT)
        if not version:
            return None
        if not version.startswith(("3.0", "3.1")):
            raise NotImported(f"The document is OpenAPI {one_line(version, 20)}; only 3.0 and 3.1 are read.")
        found = cls(ApiDocument(root), address, base_url)
        if found._skipped and not found._operations:
            problem, paths = next(iter(found._skipped.items()))
            raise NotImported(f"The document has no operation: its path {one_line(paths[0], 80)} {problem}.", _BUNDLE)
        return found

    @property
    def title(self) -> str:
        """Return the API's own title, or a stand-in if the document has none."""
        return one_line(text_of(table_of(self.document.root.get("info")).get("title")), 100) or "An API"

    def __attrs_post_init__(self) -> None:
        self._operations = {}
        for path, method, item, operation in self._all():
            key = text_of(operation.get("operationId")) or f"{method}{path}"
            name = name_of(key, self._operations)
            words = one_line(text_of(operation.get("summary")) or text_of(operation.get("description")), 100)
            effect, _, _ = effect_of(method.upper(), _does(path, operation))
            summary = OperationSummary(name, key, method.upper(), path, effect, words)
            self._operations[name] = item, operation, summary

    def _all(self) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
        for path, value in table_of(self.document.root.get("paths")).items():
            try:
                item = self.document.follow(value).keys
            except Inexpressible as problem:
                self._skipped.setdefault(str(problem), []).append(path)
                continue
            for method in _UNSENT & item.keys():
                self._skipped.setdefault(f"has the method {method.upper()}", []).append(path)
            yield from ((path, each, item, table_of(item[each])) for each in _METHODS if table_of(item.get(each)))

    def list_operations(self) -> tuple[OperationSummary, ...]:
        """Return all operations, in the document's order."""
        return tuple(summary for _, _, summary in self._operations.values())

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the API with the operations C{chosen}."""
        root = self.document.root
        servers = [table_of(each) for each in list_of(root.get("servers"))]
        base_url, variables, marks = (self.base_url, (), ()) if self.base_url else choose_server(servers, self.address)
        schemes = table_of(table_of(root.get("components")).get("securitySchemes"))
        needs = [self._needs(self._operations[each.name][1]) for each in chosen]
        secured = [need for need in needs if any(names for names, _ in need)]
        scopes = list(dict.fromkeys(scope for need in secured for _, names in need for scope in names))
        wanted = [names for names, _ in secured[0]] if secured else []
        says = "security" in root or all("security" in self._operations[each.name][1] for each in chosen)
        no_need = not secured and (schemes or says)
        credential = None if no_need else credential_of(schemes, wanted, scopes)
        hosts: dict[str, str] = {}
        keys = {} if credential is None else credential.keys
        operations = [guarded(each, lambda found: self._describe(found, base_url, hosts, keys)) for each in chosen]
        return ApiDescription(
            name=name,
            title=self.title,
            base_url=base_url,
            operations=tuple(operations),
            credential=None if credential is None else _with_host(credential, base_url),
            variables=variables,
            hosts=hosts,
            marks=(*marks, *self._unsure(chosen, schemes)),
        )

    def _unsure(self, chosen: Sequence[OperationSummary], schemes: Mapping[str, Any]) -> Iterator[str]:
        """Yield texts about what is uncertain for the whole API, such as paths that were left out."""
        for problem, paths in self._skipped.items():
            told = ", ".join(paths[:_MOST_TOLD]) + (" and others" if paths[_MOST_TOLD:] else "")
            yield f"left out, because it {problem}: {told}"
        said = ("security" in self._operations[each.name][1] for each in chosen)
        if schemes and "security" not in self.document.root and not any(said):
            names = ", ".join(list(schemes)[:_MOST_TOLD])
            yield f"the document describes a credential ({names}), but no operation asks for it: none is sent"

    def _needs(self, operation: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        return list(wanted_of(operation.get("security", self.document.root.get("security"))))

    def _describe(
        self, chosen: OperationSummary, base_url: str, hosts: dict[str, str], keys: Mapping[str, JSON]
    ) -> ApiOperation:
        """Describe one operation.

        :param hosts: further hosts by name; the operation's own host is added to them.
        :param keys: the keys of the connector's credential; empty without a credential.
        :raises Inexpressible: if the operation cannot be written in a connector file.
        """
        item, operation, _ = self._operations[chosen.name]
        does = _does(chosen.path, operation)
        effect, destructive, unsure = effect_of(chosen.method, does)
        header = "" if not keys or "query" in keys else text_of(keys.get("header")) or "authorization"
        reserved = frozenset({header.lower(), text_of(keys.get("query")).lower()} - {""})
        arguments = Arguments(self.document, WorkBudget(), reserved)
        arguments.add_parameters(item.get("parameters"), operation.get("parameters"))
        if "requestBody" in operation:
            arguments.add_body(operation["requestBody"], chosen.method)
        path, slashes = arguments.write_path(chosen.path.partition("#")[0], guess=True)
        host = self._host(operation.get("servers", item.get("servers")), base_url, hosts)
        sent = (f"it goes to {hosts[host]}, with the credential: check that this is the service",) if host else ()
        answer, marks = self._answer(operation, [each for each in arguments.found if each.place == QUERY], effect)
        if chosen.method == "HEAD":
            answer = {"answer": "none"}
        headers = {"headers": arguments.headers} if arguments.headers else {}
        joined: dict[str, JSON] = {"joined": arguments.joined} if arguments.joined else {}
        optional: dict[str, JSON] = {"optional_body": True} if arguments.optional_body else {}
        scopes = [each for _, names in self._needs(operation) for each in names if each in list_of(keys.get("scopes"))]
        return ApiOperation(
            name=chosen.name,
            title=one_line(text_of(operation.get("summary")), 100),
            description=text_of(operation.get("description")) or text_of(operation.get("summary")),
            effect=effect,
            destructive=destructive,
            asked=effect == READ and discloses(f"{does} {_IN_PATH.sub('', chosen.path)}"),
            method=chosen.method,
            path=path,
            parameters=tuple(arguments.found),
            body=arguments.body,
            constant=tuple(arguments.constant),
            scopes=tuple(dict.fromkeys(scopes)),
            host=host,
            extra={**headers, **slashes, **joined, **optional, **answer},
            marks=(*unsure, *sent, *arguments.marks, *marks),
        )

    def _answer(
        self, operation: Mapping[str, Any], query: Sequence[ApiParameter], effect: str
    ) -> tuple[dict[str, JSON], Sequence[str]]:
        """Return the keys that say how a response is read (form, pages, failures), and texts on what is uncertain."""
        answers = {str(status): each for status, each in table_of(operation.get("responses")).items()}
        success = self._content(answers, "2") or self._content({"2": answers.get("default", {})}, "2")
        failure = self._content(answers, "4") or self._content({"4": answers.get("default", {})}, "4")
        kind, unsure = self._kind(answers, success)
        wrong = self._paths(failure)
        if kind == "auto":
            message = error_of({}, wrong).get("message")
            return {"answer": kind, **({"error": {"message": message}} if message else {})}, unsure
        if kind != "json":
            return {"answer": kind}, unsure
        right = self._paths(success)
        error = error_of(right, wrong)
        paged: tuple[dict[str, JSON], tuple[str, ...]] = ({}, ())
        if effect == READ:
            names = [each.steps[0] for each in query if each.schema["type"] in ("integer", "number", "string")]
            paged = pages_of(names, right, linked=success is not None and success[2])
        return {**({"error": error} if error else {}), **paged[0]}, paged[1] if effect == READ else unsure

    def _kind(self, answers: Mapping[str, Any], success: tuple[str, Node, bool] | None) -> tuple[str, tuple[str, ...]]:
        """Return the form of a successful response, and texts about what is uncertain.

        The form is C{auto} if the document describes none.
        """
        bare = sorted(
            status
            for status, each in answers.items()
            if status[:1] == "2" and not {"$ref", "content"} & {*table_of(each)}
        )
        if success is not None and success[0]:
            kind = _form(success[0])
            sure = kind != "json" or not bare
            return kind, () if sure else (f"an answer {bare[0]} has no content, and its outcome would be unknown",)
        if success is not None and bare and all(status in _EMPTY for status in bare):
            return "none", ()
        said = f"its answer {bare[0]}" if bare else "its answer"
        return "auto", (f"{said} is not described: what comes is read by its type",)

    def _content(self, answers: Mapping[str, Any], first: str) -> tuple[str, Node, bool] | None:
        """Find the content of the first response whose status begins with C{first}, preferring JSON.

        :return: the media type (empty without content), the content, and whether the response has a header C{Link}; or
            None if no such response is described.
        """
        for status in sorted(answers):
            if not status.startswith(first):
                continue
            try:
                node = self.document.follow(answers[status])
            except Inexpressible:
                continue
            linked = "link" in {name.lower() for name in table_of(node.keys.get("headers"))}
            content = table_of(node.keys.get("content"))
            if not content:
                return ("", Node({}), linked) if first == "2" and status != "2" else None
            names = sorted(content, key=lambda name: not JSON_TYPE.fullmatch(name.partition(";")[0].strip().lower()))
            return names[0], Node(table_of(content[names[0]]), node.trail), linked
        return None

    def _paths(self, content: tuple[str, Node, bool] | None) -> Mapping[str, Mapping[str, Any]]:
        if content is None or "schema" not in content[1].keys:
            return {}
        return paths_of(self.document, content[1].keys["schema"], WorkBudget(MOST_LOOKED_AT))

    def _host(self, servers: object, base_url: str, hosts: dict[str, str]) -> str:
        """Return the name of an operation's own host, and add the host to C{hosts}; empty for the host of the base URL.

        :raises Inexpressible: if a connector file cannot express the host.
        """
        given = [table_of(each) for each in list_of(servers)]
        if not given or self.base_url:
            return ""
        url, variables, marks = read_server(given[0], self.address)
        if url == base_url:
            return ""
        if not url or variables or any(not each.startswith(FIXED) for each in marks):
            raise Inexpressible("goes to a host that a connector file cannot name")
        name = next((each for each, known in hosts.items() if known == url), None)
        if name is None:
            name = name_of(url.partition("://")[2].partition(".")[0].partition("/")[0], hosts, 30)
            hosts[name] = url
        return name


def _does(path: str, operation: Mapping[str, Any]) -> str:
    """Return the words of an operation as a name: from its C{operationId}, or else from its path."""
    return name_of(text_of(operation.get("operationId")) or _IN_PATH.sub("", path), most=MOST_WORDS)


def _with_host(credential: ApiCredential, base_url: str) -> ApiCredential:
    """Return the credential.

    If the client secret is sent to another host than the requests, add a text that says so.
    """
    token_url = text_of(credential.keys.get("token_url"))
    host = host_shown(token_url) if token_url else ""
    if not host or host == host_shown(base_url):
        return credential
    mark = f"the client's secret is sent to {host}: check that this is the service"
    return evolve(credential, marks=(*credential.marks, mark))


def _form(media_type: str) -> str:
    """Return the form in which a response of a media type is read: none, json, xml, text or file."""
    plain = media_type.partition(";")[0].strip().lower()
    if not plain:
        return "none"
    if JSON_TYPE.fullmatch(plain):
        return "json"
    if plain.endswith(("/xml", "+xml")):
        return "xml"
    return "text" if plain.startswith("text/") else "file"
