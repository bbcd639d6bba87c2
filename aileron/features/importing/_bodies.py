"""Makes arguments from the body of a request: JSON, a form, multipart with files, a text, or the bytes of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import define, evolve

from aileron.base.attachments import media_type_of
from aileron.base.json import JSON

from ._arguments import ArgumentList
from ._members import ALTERNATIVES, ObjectMember, find_members
from ._references import Inexpressible, Node, list_of, table_of, text_of
from ._schemas import flatten
from ._styles import DEEP, joined_of, style_of
from .description import BODY, GIVEN

JSON_TYPE = re.compile(r"application/(?:[a-z0-9.+-]{0,100}\+)?json|text/json|\*/\*")
FORM_TYPE, MULTIPART_TYPE, BYTES_TYPE = (
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/octet-stream",
)
_TEXT_TYPE = re.compile(
    r"text/[a-z0-9.+-]{1,80}|application/(?:[a-z0-9.+-]{0,80}\+)?(?:xml|yaml)"
    r"|application/(?:x-)?(?:yaml|ndjson|jsonl|graphql|javascript|sql|json-lines|json-seq)"
)
_BINARY_FORMATS = ("binary", "base64", "byte")
_MOST_LEVELS = 3
_FOLDED: JSON = {"type": "string"}
_BASE64: JSON = {"type": "string", "maxLength": 1_000_000}
_FILES: JSON = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"filename": _FOLDED, "media_type": _FOLDED, "base64": _BASE64},
        "required": ["filename", "media_type", "base64"],
        "additionalProperties": False,
    },
}


@define
class BodyArguments(ArgumentList):
    """The arguments of a request's body."""

    def add_body(self, value: JSON, method: str = "") -> None:
        """Add the arguments of a request's body.

        :param value: the C{requestBody} of OpenAPI.
        :param method: the HTTP method of the request.
        :raises Inexpressible: if the body or a required member of it cannot be expressed, and the body is required.
        """
        node = self.document.follow(value)
        required = node.keys.get("required") is True
        before = len(self.found)
        try:
            self._add_content(table_of(node.keys.get("content")), required, node, method)
        except Inexpressible as problem:
            self.body = ""
            self.leave_out("its body", problem, required)
            return
        needed = any(each.required for each in self.found[before:])
        self.optional_body = bool(self.body) and not required and not needed

    def _add_content(self, content: Mapping[str, Any], required: bool, node: Node, method: str) -> None:
        plain = {name.partition(";")[0].strip().lower(): table_of(each) for name, each in content.items()}
        written = [name for name in plain if JSON_TYPE.fullmatch(name)]
        written.sort(key=lambda name: (name != "application/json", "json-patch" in name, name == "*/*"))
        known = (*written[:1], FORM_TYPE, MULTIPART_TYPE, BYTES_TYPE)
        chosen = next((name for name in known if name in plain), next(iter(plain), ""))
        schema = flatten(self.document, plain.get(chosen, {}).get("schema", {}), self.work, node.trail)
        if not required and "properties" in schema.keys and not _may_hold(schema.keys):
            return
        self._mark_others({name: each for name, each in plain.items() if name != chosen}, chosen, schema, node.trail)
        if method == "HEAD" or (method == "GET" and not written):
            raise Inexpressible(f"is one that a {method} has not")
        said = text_of(node.keys.get("description"))
        if chosen in (FORM_TYPE, MULTIPART_TYPE):
            self.body = "form" if chosen == FORM_TYPE else "multipart"
            self._add_form(schema, table_of(plain[chosen].get("encoding")), required)
        elif written:
            self.body = "json"
            if chosen not in ("application/json", "*/*"):
                self.headers["Content-Type"] = chosen
            self._add_json(schema, required, said)
        else:
            self._add_whole(chosen, schema, required, said)

    def _mark_others(
        self, others: Mapping[str, Mapping[str, Any]], chosen: str, schema: Node, trail: frozenset[str]
    ) -> None:
        """Record which members are left out because only a body of another media type can have them."""
        mine = {each.name for each in find_members(self.document, schema, self.work).found}
        for media_type, content in others.items() if mine else ():
            try:
                node = flatten(self.document, content.get("schema", {}), self.work, trail)
                more = [
                    each.name for each in find_members(self.document, node, self.work).found if each.name not in mine
                ]
            except Inexpressible:
                continue
            if more or _is_file(node.keys, ""):
                self.omit(
                    ", ".join(more) or "its content", f"is only in a body of the type {media_type}, not {chosen}"[:150]
                )

    def _add_whole(self, media_type: str, schema: Node, required: bool, said: str) -> None:
        """Add a body that is a single text or a single file.

        :raises Inexpressible: if the media type is neither a text nor a file.
        """
        if _TEXT_TYPE.fullmatch(media_type):
            self.body = "text"
            self.headers["Content-Type"] = f"{media_type}; charset=utf-8"
            if schema.keys.keys() - {"type", "description", "format", "example"}:
                self.mark(f"its body is a text of the type {media_type}, which is not checked")
            said = f"{said} As {media_type}.".strip()
            self.keep(self.make("body", BODY, (), _FOLDED, required=required, said=said))
        elif media_type_of(media_type) == media_type and not media_type.startswith("multipart/"):
            self.body = "file"
            self._add_file("content", (), required, f"{said} {text_of(schema.keys.get('description'))}".strip())
        else:
            raise Inexpressible(f"is {media_type or 'nothing that is described'}"[:200])

    def add_members(self, schema: JSON) -> None:
        """Add the members of an object that is sent as the JSON body.

        :raises Inexpressible: if a required member cannot be expressed.
        """
        self.body = "json"
        node = flatten(self.document, schema, self.work)
        members = find_members(self.document, node, self.work)
        if members.found:
            self._add_each(members.found, members.marks)
        else:
            self._add_json(node, True, "")

    def _add_json(self, schema: Node, required: bool, said: str) -> None:
        if not table_of(schema.keys.get("properties")):
            self.keep(self.make("body", BODY, (), schema.keys, schema.trail, required=required, said=said))
            return
        members = find_members(self.document, schema, self.work)
        self._add_each(members.found, members.marks)

    def _add_each(self, members: Any, marks: tuple[str, ...]) -> None:
        self.mark(*marks)
        for each in members:
            try:
                self.keep(self.make(each.name, BODY, (each.name,), each.schema, each.trail, required=each.required))
            except Inexpressible as problem:
                self.leave_out(each.name, problem, each.required)

    def _add_form(self, schema: Node, encodings: Mapping[str, Any], required: bool) -> None:
        """Add the members of a form or of a multipart body.

        :raises Inexpressible: if no member is described, or a required member cannot be expressed.
        """
        members = find_members(self.document, schema, self.work)
        self.mark(*members.marks)
        if not members.found:
            raise Inexpressible("has members that are not described")
        for each in members.found:
            try:
                self._add_field(each, table_of(encodings.get(each.name)), required and each.required)
            except Inexpressible as problem:
                self.leave_out(each.name, problem, required and each.required)

    def _add_field(self, member: ObjectMember, encoding: Mapping[str, Any], required: bool) -> None:
        node, name = self._only(flatten(self.document, member.schema, self.work, member.trail)), member.name
        deep = encoding.get("style") == DEEP
        if self.body == "multipart" and self._add_part(name, node, text_of(encoding.get("contentType")), required):
            return
        if deep and self.find_object(node) is not None:
            self.add_flat(name, node, BODY, required=required)
            return
        made = self.make(name, BODY, (name,), member.schema, member.trail, required=required)
        kind, items = made.schema["type"], table_of(made.schema.get("items"))
        if kind == "object" or (kind == "array" and items.get("type") in ("object", "array", None)):
            raise Inexpressible("cannot be written flat")
        if kind == "array" and deep:
            made = evolve(made, steps=(f"{name}[]",))
        elif kind == "array" and self.body == "form" and {"style", "explode"} & encoding.keys():
            style, explode = style_of({"style": "form", **encoding}, "query")
            if joined := joined_of(name, style, made.schema, explode=explode):
                self.joined[made.name] = joined
        self.keep(made)

    def _add_part(self, name: str, node: Node, encoded_as: str, required: bool) -> bool:
        """Add a multipart part that is a file, several files or JSON; return False if the part is text instead.

        :raises Inexpressible: if the part cannot be expressed.
        """
        said = text_of(node.keys.get("description"))
        if _is_file(node.keys, encoded_as):
            self._add_file(name, (name,), required, said)
            return True
        items = self._only(flatten(self.document, node.keys.get("items", {}), self.work, node.trail))
        kind = node.keys.get("type") or ("object" if "properties" in node.keys else "")
        if kind == "array" and _is_file(items.keys, encoded_as):
            made = self.make(name, GIVEN, (name,), _FILES, required=required, said=f"{said} In base64.".strip())
            self.constant.append(((name,), {"files": f"${{in.{made.name}}}"}))
        elif kind == "object" or (kind == "array" and items.keys.get("type") in ("object", "array")):
            made = self.make(name, GIVEN, (name,), node.keys, node.trail, required=required, said=said)
            self.constant.append(((name,), {"json": f"${{in.{made.name}}}"}))
        else:
            return False
        self.keep(made)
        return True

    def _add_file(self, wire: str, steps: tuple[str, ...], required: bool, said: str) -> None:
        content = self.make(wire, GIVEN, steps, _BASE64, required=required, said=f"{said} In base64.".strip())
        self.keep(content)
        kind = self.make(f"{wire}_type", GIVEN, steps, _FOLDED, required=required, said="Its media type.")
        self.keep(kind)
        part: dict[str, JSON] = {"media_type": f"${{in.{kind.name}}}", "base64": f"${{in.{content.name}}}"}
        if steps:
            name = self.make(f"{wire}_name", GIVEN, steps, _FOLDED, required=required, said="Its name.")
            self.keep(name)
            self.constant.append((steps, {"filename": f"${{in.{name.name}}}", **part}))
        else:
            self.constant += [((key,), each) for key, each in part.items()]

    def find_object(self, node: Node) -> Node | None:
        """Return the node if it is an object and it or one of its alternatives describes members, else None."""
        if node.keys.get("type", "object") != "object":
            return None
        return node if find_members(self.document, node, self.work).found else None

    def add_flat(self, prefix: str, schema: Node, place: str, *, required: bool, levels: int = _MOST_LEVELS) -> None:
        """Add the members of an object that is sent flat: as C{prefix[member]}, or by name if C{prefix} is empty.

        :param levels: how many levels of objects inside are sent flat too.
        :raises Inexpressible: if a required member cannot be expressed.
        """
        members = find_members(self.document, schema, self.work)
        self.mark(*members.marks)
        for each in members.found:
            wire = f"{prefix}[{each.name}]" if prefix else each.name
            try:
                self._add_flat_member(wire, each, place, required and each.required, levels if prefix else 0)
            except Inexpressible as problem:
                self.leave_out(wire, problem, required and each.required)

    def _add_flat_member(self, wire: str, member: ObjectMember, place: str, required: bool, levels: int) -> None:
        inside = flatten(self.document, member.schema, self.work, member.trail)
        if levels and self.find_object(inside) is not None:
            self.add_flat(wire, inside, place, required=required, levels=levels - 1)
            return
        made = self.make(wire, place, (wire,), member.schema, member.trail, required=required)
        kind, items = made.schema["type"], table_of(made.schema.get("items"))
        if kind == "object" or (kind == "array" and items.get("type") in ("object", "array", None)):
            raise Inexpressible("cannot be written flat")
        self.keep(evolve(made, steps=(f"{wire}[]",)) if kind == "array" and levels else made)

    def _only(self, node: Node) -> Node:
        """Return the only non-null alternative of a schema without a C{type}. In any other case return the schema.

        :raises Inexpressible: if the alternative cannot be followed.
        """
        given = [each for key in ALTERNATIVES for each in list_of(node.keys.get(key)) if each != {"type": "null"}]
        if len(given) != 1 or "type" in node.keys:
            return node
        return flatten(self.document, given[0], self.work, node.trail)


def _may_hold(keys: Mapping[str, Any]) -> bool:
    """Return whether an object's schema allows any member."""
    return bool(keys["properties"] or keys.get("additionalProperties")) or any(key in keys for key in ALTERNATIVES)


def _is_file(keys: Mapping[str, Any], encoded_as: str) -> bool:
    """Return whether a schema describes a file.

    :param encoded_as: the content type that the part's encoding declares; empty if none.
    """
    kind, media_type = keys.get("type"), text_of(keys.get("contentMediaType")) or encoded_as
    if kind not in (None, "string", ["string", "null"]) or {"properties", "items", "enum", *ALTERNATIVES} & keys.keys():
        return False
    plain = media_type.partition(",")[0].partition(";")[0].strip().lower()
    is_text = not plain or plain == "text/plain" or JSON_TYPE.fullmatch(plain) is not None
    return keys.get("format") in _BINARY_FORMATS or not is_text
