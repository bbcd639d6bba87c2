"""Documents: text, bytes, and one for every id."""

from __future__ import annotations

import json
import re

import mcp.types as t
from mcp.shared.exceptions import MCPError

from .answers import PICTURE, Context

_TEXT, _BINARY, _WATCHED = "test://static-text", "test://static-binary", "test://watched-resource"
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")

_TEXTS = {_TEXT: "This is the content of the static text resource.", _WATCHED: "Watched resource content"}


async def resources(_ctx: Context, _params: t.PaginatedRequestParams | None) -> t.ListResourcesResult:
    """Answer C{resources/list}."""
    kinds = {_TEXT: "text/plain", _BINARY: "image/png", _WATCHED: "text/plain"}
    listed = [t.Resource(uri=uri, name=uri.partition("//")[2], mime_type=kind) for uri, kind in kinds.items()]
    return t.ListResourcesResult(resources=listed)


async def templates(_ctx: Context, _params: t.PaginatedRequestParams | None) -> t.ListResourceTemplatesResult:
    """Answer C{resources/templates/list}."""
    template = t.ResourceTemplate(uri_template="test://template/{id}/data", name="data", mime_type="application/json")
    return t.ListResourceTemplatesResult(resource_templates=[template])


async def read(_ctx: Context, params: t.ReadResourceRequestParams) -> t.ReadResourceResult:
    """Answer C{resources/read}."""
    uri = params.uri
    templated = _TEMPLATE.fullmatch(uri)
    if uri == _BINARY:
        return t.ReadResourceResult(contents=[t.BlobResourceContents(uri=uri, mime_type="image/png", blob=PICTURE)])
    if uri in _TEXTS:
        return _text(uri, "text/plain", _TEXTS[uri])
    if templated is not None:
        return _text(uri, "application/json", json.dumps({"id": templated[1], "data": f"Data for ID: {templated[1]}"}))
    raise MCPError(t.INVALID_PARAMS, "There is no such resource.", {"uri": uri})


async def subscribe(_ctx: Context, _params: t.SubscribeRequestParams) -> t.EmptyResult:
    """Answer C{resources/subscribe}: none of them ever changes."""
    return t.EmptyResult()


async def unsubscribe(_ctx: Context, _params: t.UnsubscribeRequestParams) -> t.EmptyResult:
    """Answer C{resources/unsubscribe}."""
    return t.EmptyResult()


def _text(uri: str, kind: str, text: str) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.TextResourceContents(uri=uri, mime_type=kind, text=text)])
