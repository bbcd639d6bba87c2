"""Finds where a C{curl} command carries its key and in which form. The key itself is not stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from attrs import frozen

from aileron.redaction import holds_secret, names_secret

from ._curl_words import CurlRequest
from ._derive import BEARER
from .description import ApiCredential, NotImported

PLACEHOLDER = re.compile(
    r"\$\{[A-Za-z_][A-Za-z0-9_]{0,80}\}|\$[A-Za-z_][A-Za-z0-9_]{0,80}|\$\([^()]{0,200}\)|<[^<>]{1,100}>"
    r"|\{\{[^{},]{1,80}\}\}|\{[^{},]{1,80}\}|(?i:\byour[_-][a-z0-9_-]{1,80})"
)
"""Matches a placeholder that the reader of a documentation replaces with a value."""

_QUERY = frozenset(
    "access_key access_token api-key api_key apikey appid auth auth_token authorization client_secret key password "
    "secret sig signature token x-api-key x-auth-token".split()
)
_PLAIN = ("accept", "accept-language", "content-type", "idempotency-key", "user-agent", "x-idempotency-key")
_SCHEMES = ("apikey", "basic", "bearer", "bot", "geniekey", "key", "oauth", "ssws", "token")
"""Lower-case words before a key that are certainly not part of the key."""
_VALUE = re.compile(r"(?:([A-Za-z][A-Za-z-]{0,20})(?: +|$))?([^\s,;\"=]*=*)")
_has_digit = re.compile("[0-9]").search
_KEY = "$KEY"


@frozen
class CurlCredential:
    """The place of a key in a C{curl} command.

    :ivar name: the name of the header or query parameter; empty for a key in the path.
    :ivar form: how the key is sent, as words for people.
    :ivar found: the credential for the connector file.
    :ivar is_real: whether the command seems to contain a real key, not a placeholder.
    """

    name: str
    form: str
    found: ApiCredential
    is_real: bool


def split_path_key(text: str) -> tuple[str, CurlCredential | None]:
    """Remove a key from the path of a URL: a placeholder that is named like a secret, as in C{/bot$TOKEN/send}.

    :return: the URL without the path segments up to the key, and the key's place; or C{text} and None if the path has
        no key.
    :raises NotImported: if the path has a key in a place that a connector file cannot express, or another placeholder
        before the key.
    """
    scheme, slashes, rest = text.partition("://")
    host, *segments = rest.split("/")
    for at, segment in enumerate(segments):
        placeholders = PLACEHOLDER.findall(segment)
        if not any(_is_key(each) for each in placeholders):
            continue
        before, behind = segments[:at], segments[at + 1 :]
        if len(placeholders) > 1 or any(map(PLACEHOLDER.search, before)):
            raise NotImported("The path of the URL has a placeholder before its key.", "Put its value in its place.")
        if not any(behind):
            problem = "The path of the URL ends with its key, which a connector file cannot say."
            raise NotImported(problem, "If the service also takes the key in a header, use that.")
        prefix = "/".join(("", *before, PLACEHOLDER.sub("{key}", segment)))
        found = ApiCredential({"kind": "api_key", "path": prefix})
        credential = CurlCredential("", f"in the path, as: {prefix}", found, is_real=False)
        return "/".join((f"{scheme}{slashes}{host}", *behind)), credential
    return text, None


def _is_key(placeholder: str) -> bool:
    """Return whether a placeholder in a path is a credential. C{{key}} alone is not: it usually names a resource."""
    words = placeholder.strip("${}<>:()").lower().removeprefix("your").strip("_- ")
    return words != "key" and names_secret(placeholder)


def find_credential(request: CurlRequest, query: Sequence[tuple[str, str]]) -> CurlCredential | None:
    """Return the key of a command, or None if the command carries no key.

    :raises NotImported: if the command carries several keys, or it is unclear which part of a header is the key.
    """
    found = [*_in_headers(request), *_in_query(query)]
    if len(found) > 1:
        problem = f"The curl command seems to carry several keys: {' and '.join(each.form for each in found)}."
        raise NotImported(problem, "A connector has one credential. Leave out what the service does not need.")
    return found[0] if found else None


def looks_random(text: str) -> bool:
    """Return whether a text may contain a key, as is or percent-encoded."""
    return holds_secret(text) or holds_secret(unquote(text))


def _in_headers(request: CurlRequest) -> Iterator[CurlCredential]:
    for name, value in request.headers:
        is_named = any(map(names_secret, (name, *PLACEHOLDER.findall(value))))
        if name.lower() not in _PLAIN and (is_named or looks_random(value)):
            yield _read_header(name, PLACEHOLDER.sub(_KEY, value))


def _read_header(name: str, value: str) -> CurlCredential:
    """Return the place of a key in a header whose value is a key, or the name of a scheme and a key.

    :raises NotImported: if it is unclear which part of the value is the key.
    """
    if value[:6].lower() == "basic " and name.lower() == "authorization":
        return _read_basic(name, value)
    found = _VALUE.fullmatch(value)
    scheme, key = (found[1] or "", found[2]) if found else ("", "")
    if scheme and not key and scheme.lower() not in _SCHEMES:
        scheme, key = "", scheme
    is_told = not scheme or scheme.lower() in _SCHEMES or key == _KEY
    if found is None or not is_told or (_KEY in key and key != _KEY):
        problem = f"Which part of the header {name} is the key cannot be told."
        raise NotImported(problem, "Use a placeholder such as $KEY for the key, alone or behind one word.")
    keys = {**BEARER, "header": name, "format": f"{scheme} {{key}}" if scheme else "{key}"}
    return CurlCredential(name, f"in the header {name}, as: {keys['format']}", ApiCredential(keys), _is_real(key))


def _read_basic(name: str, value: str) -> CurlCredential:
    password = value.rpartition(":")[2]
    if not password:
        advice = "If the service also takes the key as a token, use -H 'Authorization: Bearer $KEY' instead of -u."
        raise NotImported("The curl command has -u with an empty password, which is not supported.", advice)
    form = f"in the header {name}, as: Basic {{key}}"
    return CurlCredential(name, form, ApiCredential({"kind": "basic"}), _is_real(password))


def _in_query(query: Sequence[tuple[str, str]]) -> Iterator[CurlCredential]:
    for name, value in query:
        if name.lower() in _QUERY or any(map(names_secret, PLACEHOLDER.findall(value))):
            found = ApiCredential({"kind": "api_key", "query": name})
            yield CurlCredential(name, f"in the parameter {name}", found, _is_real(value))


def _is_real(key: str) -> bool:
    """Return whether a text may be a real key and is not a stand-in such as C{xoxb-xxxx}."""
    is_word = key.isupper() and _has_digit(key) is None
    return bool(key) and not (is_word or PLACEHOLDER.search(key) or key.endswith(("xxx", "XXX", "***", "...", "…")))
