"""The pages without data: the shell of every navigation, whose script fetches what is shown, and the landing page."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path

from twisted.web.iweb import IRequest

from aileron.values import ADVICE

from ._parts import STATIC

HTML = b"text/html; charset=utf-8"
_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".webmanifest": b"application/manifest+json",
}
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    b"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


_ADVICE = {kind: [advice.kept, advice.on_page] for kind, advice in ADVICE.items()}


class Shell:
    """The shell and the files that it names, read once."""

    def __init__(self) -> None:
        self._files = {path.name: (_TYPES[path.suffix], path.read_bytes()) for path in _list_shipped()}
        template = (STATIC / "shell.html").read_text(encoding="utf-8")
        self._template = template.replace("{{advice}}", html.escape(json.dumps(_ADVICE)))

    def page(self, request: IRequest, told: Mapping[str, str] | None = None) -> bytes:
        """Draw the shell.

        :param told: what its script is told this once; it takes it out of the document before anything else.
        """
        request.setHeader(b"Content-Type", HTML)
        request.setHeader(b"Content-Security-Policy", _POLICY)
        return self._template.replace("{{told}}", html.escape(json.dumps(told or {}))).encode("utf-8")

    def missing(self, request: IRequest) -> bytes:
        """Draw the same shell where nothing is."""
        request.setResponseCode(404)
        return self.page(request)

    def file(self, request: IRequest, name: str) -> bytes:
        """Serve a script, a style sheet, an icon or the manifest."""
        if name not in self._files:
            return self.missing(request)
        kind, content = self._files[name]
        request.setHeader(b"Content-Type", kind)
        return content


def _list_shipped() -> list[Path]:
    return [path for path in STATIC.iterdir() if path.suffix in _TYPES]


LANDING_POLICY = "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def landing() -> bytes:
    """Serve the same page for every path and every client."""
    return (STATIC / "landing.html").read_bytes()
