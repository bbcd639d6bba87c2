"""Derives from OpenAPI styles how arrays and objects are written in a path, a query, a header or a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from aileron.base.json import JSON

from ._references import Inexpressible, table_of
from .description import QUERY

DEEP = "deepObject"
_SEPARATORS = {"form": ",", "simple": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_NESTED = ("array", "object", None)


def style_of(about: Mapping[str, Any], place: str) -> tuple[str, bool]:
    """Return the style of a parameter, and whether it is exploded: each part is sent separately.

    :raises Inexpressible: if the style is unknown.
    """
    style = about.get("style") or ("form" if place == QUERY else "simple")
    if style not in (*_SEPARATORS, DEEP, "label", "matrix"):
        raise Inexpressible(f"is written in the style {str(style)[:20]}")
    explode = about.get("explode")
    return style, explode if isinstance(explode, bool) else style == "form"


def joined_of(name: str, style: str, schema: Mapping[str, Any], *, explode: bool) -> dict[str, JSON] | None:
    """Return how the parts of a parameter are joined, or None if it has no parts or each part is sent separately.

    :param schema: the schema of the parameter's input.
    :raises Inexpressible: if the parts have parts of their own, or the members of an object are not described.
    """
    kind = schema.get("type")
    if kind not in ("array", "object"):
        return {"before": _before(name, style), "between": ","} if style in ("label", "matrix") else None
    if kind == "array" and explode and style in ("form", "spaceDelimited", "pipeDelimited"):
        return None
    if style == DEEP or (style == "form" and explode):
        raise Inexpressible("is an object whose members are not described")
    inside = [table_of(schema.get("items"))] if kind == "array" else [*table_of(schema.get("properties")).values()]
    if any(each.get("type") in _NESTED[:2] or "properties" in each or "items" in each for each in inside):
        raise Inexpressible("has parts that have parts of their own")
    return _join(name, style, is_object=kind == "object", explode=explode)


def _join(name: str, style: str, *, is_object: bool, explode: bool) -> dict[str, JSON]:
    separator = _SEPARATORS.get(style, ",")
    before, between, pair = _before(name, style), separator, separator
    if explode:
        pair = "="
        between = {"label": ".", "matrix": ";" if is_object else before}.get(style, separator)
        before = ";" if style == "matrix" and is_object else before
    found: dict[str, JSON] = {"before": before, "between": between, "pair": pair if is_object else ""}
    return {key: each for key, each in found.items() if each}


def _before(name: str, style: str) -> str:
    return {"label": ".", "matrix": f";{quote(name, safe='')}="}.get(style, "")
