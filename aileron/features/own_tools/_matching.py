"""Matches requests with the routes and operations that a connector declares, and reads the operations' inputs back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

from attrs import define, field, frozen

from aileron.base.json import JSON
from aileron.model.own_tools import ANY_METHOD, RequestTemplate, ToolRoute
from aileron.model.titles import REFERENCE

_EACH = frozenset({"each", "as"})
_EFFECT = re.compile(r"\$\{effect\.[a-z_]+\}")


@frozen
class OperationMatch:
    """A declared operation whose request was sent, and its inputs."""

    template: RequestTemplate
    inputs: Mapping[str, JSON]


@frozen
class Content:
    """The body of a request as far as it can be compared.

    :ivar kind: C{json}, C{form}, C{none} for no body, or empty for any other body.
    :ivar value: the JSON value, or the form's parameters as pairs.
    """

    kind: str
    value: JSON = None


def matches_route(routes: Iterable[ToolRoute], method: str, segments: Sequence[str]) -> bool:
    """Return whether one of the routes has this method and these segments."""
    return any(each.method in (method, ANY_METHOD) and _fits(each.segments, segments) for each in routes)


def resembles_route(routes: Iterable[ToolRoute], method: str, resources: Iterable[Sequence[str]]) -> bool:
    """Return whether a server could take a request for one of the routes. C{HEAD} counts as C{GET}.

    :param resources: see L{RequestTarget.resources<aileron.features.own_tools._target.RequestTarget.resources>}.
    """
    asked = "GET" if method == "HEAD" else method
    declared = (each.segments for each in routes if each.method in (asked, ANY_METHOD))
    lower = [tuple(part and part.casefold() for part in segments) for segments in declared]
    return any(_fits(segments, each) for each in resources for segments in lower)


def _fits(declared: Sequence[str | None], segments: Sequence[str]) -> bool:
    if len(declared) != len(segments):
        return False
    return all(want == have or (want is None and have) for want, have in zip(declared, segments, strict=True))


def find_operations(
    templates: Iterable[RequestTemplate], host: str, method: str, segments: Sequence[str]
) -> list[OperationMatch]:
    """Return the operations with this method and path, and the inputs that are in the path."""
    asked = "GET" if method == "HEAD" else method
    found = []
    for each in templates:
        if each.host == host and each.method == asked and len(each.segments) == len(segments):
            reader = _InputReader()
            if all(map(reader.read_segment, each.segments, segments)):
                found.append(OperationMatch(each, reader.inputs))
    return found


def find_match(
    matches: Iterable[OperationMatch], parameters: Sequence[tuple[str, str]], content: Content
) -> OperationMatch | None:
    """Return the operation whose whole request was sent, with all its inputs, or None.

    If several operations match, return the one with the most literal parts. Among equals, return the one whose body
    lacks the fewest members. If that does not decide either, return None.
    """
    found = []
    for each in matches:
        reader = _InputReader(dict(each.inputs))
        if reader.read_parameters(each.template.query, parameters) and _read_content(reader, each.template, content):
            literal = sum("${" not in part for part in each.template.segments)
            rank = (literal, reader.literals, -reader.missing)
            found.append((rank, OperationMatch(each.template, reader.inputs)))
    found.sort(key=lambda each: each[0], reverse=True)
    if not found or (len(found) > 1 and found[0][0] == found[1][0]):
        return None
    return found[0][1]


def _read_content(reader: _InputReader, template: RequestTemplate, content: Content) -> bool:
    if not template.body_kind or content.kind == "none":
        return not template.body_kind and content.kind == "none"
    if template.body_kind != content.kind:
        return False
    if content.kind == "json":
        return reader.read_value(template.body, content.value)
    pairs = [(str(each[0]), str(each[1])) for each in content.value]  # type: ignore[index,union-attr]
    return isinstance(template.body, Mapping) and reader.read_parameters(template.body, pairs)


def _split_lone(template: str) -> tuple[str, str, str] | None:
    """Return the text before a template's only reference to an input, the input's name and the text after it.

    Return None if the template has no reference or several.
    """
    pieces = REFERENCE.split(template)
    return (pieces[0], pieces[1], pieces[2]) if len(pieces) == 3 else None


@define
class _InputReader:
    """Reads inputs back from the parts of a request. Each method returns False if a part does not match.

    :ivar literals: the number of literal values that matched.
    :ivar missing: the number of members of a JSON body that were not sent.
    """

    inputs: dict[str, JSON] = field(factory=dict)
    literals: int = field(default=0, init=False)
    missing: int = field(default=0, init=False)

    def read_segment(self, template: str, segment: str) -> bool:
        """Match one segment of a path, decoded."""
        lone = _split_lone(template)
        if lone is None:
            return "${" not in template and unquote(template) == segment
        before, name, after = (unquote(lone[0]), lone[1], unquote(lone[2]))
        inside = len(segment) - len(before) - len(after)
        if "${" in before + after or inside < 1 or not (segment.startswith(before) and segment.endswith(after)):
            return False
        return self._bind(name, segment[len(before) : len(before) + inside])

    def read_parameters(self, templates: Mapping[str, JSON], pairs: Sequence[tuple[str, str]]) -> bool:
        """Match the parameters of a query or form: all that were sent are declared, and all literal ones were sent."""
        sent = dict(pairs)
        if len(sent) < len(pairs) or not all(name in templates for name in sent):
            return False
        for name, template in templates.items():
            reference = template if isinstance(template, str) and REFERENCE.fullmatch(template) else None
            if name not in sent:
                if reference is None:
                    return False
            elif reference is None:
                if "${" in str(template) or isinstance(template, list | dict | bool) or str(template) != sent[name]:
                    return False
                self.literals += 1
            elif not self._bind(REFERENCE.sub(r"\1", reference), sent[name]):
                return False
        return True

    def read_value(self, template: JSON, value: JSON) -> bool:
        """Match a JSON value: every member is declared, and only an input or a mark of the effect may be missing."""
        if isinstance(template, str) and "${" in template:
            return self._read_text(template, value)
        if isinstance(template, Mapping):
            return self._read_members(template, value)
        if isinstance(template, list | tuple):
            if not isinstance(value, list) or len(value) != len(template):
                return False
            return all(map(self.read_value, template, value))
        self.literals += 1
        return _same(template, value)

    def _read_members(self, template: Mapping[str, JSON], value: JSON) -> bool:
        if template.keys() == _EACH or not isinstance(value, Mapping):
            return False
        # guard of own tools: nothing that is sent is missing from what is shown of it
        #    -> features.own_tools.test_recognition.OperationTests.test_further_members
        if not all(name in template for name in value):
            return False
        for name, part in template.items():
            if name not in value:
                if not (isinstance(part, str) and (_names_input(part) or _EFFECT.fullmatch(part))):
                    return False
                self.missing += 1
            elif not self.read_value(part, value[name]):
                return False
        return True

    def _read_text(self, template: str, value: JSON) -> bool:
        name = _names_input(template)
        is_mark_left_out = name and not REFERENCE.fullmatch(template)
        return bool(name) and (isinstance(value, str) or not is_mark_left_out) and self._bind(name, value)

    def _bind(self, name: str, value: JSON) -> bool:
        return _same(self.inputs.setdefault(name, value), value)


def _names_input(template: str) -> str:
    """Return the name of the input that a template is, or an empty text if it is anything else.

    A mark with the effect's key after the input does not count: a tool does not send it.
    """
    lone = _split_lone(template)
    if lone is None or lone[0] or (lone[2] and "${effect." not in lone[2]):
        return ""
    return lone[1]


def _same(one: JSON, other: JSON) -> bool:
    """Return whether two JSON values are equal, also in their types: true is not 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and one == other
