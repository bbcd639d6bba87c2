"""A local service that answers with pictures, sound and documents; and the connector and actions that ask it."""

import base64
import json
import struct
import zlib
from collections.abc import Mapping

import attrs
from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.functional.loopback import LoopbackSite
from tests.functional.reactor import IKitReactor

CONNECTOR = "local://me/gallery"
CAPTION, NOTES = "A red square.", "Seen on a Tuesday.\n"
OPERATIONS = ("picture", "sound", "notes", "all")

_SIDE, _SAMPLES = 32, 800
_CONNECTOR = """\
[connector]
name = "local://me/gallery"
version = "1.0.0"
base_url = {{ default = "{url}", bindable = false }}
hosts = ["{address}"]
private_network = true
"""
_OPERATION = """
[operations.{name}]
method = "GET"
path = "/{name}"
effect = "read"
"""
_FILE = 'answer = "file"\n'
_ALL = """\
result.caption = "caption"
result.picture = { media_type = "image/png", base64 = "picture" }
result.notes = { media_type = "text/plain", text = "notes" }
"""
_ACTION = """\
+++
name = "{name}"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/gallery"
version = "1.0.0"
capabilities = ["{operation}"]

[[execute]]
id = "look"
connector = "local://me/gallery"
op = "{operation}"
inputs = {{}}

[approval]
required = {gated}
+++
# {name}

Shows what hangs in the gallery.
"""


def picture() -> bytes:
    """A red square as PNG."""
    rows = (b"\0" + b"\xff\x00\x00" * _SIDE) * _SIDE
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, chunks))


def sound() -> bytes:
    """A tenth of a second of silence as WAV."""
    samples = bytes([128] * _SAMPLES)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    data = b"WAVE" + form + struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI", b"RIFF", len(data)) + data


def _chunk(chunk: tuple[bytes, bytes]) -> bytes:
    name, data = chunk
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


class _Rooms(Resource):
    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        everything = {"caption": CAPTION, "picture": base64.b64encode(picture()).decode(), "notes": NOTES}
        self._rooms: Mapping[bytes, tuple[str, bytes]] = {
            b"/picture": ("image/png", picture()),
            b"/sound": ("audio/wav", sound()),
            b"/notes": ("text/plain; charset=utf-8", NOTES.encode()),
            b"/all": ("application/json", json.dumps(everything).encode()),
        }

    def render_GET(self, request: Request) -> bytes:
        """What hangs there."""
        media_type, content = self._rooms[request.path]
        request.setHeader("Content-Type", media_type)
        return content


@attrs.define
class Gallery:
    """The running service."""

    _site: LoopbackSite

    @classmethod
    def listen(cls, reactor: IKitReactor) -> "Gallery":
        """Start to listen."""
        return cls(LoopbackSite.listen(reactor, _Rooms()))

    async def stop(self) -> None:
        """Close it."""
        await self._site.stop()

    def connector(self) -> str:
        """The file of the connector to it."""
        address = self._site.url.removeprefix("http://")
        operations = [_OPERATION.format(name=name) + (_ALL if name == "all" else _FILE) for name in OPERATIONS]
        return _CONNECTOR.format(url=self._site.url, address=address) + "".join(operations)


def looking(name: str, operation: str, *, gated: bool = False) -> str:
    """The file of an action that looks at one room."""
    return _ACTION.format(name=name, operation=operation, gated="true" if gated else "false")
