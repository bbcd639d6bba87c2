"""Makes a description of an API with one operation from a C{curl} command, such as one in a service's documentation.

The command is converted to an OpenAPI document, from which the reader for OpenAPI makes the description.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, unquote

from attrs import define, evolve

from aileron.actions import MAX_INPUTS
from aileron.base.addresses import (
    Url,
    is_loopback,
    is_overriding_header,
    is_overriding_parameter,
    is_partial_header,
    read_base_url,
    read_origin,
    read_url,
)
from aileron.base.json import JSON, loads_strict
from aileron.base.text import visible

from ._curl_credential import PLACEHOLDER, CurlCredential, find_credential, looks_random, split_path_key
from ._curl_words import CurlRequest, read_command
from ._derive import name_of
from ._openapi import OpenApi
from ._references import ApiDocument
from ._requests import FORM_TYPE
from .description import PATH, QUERY, ApiDescription, NotImported, OperationSummary
from .files import one_line

_TEXT: JSON = {"type": "string"}
_TYPES: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_SEGMENT = re.compile(r"(?<=/)(?:[A-Z][A-Z_-]{2,60}|:[A-Za-z_]{1,60})(?=/|$)")
_IN_PATH = re.compile(r"\{([a-z0-9_]+)\}")
_NAME = re.compile(r"[A-Za-z0-9_.~!*'()\[\]:@,/$-]{1,80}").fullmatch
_BY_DAEMON = "accept-encoding connection content-length expect keep-alive te transfer-encoding user-agent".split()
_REFUSED = ("cookie", "host", "proxy-authorization")


@define(kw_only=True)
class CurlCommand(OpenApi):
    """A parsed C{curl} command as an OpenAPI document with one operation.

    :ivar credential: the place of the key that the command carries, or None if it carries none.
    :ivar extra: keys of the operation that OpenAPI cannot express.
    """

    credential: CurlCredential | None
    extra: Mapping[str, JSON]

    @classmethod
    def read(cls, command: Sequence[str], base_url: str = "") -> CurlCommand:
        """Parse a C{curl} command.

        :param command: the command's words, or the whole command as a single word.
        :param base_url: the base URL to use instead of the command's; empty to use the command's.
        :raises NotImported: if the command is not supported. The message repeats no value of the command.
        """
        request = read_command(command)
        if request.method not in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            raise NotImported("The method of the curl command is none that a connector can send.")
        before, _, behind = request.url.partition("#")[0].partition("?")
        query = parse_qsl(behind, keep_blank_values=True)
        _check_names([name for name, _ in query])
        _check_names([name for name, _ in request.headers])
        credential = find_credential(request, query)
        if credential is None:
            before, credential = split_path_key(before)
        url = _read_url(before)
        own, path = credential.name.lower() if credential else "", url.path or "/"
        parameters = [(name, PATH) for name in dict.fromkeys(_IN_PATH.findall(path))]
        parameters += [(name, QUERY) for name, _ in query if name.lower() != own]
        operation: dict[str, JSON] = {
            "summary": f"{request.method} {path}",
            "description": f"Sends {request.method} {path} to {url.origin.host}.",
            "parameters": [
                {"name": name, "in": place, "required": True, "schema": _TEXT} for name, place in parameters
            ],
        }
        headers = dict(_constant_headers(request, own))
        extra: dict[str, JSON] = {"headers": headers} if headers else {}
        if request.data == "{}":
            extra["json"] = {}
        elif request.data is not None:
            operation["requestBody"] = {"required": True, "content": _describe_body(request, request.data)}
        paths: JSON = {path: {request.method.lower(): operation}}
        document = ApiDocument({"info": {"title": _name_service(url.origin.host)}, "paths": paths})
        return cls(document=document, base_url=base_url or url.origin.url, credential=credential, extra=extra)

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the service of the C{curl} command, with the command's request as its only operation."""
        found = super().describe(name, chosen)
        operations = tuple(evolve(each, extra={**each.extra, **self.extra}) for each in found.operations)
        return evolve(found, operations=operations, credential=self.credential.found if self.credential else None)


def _name_service(host: str) -> str:
    """Return the label of a host that names its service, such as C{tracker} of C{api.tracker.example}, else "local"."""
    labels = host.split(".")[:-1] or [host]
    return "local" if is_loopback(host) else next((each for each in reversed(labels) if len(each) > 3), labels[0])


def _read_url(text: str) -> Url:
    """Parse a URL without its query. Each placeholder in its path becomes a name in braces.

    :raises NotImported: if the URL is invalid, its host is a placeholder, or its path seems to contain a key.
    """
    named: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        named.setdefault(found[0], name_of(found[0], {*named.values()}, 60))
        return f"{{{named[found[0]]}}}"

    if any(map(looks_random, text.split("/")[3:])):
        advice = "Put a placeholder in its place: such as {id} for an id, or $TOKEN for a key."
        raise NotImported("The path of the URL seems to hold a key, or a long id.", advice)
    text = _SEGMENT.sub(name, PLACEHOLDER.sub(name, text))
    if "{" in text.partition("://")[2].partition("/")[0]:
        raise NotImported("The host of the URL is a placeholder.", "Put the host of your own in its place.")
    try:
        url = read_url(text)
        read_base_url(read_origin(text).url)
    except ValueError as error:
        raise NotImported(f"The URL of the curl command {error}.") from None
    if "//" in url.path or not {".", ".."}.isdisjoint(unquote(url.path).split("/")):
        raise NotImported("The path of the URL has an empty part, or dots; was a variable in it not set?")
    return url


def _check_names(given: Sequence[str]) -> None:
    """Check the names of headers, parameters or fields.

    :raises NotImported: if a name is invalid, repeated, may be a key, or would change what the request does.
    """
    names = [each.lower() for each in given]
    if len({*names}) < len(names):
        raise NotImported("The curl command has a header or parameter twice.", "Leave one of them out.")
    if len(names) > MAX_INPUTS or any(not _NAME(each) or looks_random(each) for each in names):
        raise NotImported("The curl command has a header or parameter without a proper name, or too many.")
    for each in names:
        if each in _REFUSED or is_overriding_header(each) or is_overriding_parameter(each):
            raise NotImported(f"The curl command has {each}, which is not supported: it makes another request of it.")
        if is_partial_header(each):
            raise NotImported(f"The curl command has {each}, which is not supported: it asks for a part of an answer.")


def _constant_headers(request: CurlRequest, own: str) -> Iterator[tuple[str, JSON]]:
    """Yield the name and value of each header that is the same in every request.

    The key's header C{own} and those that the daemon sends itself are left out. An idempotency key becomes a reference
    to a new one for each request.

    :raises NotImported: if a value contains a variable, a key or invisible characters.
    """
    for name, value in request.headers:
        lower = name.lower()
        if lower.endswith("idempotency-key"):
            yield name, "${effect.uuid}"
        elif value and lower != own and lower not in _BY_DAEMON:
            if "$" in value or PLACEHOLDER.search(value) or looks_random(value) or visible(value) != value:
                problem = f"The header {name} has a variable or a key in it, or what cannot be seen."
                raise NotImported(problem, "Put its value there, or leave it out.")
            yield name, value


def _describe_body(request: CurlRequest, data: str) -> JSON:
    """Return the OpenAPI content of a body: its media type and the types of its fields.

    :raises NotImported: if the body is neither JSON nor a form, or a field of it is not supported.
    """
    kind = next((value.lower() for name, value in request.headers if name.lower() == "content-type"), FORM_TYPE)
    if data.lstrip()[:1] in ("{", "["):
        try:
            value = loads_strict(data.encode())
        except (ValueError, RecursionError) as error:
            raise NotImported(_why_no_json(data, error), "Put variables in it into quotes.") from None
        return {"application/json": {"schema": _schema(value, "body")}}
    if "=" not in data or not kind.startswith(FORM_TYPE):
        raise NotImported("The body is neither a JSON object or array nor a form.")
    names = [name for name, _ in parse_qsl(data, keep_blank_values=True)]
    _check_names(names)
    return {FORM_TYPE: {"schema": _schema(dict.fromkeys(names, ""), "body")}}


def _why_no_json(data: str, error: Exception) -> str:
    """Return the sentence that says why a body is not read: invalid JSON, or JSON that programs read differently."""
    doubled = list[bool]()

    def look(pairs: list[tuple[str, object]]) -> None:
        doubled.append(len(dict(pairs)) < len(pairs))

    try:
        json.loads(data, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return "The body is not JSON."
    if any(doubled):
        return "The body has a key twice: a service would see only one of the values."
    if "2^53" in str(error):
        return "The body has an integer beyond 2^53-1, which many programs would change: put it into quotes."
    return "The body is JSON that two programs could read in two ways."


def _schema(value: JSON, name: str) -> JSON:
    """Return the JSON Schema of a value's type.

    :raises NotImported: if the name of a field may be a key, or a value is null.
    """
    if isinstance(value, Mapping):
        if any(map(looks_random, value)):
            raise NotImported("The body has a field whose name may be a key.")
        members: JSON = {each: _schema(inside, each) for each, inside in value.items()}
        return {"type": "object", "properties": members, "required": [*value], "additionalProperties": False}
    if isinstance(value, list):
        kinds = [_schema(each, name) for each in value]
        return {"type": "array", **({"items": kinds[0]} if kinds and kinds[1:] == kinds[:-1] else {})}
    if value is None:
        raise NotImported(f"The body has null as {one_line(name, 60)}.", "Leave that out, or give it a value.")
    return {"type": _TYPES[type(value)]}
