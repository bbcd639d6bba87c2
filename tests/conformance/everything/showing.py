"""Tools that answer with every kind of content."""

from __future__ import annotations

import mcp.types as t

from .answers import SOUND, Context, ToolAnswer, Tools, embedded, image, result


async def _text(_ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    return result("This is a simple text response for testing.")


async def _error(_ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    return result("This tool intentionally returns an error for testing", is_error=True)


async def _image(_ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    return result(image())


async def _audio(_ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    return result(t.AudioContent(data=SOUND, mime_type="audio/wav"))


async def _embedded(_ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    return result(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))


async def _mixed(_ctx: Context, _params: t.CallToolRequestParams) -> ToolAnswer:
    document = embedded("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
    return result("Multiple content types test:", image(), document)


async def _region(_ctx: Context, params: t.CallToolRequestParams) -> ToolAnswer:
    return result(f"region={params.arguments}")


SHOWING: Tools = {
    "test_simple_text": _text,
    "test_error_handling": _error,
    "test_image_content": _image,
    "test_audio_content": _audio,
    "test_embedded_resource": _embedded,
    "test_multiple_content_types": _mixed,
    "test_x_mcp_header": _region,
}
