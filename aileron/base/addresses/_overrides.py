"""Headers and parameters by which a service reads another method, path or part than the request line says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

OVERRIDING_HEADERS = frozenset(
    "base-url forwarded http-method-override method-override request-uri x-accel-redirect x-base-url "
    "x-envoy-original-host x-envoy-original-path x-forwarded-host x-forwarded-path x-forwarded-prefix "
    "x-forwarded-server x-forwarded-uri x-forwarded-url x-host x-http-host-override x-http-method "
    "x-http-method-override x-method x-method-override x-original-host x-original-uri x-original-url x-proxy-url "
    "x-rewrite-uri x-rewrite-url".split()
)
"""Names of headers that make another request of one, for some server or framework: in lower case."""

PARTIAL_HEADERS = frozenset({"if-range", "range", "x-goog-range", "x-ms-range"})
"""Names of headers that ask for a part of an answer: what is searched for in a part is not found if it is cut."""

_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
_OVERRIDING = frozenset({"httpmethod", "methodoverride", *(each.replace("-", "") for each in OVERRIDING_HEADERS)})
_DISTINCT = frozenset(each for each in _OVERRIDING if "method" in each)
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_PAIRS = re.compile("[&;]")
_ESCAPED = re.compile(r"\\u00([0-9A-Fa-f]{2})")
_IN_BODY = re.compile(
    r"(?<![a-z0-9])(?:[._\[]method|_?(?:x[-_])?(?:http[-_]?method|method[-_]override)(?:[-_]override)?)"
    r"(?=[\"'=\]:;\s]|\Z)"
    r"|(?:^|[&;])method=(?:delete|patch|put)\b",
    re.IGNORECASE,
)
"""As a field of a form, of a part, or a member of JSON."""


def is_overriding_header(name: str) -> bool:
    """Tell whether a header makes another request of one; to some servers C{_} is the same as C{-}."""
    return name.lower().replace("_", "-") in OVERRIDING_HEADERS


def is_partial_header(name: str) -> bool:
    """Tell whether a header asks for a part of an answer."""
    return name.lower().replace("_", "-") in PARTIAL_HEADERS


def is_overriding_parameter(name: str, value: str = "") -> bool:
    """Tell whether a parameter of a query or a form makes another request of one.

    A framework may cut or replace what is no letter in a name: PHP reads C{.method} as C{_method}.

    :param value: C{method} counts only with the name of a method as its value, as some APIs have a parameter of it.
    """
    plain = _NO_LETTER.sub("", name.lower())
    if plain == "method":
        return name.lower() != plain or value.strip().upper() in _METHODS
    return plain in _DISTINCT


def overriding_parameters(query: str) -> Iterator[str]:
    """Yield the names of the parameters of a query, or of a form, that make another request of one."""
    for pair in _PAIRS.split(query):
        name, _, value = pair.partition("=")
        if is_overriding_parameter(name := unquote_plus(name), unquote_plus(value)):
            yield name


def overriding_in_body(body: bytes) -> str:
    """Return a name in a body, of whatever type, that a framework reads as another method; empty: there is none."""
    text = unquote_plus(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), body.decode("latin-1")))
    found = _IN_BODY.search(text)
    return found[0] if found else ""
