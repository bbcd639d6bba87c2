"""Finds where a C{curl} command carries its key, and in which form; the key itself is read past and kept nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from ._curl_words import CurlRequest
from ._derive import BEARER
from ._description import HEADER, PATH, QUERY, ApiCredential, NotImported
from ._files import one_line

KEY_LABEL, PAIR_LABEL = "Key", "USER:PASSWORD"
IDEMPOTENCY = ("idempotency-key", "x-idempotency-key")

_AUTHORIZATION = "authorization"
_SCHEMES = frozenset(
    "apikey api-key basic bearer bot client-id deepl-auth-key geniekey key klaviyo-api-key oauth splunk ssws "
    "sso-key token zoho-oauthtoken".split()
)
"""Words before a key that are surely no part of it, in lower case."""
_PLACEHOLDER = re.compile(
    r"\$\{[A-Za-z_][A-Za-z0-9_]{0,80}\}|\$[A-Za-z_][A-Za-z0-9_]{0,80}|\$\([^()]{0,200}\)|<[^<>]{1,100}>"
    r"|\{\{[^{}]{1,80}\}\}|\{[^{}]{1,80}\}|\[[A-Za-z_ -]{1,80}\]|%[A-Z_]{3,40}%|\bYOUR[_-][A-Z0-9_-]{1,80}",
    re.IGNORECASE,
)
_DUMMY = re.compile(
    r"(?:[A-Za-z]{0,10}[_-])*[xX*.\u2022\u2026]{3,200}|[A-Z]{1,20}(?:[_-][A-Z]{1,20}){0,8}|(?:api[_-]?)?key|token|secret"
)
_SECRET = re.compile(r"auth(?!ors?(?![a-z]))|token|secret|passw|credential|signature|key(?![a-z])", re.IGNORECASE)
_SECRET_QUERY = frozenset(
    "access_key access_token api-key api_key apikey appid auth auth_token client_secret key password secret sig "
    "signature token".split()
)
_NAMED = re.compile(r"((?:token|key|api_key|apikey)=\"?)([^\"\s]*?)(\"?)", re.IGNORECASE)
_ASSIGNED = re.compile(r"=[^=]|[\",;]")
_WORD = re.compile(r"[A-Za-z0-9_+/=~-]{16,}")
_DIFFERENT = 8
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent", *IDEMPOTENCY})
_SEVERAL = "A connector has one credential. Leave out what the service does not need."
_MARK_IT = "Put a placeholder such as $KEY in the place of the key."


@frozen
class CurlCredential:
    """The place of a key in a command.

    :ivar place: L{HEADER}, L{QUERY} or L{PATH}, with its name there; of a path, where the key begins.
    :ivar label: what a person is asked for.
    :ivar is_real: whether the command has what looks like a key, and no placeholder for one.
    """

    place: str
    name: str
    found: ApiCredential
    label: str = KEY_LABEL
    is_real: bool = False

    @property
    def form(self) -> str:
        """Return how it is sent, for people."""
        keys = self.found.keys
        if "header" in keys or keys["kind"] == "basic":
            usual = "Basic {key}" if keys["kind"] == "basic" else "{key}"
            return f"in the header {keys.get('header', 'Authorization')}, as: {keys.get('format', usual)}"
        return f"in the parameter {keys['query']}" if "query" in keys else f"in the path, as: {keys['path']}"


def find_credential(request: CurlRequest, path: str, query: Sequence[tuple[str, str]]) -> CurlCredential | None:
    """Find the key of a command; L{None}: it carries none.

    :raises NotImported: it carries several, or where one ends cannot be told.
    """
    found = [*_in_user(request), *_in_headers(request), *_in_query(query), *_in_path(path)]
    if len(found) > 1:
        names = " and ".join(dict.fromkeys(f"its {each.place} ({one_line(each.name, 60)})" for each in found))
        raise NotImported(f"The curl command seems to carry several keys: in {names}.", _SEVERAL)
    return found[0] if found else None


def is_placeholder(text: str) -> bool:
    """Tell whether a value only stands for one that a reader has to put there."""
    return _PLACEHOLDER.fullmatch(text) is not None


def find_placeholders(text: str) -> list[re.Match[str]]:
    """Find what stands for something else in a text."""
    return list(_PLACEHOLDER.finditer(text))


def looks_random(text: str) -> bool:
    """Tell whether a text may hold a key: a long word of letters and digits."""
    words = (each for each in _WORD.findall(text) if len(set(each)) >= _DIFFERENT)
    return any(re.search("[0-9]", each) and re.search("[A-Za-z]", each) for each in words)


def names_secret(text: str) -> bool:
    """Tell whether a name is that of a secret."""
    return _SECRET.search(text) is not None


def _in_user(request: CurlRequest) -> Iterator[CurlCredential]:
    if request.user is None:
        return
    user, colon, password = request.user.partition(":")
    if colon and not password and not find_placeholders(user):
        raise NotImported(
            "The curl command has -u with an empty password, which a credential of the kind basic cannot have.",
            "If the service also takes the key as a token, use -H 'Authorization: Bearer $KEY' instead of -u.",
        )
    is_real = bool(password) and not _stands_for_key(password)
    yield CurlCredential(HEADER, _AUTHORIZATION, ApiCredential({"kind": "basic"}), PAIR_LABEL, is_real)


def _in_headers(request: CurlRequest) -> Iterator[CurlCredential]:
    for name, value in request.headers:
        lower = name.lower()
        if lower in _PLAIN_HEADERS:
            continue
        if lower in ("cookie", "proxy-authorization"):
            raise NotImported(f"The curl command has the header {name}, which a connector cannot send.", _OTHER_WAY)
        if (
            _SECRET.search(name)
            or looks_random(value)
            or any(_SECRET.search(each[0]) for each in find_placeholders(value))
        ):
            yield _read_header(name, value)


_OTHER_WAY = "Look in the documentation for a key in another header, such as Authorization."


def _read_header(name: str, value: str) -> CurlCredential:
    form, is_real = _read_form(name, value)
    if form.lower().startswith("basic "):
        keys = {"kind": "basic", **({} if name.lower() == _AUTHORIZATION else {"header": name})}
        return CurlCredential(HEADER, name.lower(), ApiCredential({**keys}), PAIR_LABEL, is_real)
    found = ApiCredential({**BEARER, "header": name, "format": form})
    return CurlCredential(HEADER, name.lower(), found, is_real=is_real)


def _read_form(name: str, value: str) -> tuple[str, bool]:
    """Return a header's value with C{{key}} in the place of the key, and whether a real one stood there."""
    scheme, _, rest = value.partition(" ")
    rest = rest.strip()
    marked = find_placeholders(value)
    if len(marked) == 1:
        before, after = value[: marked[0].start()], value[marked[0].end() :]
        if looks_random(before) or looks_random(after) or "{" in before + after:
            raise NotImported(f"The header {one_line(name, 60)} holds more than a placeholder for the key.", _MARK_IT)
        return f"{before}{{key}}{after}", False
    if scheme.lower() in _SCHEMES and (rest or name.lower() == _AUTHORIZATION):
        before, key, after = _unwrap(rest)
        if scheme.lower() != "basic" and (" " in key or _ASSIGNED.search(key)):
            raise NotImported(f"Which part of the header {one_line(name, 60)} is the key cannot be told.", _MARK_IT)
        return f"{scheme} {before}{{key}}{after}", bool(key) and not _stands_for_key(key)
    if rest or len(marked) > 1:
        raise NotImported(f"Which part of the header {one_line(name, 60)} is the key cannot be told.", _MARK_IT)
    return "{key}", bool(value) and not _stands_for_key(value)


def _unwrap(text: str) -> tuple[str, str, str]:
    """Return what stands around a key, such as in C{token="…"}, and the key between."""
    found = _NAMED.fullmatch(text)
    return ("", text, "") if found is None else (found[1], found[2], found[3])


def _stands_for_key(text: str) -> bool:
    return bool(find_placeholders(text)) or _DUMMY.fullmatch(text) is not None


def _in_query(query: Sequence[tuple[str, str]]) -> Iterator[CurlCredential]:
    for name, value in query:
        if name.lower() in _SECRET_QUERY or any(_SECRET.search(each[0]) for each in find_placeholders(value)):
            is_real = bool(value) and not _stands_for_key(value)
            yield CurlCredential(QUERY, name, ApiCredential({"kind": "api_key", "query": name}), is_real=is_real)


def _in_path(path: str) -> Iterator[CurlCredential]:
    """Find a placeholder for a key, which is part of the beginning of all paths of the connector."""
    before: list[str] = []
    for segment in path.split("/")[1:]:
        marked = [each for each in find_placeholders(segment) if _SECRET.search(each[0])]
        if marked and any(map(find_placeholders, before)):
            raise NotImported("The path of the URL has a placeholder before that for the key.", "Put the value there.")
        if marked:
            at = marked[0]
            prefix = "/".join(["", *before, f"{segment[: at.start()]}{{key}}{segment[at.end() :]}"])
            yield CurlCredential(PATH, prefix, ApiCredential({"kind": "api_key", "path": prefix}))
            return
        before.append(segment)
