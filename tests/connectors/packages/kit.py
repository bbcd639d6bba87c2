"""Archives and requests as npm, twine and cargo make them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

from aileron.connectors.packages import UploadRequest

BOUNDARY = "aa8ef969a86d4780ba98d4bbdab1fc56"


def tar(files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], *others: tarfile.TarInfo) -> bytes:
    """Return a tar file, without compression."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items() if isinstance(files, Mapping) else files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for each in others:
            archive.addfile(each)
    return buffer.getvalue()


def targz(files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], *others: tarfile.TarInfo) -> bytes:
    """Return a tar file in gzip."""
    return gzip.compress(tar(files, *others), mtime=0)


def wheel(files: Mapping[str, bytes]) -> bytes:
    """Return a zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def npm_package(name: str = "@acme/app", version: str = "1.3.0", more: Mapping[str, bytes] | None = None) -> bytes:
    """Return an archive of npm."""
    manifest = json.dumps({"name": name, "version": version}).encode()
    return targz({"package/package.json": manifest, **(more or {"package/index.js": b"one\n"})})


def npm_body(content: bytes, name: str = "@acme/app", version: str = "1.3.0", **more: Any) -> dict[str, Any]:
    """Return the JSON by which npm publishes."""
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    dist = {"integrity": f"sha512-{digest}", "shasum": hashlib.sha1(content).hexdigest()}
    data = base64.b64encode(content).decode()
    attachment = {"content_type": "application/octet-stream", "data": data, "length": len(content)}
    return {
        "_id": name,
        "name": name,
        "dist-tags": {"next": version},
        "versions": {version: {"name": name, "version": version, "dist": dist}},
        "access": None,
        "_attachments": {f"{name}-{version}.tgz": attachment},
        **more,
    }


def npm_request(body: Any, target: str = "/@acme%2fapp", method: str = "PUT") -> UploadRequest:
    """Return a request of npm."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return UploadRequest(method, target, (("Content-Type", "application/json"),), content)


def twine_parts(content: bytes, file: str, **more: str) -> list[tuple[str, str | None, bytes]]:
    """Return the parts of a form by which twine uploads."""
    given = {
        ":action": "file_upload",
        "protocol_version": "1",
        "name": "acme-app",
        "version": "1.3.0",
        "filetype": "bdist_wheel" if file.endswith(".whl") else "sdist",
        "sha256_digest": hashlib.sha256(content).hexdigest(),
        **more,
    }
    parts: list[tuple[str, str | None, bytes]] = [(name, None, value.encode()) for name, value in given.items()]
    return [*parts, ("content", file, content)]


def twine_request(parts: Iterable[tuple[str, str | None, bytes]], end: bytes = b"--\r\n") -> UploadRequest:
    """Return a request of twine."""
    mark = f"--{BOUNDARY}".encode()
    body = b""
    for name, file, content in parts:
        named = "" if file is None else f'; filename="{file}"'
        head = f'\r\nContent-Disposition: form-data; name="{name}"{named}\r\n'
        if file is not None:
            head += "Content-Type: application/octet-stream\r\n"
        body += mark + head.encode() + b"\r\n" + content + b"\r\n"
    headers = (("Content-Type", f"multipart/form-data; boundary={BOUNDARY}"),)
    return UploadRequest("POST", "/legacy/", headers, body + mark + end)


def cargo_request(content: bytes, rest: bytes = b"", target: str = "/api/v1/crates/new", **more: Any) -> UploadRequest:
    """Return a request of cargo."""
    text = json.dumps({"name": "acme-app", "vers": "1.3.0", "deps": [], **more}).encode()
    body = b"".join(len(each).to_bytes(4, "little") + each for each in (text, content))
    return UploadRequest("PUT", target, (), body + rest)
