"""Makes a description of an API with one operation of a C{curl} command, as it stands in a service's documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import parse_qsl

from attrs import field, frozen

from aileron.addresses import Url, read_base_url, read_url
from aileron.values import JSON, READ

from ._curl_body import add_body, refuse_ambiguous
from ._curl_credential import (
    IDEMPOTENCY,
    CurlCredential,
    find_credential,
    find_placeholders,
    is_placeholder,
    looks_random,
)
from ._curl_names import join_placeholders, list_words, name_host, name_inputs, name_path
from ._curl_words import CurlRequest, read_request, split_command
from ._derive import discloses, effect_of, guarded, has_verb, name_of
from ._description import HEADER, PATH, QUERY, ApiDescription, ApiOperation, NotImported, OperationSummary
from ._files import one_line
from ._references import ApiDocument, Inexpressible, WorkBudget
from ._requests import FORM_TYPE, REROUTING, Arguments

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_JSON = "application/json"
_NO_MEANING = frozenset(
    "accept-encoding connection content-length expect keep-alive te transfer-encoding user-agent".split()
)
"""Headers that the daemon sets by itself."""
_USUAL = {"accept": (_JSON, "*/*"), "content-type": (_JSON, FORM_TYPE)}


@frozen
class CurlCommand:
    """A command that was read.

    :ivar credential: L{None}: it carries no key.
    """

    request: CurlRequest
    url: Url = field(repr=False)
    base_url: str
    credential: CurlCredential | None

    @classmethod
    def read(cls, command: Sequence[str], base_url: str = "") -> CurlCommand:
        """Read a command: the words of it, or the whole as one of them.

        :param base_url: in the place of its own.
        :raises NotImported: it is none that is understood; no value of it is repeated.
        """
        request = read_request(split_command(command[0]) if len(command) == 1 else command)
        try:
            url = read_url(join_placeholders(request.url))
            base_url = base_url or read_base_url(url.origin.url).url
        except ValueError as error:
            raise NotImported(f"The URL of the curl command {error}.") from None
        if url.user_info is not None:
            raise NotImported("The URL of the curl command has a user name or password in it.", "Use -u for them.")
        if find_placeholders(url.origin.host):
            raise NotImported("The host of the URL is a placeholder.", "Put the host of your own in its place.")
        if request.method not in _METHODS:
            raise NotImported("The method of the curl command is none that a connector can send.")
        credential = find_credential(request, url.path, _query(request, url))
        return cls(request, url, base_url, credential)

    @property
    def title(self) -> str:
        """Return where the command sends its request."""
        return self.url.origin.host

    @property
    def short_name(self) -> str:
        """Return a name for the service, from its host."""
        return name_host(self.title)

    def list_operations(self) -> tuple[OperationSummary, ...]:
        """Return the one operation."""
        method, path = self.request.method, self._rest()
        does, words = name_path(path), f"{method} {path}"
        effect, _, _ = effect_of(method, does)
        name = name_of(does if has_verb(does) else f"{method}_{does}")
        return (OperationSummary(name, words, method, path, one_line(words, 100), effect),)

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the service with the operation."""
        return ApiDescription(
            name=name,
            title=f"The API of {self.title}.",
            base_url=self.base_url,
            operations=tuple(guarded(each, self._operation) for each in chosen),
            credential=self.credential.found if self.credential else None,
        )

    def _rest(self) -> str:
        """Return the path with the names of its inputs in braces, without what is the credential's."""
        segments = (self.url.path or "/").split("/")
        if self.credential and self.credential.place == PATH:
            segments = ["", *segments[self.credential.name.count("/") + 1 :]]
        return name_inputs(segments)

    def _operation(self, summary: OperationSummary) -> ApiOperation:
        request, does = self.request, name_path(summary.path)
        effect, destructive, unsure = effect_of(request.method, does)
        arguments = Arguments(ApiDocument({}), WorkBudget(), self._reserved())
        if not {"", ".", ".."}.isdisjoint(summary.path.split("/")[1:-1]):
            raise Inexpressible("it has an empty part in its path; was a variable in it not set?")
        if self.credential is None and any(map(looks_random, self.url.path.split("/"))):
            raise Inexpressible("it seems to hold its key in the path; put a placeholder such as $KEY in its place")
        names = [each[0][1:-1] for each in find_placeholders(summary.path)]
        arguments.add_parameters([_parameter(each, PATH) for each in dict.fromkeys(names)])
        pairs = _query(request, self.url)
        refuse_ambiguous(pairs)
        queried = [name for name, _ in pairs if name.lower() not in self._reserved()]
        arguments.add_parameters([_parameter(each, QUERY) for each in queried])
        headers = dict(self._headers(arguments))
        extra: dict[str, JSON] = {"answer": "none"} if request.method == "HEAD" else {}
        if request.data is not None and not request.in_query:
            extra |= add_body(arguments, request, has_key=self.credential is not None)
        path, slashes = arguments.write_path(summary.path)
        said = list_words([each.name for each in arguments.found])
        about = f"Sends {request.method} {summary.path} to {self.title}{' with ' if said else ''}{said}."
        return ApiOperation(
            name=summary.name,
            title=f"{request.method} {summary.path}",
            description=about,
            effect=effect,
            destructive=destructive,
            asked=effect == READ and discloses(does),
            method=request.method,
            path=path,
            parameters=tuple(arguments.found),
            body=arguments.body,
            constant=tuple(arguments.constant),
            extra={**extra, **slashes, **({"headers": headers} if headers else {})},
            marks=(*unsure, *arguments.marks),
        )

    def _reserved(self) -> frozenset[str]:
        return frozenset({self.credential.name.lower()}) if self.credential else frozenset()

    def _headers(self, arguments: Arguments) -> Iterator[tuple[str, JSON]]:
        """Yield the headers that are the same in every request; a placeholder becomes an input."""
        for name, value in self.request.headers:
            lower = name.lower()
            if lower in self._reserved() | _NO_MEANING or value in _USUAL.get(lower, ()):
                continue
            if lower == "host" or lower in REROUTING:
                raise Inexpressible(f"it has the header {one_line(name, 60)}, which makes another request of it")
            if lower in IDEMPOTENCY or "uuidgen" in value:
                yield name, "${effect.uuid}"
            elif is_placeholder(value):
                arguments.add_parameters([_parameter(name, HEADER)])
            elif "$" in value:
                raise Inexpressible(f"it has more than a variable in the header {one_line(name, 60)}")
            else:
                yield name, value


def _query(request: CurlRequest, url: Url) -> list[tuple[str, str]]:
    """List the parameters of a request's query, those that C{-G} puts there among them."""
    text = "&".join(filter(None, (url.query, request.data if request.in_query else "")))
    return parse_qsl(text, keep_blank_values=True)


def _parameter(name: str, place: str) -> dict[str, JSON]:
    """Describe a text that is required, as OpenAPI does."""
    return {"name": name, "in": place, "required": True, "schema": {"type": "string"}}
