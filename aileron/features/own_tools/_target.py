"""Reads the target of a tool's request strictly: every segment and parameter has one meaning, or it is refused."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus, unquote_to_bytes

from attrs import frozen

_PATH = re.compile(r"/(?:[/A-Za-z0-9._~!$&'()*+,=:@-]|%[0-9A-Fa-f]{2})*")
_QUERY = re.compile(r"(?:[!$&-;=?-\[\]-_a-~]|%[0-9A-Fa-f]{2})*")
_TWICE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNCLEAR = re.compile(r"[\x00-\x1f\x7f-\x9f\\\u2028\u2029]")
_MOST_CHARACTERS = 8192
_MOST_PARAMETERS = 200


class Unclear(ValueError):
    """The error for a request that servers could read in different ways.

    The message is a sentence without its values.
    """


@frozen
class RequestTarget:
    """The target of a request.

    :ivar segments: the segments of the path, each decoded once. The last one is empty if the path ends in a slash.
    :ivar parameters: the parameters of the query, decoded, in order.
    :ivar is_encoded: True if the path was sent with encoded characters.
    """

    segments: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    is_encoded: bool = False

    @property
    def path(self) -> str:
        """The path, decoded, for display. A slash in a segment looks like one between segments."""
        return "/" + "/".join(self.segments)

    @property
    def resources(self) -> frozenset[tuple[str, ...]]:
        """The paths under which a server may look for the resource, as segments in lower case.

        A slash at the end is ignored. The paths are given both with an encoded slash as part of its segment and as a
        separator, and both with and without a format at the end, such as C{.json}.
        """
        whole = self.segments[:-1] if len(self.segments) > 1 and not self.segments[-1] else self.segments
        segments = (*whole[:-1], whole[-1].removesuffix("/"))
        paths = {tuple(map(str.casefold, each)) for each in (segments, "/".join(segments).split("/"))}
        return frozenset(paths | {(*each[:-1], each[-1].rpartition(".")[0] or each[-1]) for each in paths})


def read_target(target: str) -> RequestTarget:
    """Parse the target of a request.

    :raises Unclear: if its path has empty, dot or matrix segments, or is encoded twice or wrongly.
    """
    path, mark, query = target.partition("?")
    if len(target) > _MOST_CHARACTERS or not _PATH.fullmatch(path) or not _QUERY.fullmatch(query):
        raise Unclear("The URL is too long, or has characters that must be encoded.")
    segments = tuple(_decode(each) for each in path[1:].split("/"))
    # guard of own tools: no path has two meanings -> features.own_tools.test_recognition.PathTests.test_unclear
    if "" in segments[:-1]:
        raise Unclear("The path of the URL has an empty segment.")
    pieces = query.split("&") if mark else []
    if len(pieces) > _MOST_PARAMETERS:
        raise Unclear(f"The URL has more than {_MOST_PARAMETERS} parameters.")
    pairs = (each.partition("=") for each in pieces if each)
    parameters = tuple((unquote_plus(name), unquote_plus(value)) for name, _, value in pairs)
    return RequestTarget(segments, parameters, "%" in path)


def _decode(segment: str) -> str:
    """Decode a segment of a path once.

    :raises Unclear: if it could be read differently.
    """
    try:
        text = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise Unclear("The path of the URL is not UTF-8.") from None
    if _UNCLEAR.search(text):
        raise Unclear("The path of the URL has a control character or a backslash.")
    # guard of own tools: no path changes when it is decoded twice
    #    -> features.own_tools.test_recognition.PathTests.test_unclear
    if _TWICE.search(text):
        raise Unclear("The path of the URL is encoded twice.")
    # guard of own tools: no path is resolved to another -> features.own_tools.test_recognition.PathTests.test_unclear
    if any(piece.partition(";")[0] in (".", "..") for piece in text.split("/")):
        raise Unclear("The path of the URL has a dot segment.")
    return text
