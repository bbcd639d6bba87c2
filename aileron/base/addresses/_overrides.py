"""Headers and parameters that make a service process another method, path or host than the request line names."""

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
"""Names, in lower case, of headers that make some server or framework process another request than the one sent."""

PARTIAL_HEADERS = frozenset({"if-range", "range", "x-goog-range", "x-ms-range"})
"""Names of headers that request a part of a response.  A search in the part misses text that crosses its boundary."""

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
"""Matches a method override in a field of a form, in a part of a multipart body or in a JSON member."""


def is_overriding_header(name: str) -> bool:
    """Return True if a header overrides the request.  C{_} counts as C{-}, as some servers treat it."""
    return name.lower().replace("_", "-") in OVERRIDING_HEADERS


def is_partial_header(name: str) -> bool:
    """Return True if a header requests a part of a response."""
    return name.lower().replace("_", "-") in PARTIAL_HEADERS


def is_overriding_parameter(name: str, value: str = "") -> bool:
    """Return True if a parameter of a query or form overrides the request's method.

    A framework may drop or replace characters other than letters in a name: PHP reads C{.method} as C{_method}.

    :param value: a parameter C{method} counts only if this is the name of a method, because some APIs have such a
        parameter.
    """
    plain = _NO_LETTER.sub("", name.lower())
    if plain == "method":
        return name.lower() != plain or value.strip().upper() in _METHODS
    return plain in _DISTINCT


def overriding_parameters(query: str) -> Iterator[str]:
    """Yield the names of the parameters in a query or form that override the request's method."""
    for pair in _PAIRS.split(query):
        name, _, value = pair.partition("=")
        if is_overriding_parameter(name := unquote_plus(name), unquote_plus(value)):
            yield name


def overriding_in_body(body: bytes) -> str:
    """Return the first method override in a body of any type, or an empty string if there is none."""
    text = unquote_plus(_ESCAPED.sub(lambda found: chr(int(found[1], 16)), body.decode("latin-1")))
    found = _IN_BODY.search(text)
    return found[0] if found else ""
