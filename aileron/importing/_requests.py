"""Makes the arguments of an operation of OpenAPI: parameters of its path, query and headers, and its body."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from aileron.addresses import is_overriding_header, is_overriding_parameter, is_partial_header
from aileron.manifests import input_schema_problem
from aileron.values import JSON

from ._derive import name_of
from ._description import BODY, GIVEN, HEADER, PATH, QUERY, ApiParameter
from ._files import one_line
from ._references import ApiDocument, Inexpressible, Node, WorkBudget, list_of, table_of, text_of
from ._schemas import flatten, narrow

JSON_TYPE = re.compile(r"application/(?:[a-z0-9.+-]{0,100}\+)?json|text/json|\*/\*")
FORM_TYPE, MULTIPART_TYPE, BYTES_TYPE = (
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/octet-stream",
)

_MOST_LEVELS, _MOST_FOUND = 3, 300
_MOST_INPUT_NAME = 60
_DEEP = "deepObject"
_SEPARATORS = {
    "form": (",", "commas"),
    "simple": (",", "commas"),
    "spaceDelimited": (" ", "spaces"),
    "pipeDelimited": ("|", "vertical bars"),
}
_MOST_JOINED = 2000
_ELEMENTS = {"integer": "-?[0-9]+", "number": "-?[0-9]+(?:[.][0-9]+)?", "boolean": "true|false"}
_IN_PATH = re.compile(r"\{(\+?)([^{}/+]{1,200})(\+?)\}")
_LITERAL = re.compile(r"[A-Za-z0-9_.~!$&'()*+,;=:@/-]+|%[0-9A-Fa-f]{2}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_IGNORED_HEADERS = frozenset({"accept", "authorization", "content-type"})
"""A document's parameters of these names mean nothing: OpenAPI says so."""
_OWN_HEADERS = frozenset(
    "accept-encoding connection content-length cookie expect host keep-alive proxy-authorization proxy-connection te "
    "trailer transfer-encoding upgrade user-agent".split()
)
_SECRETS = ("token", "access_token", "auth_token", "api_key", "apikey", "api-key", "x-api-key", "x-auth-token")
_KEYS = ("idempotency-key", "x-idempotency-key")
_NESTED = ("object", "array", None)
_FOLDED: JSON = {"type": "string"}
_BASE64: JSON = {"type": "string", "maxLength": 1_000_000}


@define
class Arguments:
    """The arguments of one operation, as they are found.

    :ivar reserved: names, in lower case, of the header or query parameter that is the credential's.
    :ivar headers: that are the same in every request.
    :ivar body: the kind of the body.
    """

    document: ApiDocument
    work: WorkBudget
    reserved: frozenset[str]
    found: list[ApiParameter] = field(factory=list, init=False)
    constant: list[tuple[tuple[str, ...], JSON]] = field(factory=list, init=False)
    headers: dict[str, JSON] = field(factory=dict, init=False)
    body: str = field(default="", init=False)
    _unchecked: list[str] = field(factory=list, init=False)
    _left_out: dict[str, list[str]] = field(factory=dict, init=False)

    @property
    def marks(self) -> tuple[str, ...]:
        """Return what could not be derived of them all."""
        left_out = (f"left out, because it {problem}: {', '.join(names)}" for problem, names in self._left_out.items())
        return (*self._unchecked, *left_out)

    def add_parameters(self, *lists: object) -> None:
        """Take in the parameters of a path and of its operation; one of the operation's replaces the path's.

        :raises Inexpressible: one that is required cannot be said.
        """
        there: dict[tuple[str, str], Node] = {}
        for value in (each for given in lists for each in list_of(given)):
            node = self.document.follow(value)
            there[text_of(node.keys.get("name")), text_of(node.keys.get("in"))] = node
        for (name, place), node in there.items():
            required = node.keys.get("required") is True or place == PATH
            try:
                self._add_parameter(name, place, node, required)
            except Inexpressible as problem:
                self.leave_out(name, problem, required)

    def _add_parameter(self, name: str, place: str, node: Node, required: bool) -> None:
        said = text_of(node.keys.get("description"))
        if place == HEADER and name.lower() in _KEYS:
            self.headers[name] = "${effect.uuid}"
            return
        if name.lower() in self.reserved | (_IGNORED_HEADERS if place == HEADER else frozenset()):
            return
        if problem := self._why_none(name, place):
            self._left_out.setdefault(problem, []).append(name)
            return
        if place not in (PATH, QUERY, HEADER) or not name or (place == HEADER and not _HEADER.fullmatch(name)):
            raise Inexpressible("is a cookie" if place == "cookie" else "has no proper name")
        if "schema" not in node.keys:
            raise Inexpressible("is no plain value")
        style = text_of(node.keys.get("style")) or ("form" if place == QUERY else "simple")
        if style not in (*_SEPARATORS, _DEEP):
            raise Inexpressible(f"is written in the style {style[:20]}")
        schema = flatten(self.document, node.keys["schema"], self.work, node.trail)
        members = self._find_object(schema) if place == QUERY else None
        if members is not None:
            self._add_members(name if style == _DEEP else "", members, place, required=required, deep=True)
            return
        explodes = place == QUERY and style == "form" and node.keys.get("explode") is not False
        self.found.append(self._make_flat(name, place, schema, required, said, "" if explodes else style))

    def _why_none(self, name: str, place: str) -> str:
        """Tell why no input becomes a parameter of this name, even if it is required; empty: one may."""
        if is_overriding_parameter(name) or (place == HEADER and is_overriding_header(name)):
            return "makes another request of it than was reviewed"
        if place == HEADER and is_partial_header(name):
            return "asks for a part of an answer, in which no secret can be found"
        if self.reserved and place in (HEADER, QUERY) and name.lower() in _SECRETS:
            return "is a credential, and the connector adds its own"
        return "is a header that only the daemon sets" if place == HEADER and name.lower() in _OWN_HEADERS else ""

    def _make_flat(self, name: str, place: str, schema: Node, required: bool, said: str, style: str) -> ApiParameter:
        """Make a parameter that is a text in the request.

        :param style: how the elements of an array stand behind each other; empty: each is a parameter of its own.
        """
        made = self._make(name, place, (name,), schema.keys, schema.trail, required=required, said=said)
        if made.schema["type"] == "object":
            raise Inexpressible("is an object")
        if made.schema["type"] != "array" or not style:
            return made
        if style == _DEEP:
            return evolve(made, steps=(f"{name}[]",))
        separator, words = _SEPARATORS[style]
        joined, marks = _join(table_of(made.schema.get("items")), separator)
        return evolve(made, schema=joined, description=f"{said} Separate several with {words}.", marks=marks)

    def _find_object(self, node: Node) -> Node | None:
        """Return what has members: a schema itself, or the first of its alternatives that has."""
        if table_of(node.keys.get("properties")):
            return node if node.keys.get("type", "object") == "object" else None
        for each in (each for key in ("anyOf", "oneOf") for each in list_of(node.keys.get(key))):
            found = flatten(self.document, each, self.work, node.trail)
            if table_of(found.keys.get("properties")):
                return found
        return None

    def add_members(self, schema: JSON) -> None:
        """Take in the members of an object that is the body, as JSON.

        :raises Inexpressible: one that is required cannot be said.
        """
        self.body = "json"
        self._add_json(flatten(self.document, schema, self.work), True, "")

    def write_path(self, path: str) -> tuple[str, dict[str, JSON]]:
        """Return a path with the names of inputs, and the key C{slashes}: those that C{+} lets be several segments.

        :raises Inexpressible: it has another, or is none that a connector file can say.
        """
        names = {each.steps[0]: each.name for each in self.found if each.place == PATH}
        for _, name, _ in _IN_PATH.findall(path):
            if name not in names:
                raise Inexpressible(f"its path has {one_line(name, 60)}, which is not described")
        if not path.startswith("/") or _LITERAL.sub("", _IN_PATH.sub("", path)):
            raise Inexpressible("its path holds what no path can")
        several: list[JSON] = [names[name] for before, name, after in _IN_PATH.findall(path) if before or after]
        return _IN_PATH.sub(lambda found: f"{{{names[found[2]]}}}", path), {"slashes": several} if several else {}

    def add_body(self, value: JSON, method: str = "") -> None:
        """Take in the body of a request.

        :raises Inexpressible: it is required, or holds something required, and cannot be said.
        """
        node = self.document.follow(value)
        required = node.keys.get("required") is True
        if method in ("GET", "HEAD"):  # where a body means nothing
            if required:
                raise Inexpressible(f"requires a body, which a {method} has not")
            return
        try:
            self._add_content(table_of(node.keys.get("content")), required, node)
        except Inexpressible as problem:
            self.leave_out("its body", problem, required)

    def _add_content(self, content: Mapping[str, Any], required: bool, node: Node) -> None:
        plain = {name.partition(";")[0].strip().lower(): table_of(each) for name, each in content.items()}
        written = [name for name in plain if JSON_TYPE.fullmatch(name)]
        written.sort(key=lambda name: (name != "application/json", "json-patch" in name))
        chosen = next((name for name in (*written[:1], FORM_TYPE, MULTIPART_TYPE, BYTES_TYPE) if name in plain), None)
        if chosen is None:
            raise Inexpressible(f"is {', '.join(plain) or 'nothing that is described'}"[:200])
        schema = flatten(self.document, plain[chosen].get("schema", {}), self.work, node.trail)
        if chosen == BYTES_TYPE:
            self.body = "file"
            self._add_file("content", (), required, text_of(node.keys.get("description")))
        elif chosen in (FORM_TYPE, MULTIPART_TYPE):
            self.body = "form" if chosen == FORM_TYPE else "multipart"
            styles = {
                name: table_of(each).get("style") for name, each in table_of(plain[chosen].get("encoding")).items()
            }
            deep = frozenset(name for name, style in styles.items() if style == _DEEP)
            self._add_members("", schema, BODY, required=required, deep=deep)
        else:
            self.body = "json"
            if chosen not in ("application/json", "*/*"):
                self.headers["Content-Type"] = chosen
            self._add_json(schema, required, text_of(node.keys.get("description")))

    def _add_json(self, schema: Node, required: bool, said: str) -> None:
        members = table_of(schema.keys.get("properties"))
        if not members and schema.keys.get("type") == "object" and not required and len(schema.keys) == 1:
            return
        if not members:
            self.found.append(self._make("body", BODY, (), schema.keys, schema.trail, required=required, said=said))
            return
        unchecked = [key for key in ("oneOf", "anyOf", "not", "minProperties") if key in schema.keys]
        self._unchecked += [*schema.marks, *(f"`{key}` of its body is not checked" for key in unchecked)]
        for name, value, needed in _members(schema):
            try:
                self.found.append(self._make(name, BODY, (name,), value, schema.trail, required=needed))
            except Inexpressible as problem:
                self.leave_out(name, problem, needed)

    def _add_members(
        self, prefix: str, schema: Node, place: str, *, required: bool, deep: frozenset[str] | bool, levels: int = 0
    ) -> None:
        """Take in the members of an object that is written flat, as C{prefix[member]}."""
        members = _members(schema)
        self._unchecked += schema.marks
        if not members and not required and not schema.keys.get("additionalProperties"):
            return
        if not members:
            raise Inexpressible("has members that are not described")
        for name, value, needed in members:
            wire = f"{prefix}[{name}]" if prefix else name
            nested = deep if isinstance(deep, bool) else name in deep
            try:
                self._add_member(wire, value, schema.trail, place, required and needed, nested, levels)
            except Inexpressible as problem:
                self.leave_out(wire, problem, required and needed)

    def _add_member(
        self, wire: str, value: JSON, trail: frozenset[str], place: str, required: bool, nested: bool, levels: int
    ) -> None:
        inside = flatten(self.document, value, self.work, trail)
        if self.body == "multipart" and inside.keys.get("format") in ("binary", "base64", "byte"):
            self._add_file(wire, (wire,), required, text_of(inside.keys.get("description")))
            return
        members = self._find_object(inside) if nested and levels < _MOST_LEVELS else None
        if members is not None:
            self._add_members(wire, members, place, required=required, deep=True, levels=levels + 1)
            return
        made = self._make(wire, place, (wire,), value, trail, required=required)
        kind, items = made.schema["type"], table_of(made.schema.get("items"))
        if kind == "object" or (kind == "array" and (self.body == "multipart" or items.get("type") in _NESTED)):
            raise Inexpressible("cannot be written flat")
        self.found.append(evolve(made, steps=(f"{wire}[]",)) if kind == "array" and nested else made)

    def _add_file(self, wire: str, steps: tuple[str, ...], required: bool, said: str) -> None:
        content = self._make(wire, GIVEN, steps, _BASE64, frozenset(), required=required, said=f"{said} In base64.")
        self.found.append(content)
        kind = self._make(f"{wire}_type", GIVEN, steps, _FOLDED, frozenset(), required=required, said="Its media type.")
        self.found.append(kind)
        part: dict[str, JSON] = {"media_type": f"${{in.{kind.name}}}", "base64": f"${{in.{content.name}}}"}
        if steps:
            name = self._make(f"{wire}_name", GIVEN, steps, _FOLDED, frozenset(), required=required, said="Its name.")
            self.found.append(name)
            self.constant.append((steps, {"filename": f"${{in.{name.name}}}", **part}))
        else:
            self.constant += [((key,), each) for key, each in part.items()]

    def _make(
        self,
        name: str,
        place: str,
        steps: tuple[str, ...],
        value: JSON,
        trail: frozenset[str],
        *,
        required: bool,
        said: str = "",
    ) -> ApiParameter:
        if len(self.found) >= _MOST_FOUND:
            raise Inexpressible("is one of too many")
        taken = {each.name for each in self.found}
        own = name_of(name, most=_MOST_INPUT_NAME)
        own = name_of(f"{place}_{own}" if own in taken else own, taken, _MOST_INPUT_NAME)
        narrowed = narrow(self.document, value, self.work, trail, usual="object" if place == BODY else "string")
        described = said or text_of(narrowed.schema.get("description"))
        default = table_of(value).get("default")
        if isinstance(default, str | int | float) and default != "" and "default" not in described.lower():
            described = f"{described} Default: {str(default).lower() if isinstance(default, bool) else default}."
        return ApiParameter(own, narrowed.schema, place, steps, required, described.strip(), narrowed.marks)

    def leave_out(self, name: str, problem: Inexpressible, required: bool) -> None:
        """Leave out what cannot be said.

        :raises Inexpressible: it is required.
        """
        if required:
            raise Inexpressible(f"{name} is required and {problem}") from None
        self._left_out.setdefault(str(problem), []).append(name)


def _join(items: Mapping[str, Any], separator: str) -> tuple[Mapping[str, JSON], tuple[str, ...]]:
    """Return the schema of a text whose elements stand behind each other, and what it does not check."""
    options = [re.escape(str(each)) for each in list_of(items.get("enum"))]
    one = "|".join(options) or _ELEMENTS.get(str(items.get("type")), f"[^{separator}]+")
    schema: dict[str, JSON] = {"type": "string", "maxLength": _MOST_JOINED}
    told = {**schema, "pattern": f"^(?:{one})(?:{re.escape(separator)}(?:{one}))*$"}
    if input_schema_problem(told) is None and items.keys() <= {"type", "enum", "description"}:
        return told, ()
    return schema, ("its elements are not checked",)


def _members(schema: Node) -> Sequence[tuple[str, JSON, bool]]:
    """List the members of an object that can be given, and which are required."""
    needed = {each for each in list_of(schema.keys.get("required")) if isinstance(each, str)}
    members = table_of(schema.keys.get("properties")).items()
    return [(name, each, name in needed) for name, each in members if table_of(each).get("readOnly") is not True]
