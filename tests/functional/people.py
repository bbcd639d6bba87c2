"""People with accounts, whose browsers reach a daemon's public name on loopback."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import time
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

from attrs import define, evolve

from aileron.client import item_of
from aileron.model.signing import write_statement
from aileron.testing import SigningBrowser
from tests.functional.ports import LOOPBACK

PASSPHRASE = "marmot velvet canyon thirty"
_LISTENS = "0A"


@define
class PublicName:
    """The public name of one daemon.

    :ivar authority: the name and its port, as browsers know them.
    :ivar port: where this daemon serves it.
    :ivar trusted: the certificates that the browsers accept.
    :ivar cookie: the name of the cookie of this daemon's logins, once somebody has signed in.
    """

    authority: str
    port: int
    trusted: ssl.SSLContext
    cookie: str = ""

    @property
    def origin(self) -> str:
        """The origin of the pages."""
        return f"https://{self.authority}"

    def join(self, shown: str) -> SigningBrowser:
        """Set a passphrase by the link that a command has shown, and return the page."""
        [code] = re.findall(rf"{re.escape(self.origin)}/join#([\w-]+)", shown)
        return self.enter(code)

    def enter(self, code: str) -> SigningBrowser:
        """Set a passphrase with the code of a link, and return the page."""
        return self._send_passphrase("/join", {"code": code})

    def sign_in(self, name: str) -> SigningBrowser:
        """Sign in by name and passphrase, and return the page."""
        return self._send_passphrase("/signin/account", {"name": name})

    def _send_passphrase(self, path: str, body: dict[str, str]) -> SigningBrowser:
        page = SigningBrowser.generate("", time.time)
        data = json.dumps({**body, "passphrase": PASSPHRASE, "public_key": page.public_key}).encode()
        status, text, cookie = self.exchange("POST", path, data, {})
        assert status == 200, text
        self.cookie, _, value = cookie.partition(";")[0].partition("=")
        return evolve(page.with_instance(json.loads(text)["instance"]), cookie=value)

    def send(self, page: SigningBrowser, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Send a page's signed request, and return the status and the text."""
        data = b"" if body is None else json.dumps(body).encode()
        return self.exchange(method, path, data, dict(page.headers(self.cookie, method, path, data)))[:2]

    def decide(self, page: SigningBrowser, run: dict[str, Any], approved: bool = True, **more: Any) -> tuple[int, str]:
        """Decide a request with the signature of the page's key, and return the status and the text."""
        decision = {"approved": approved, "digest": run["digest"], **more}
        items = [item_of(run["id"], decision)]
        text, signature = page.sign_text(lambda nonce: write_statement(str(page.instance), nonce, items))
        signed = {**decision, "signed": {"statement": text, "signature": signature}}
        return self.send(page, "POST", f"/v1/action-approvals/{run['id']}/decide", signed)

    def exchange(self, method: str, path: str, data: bytes, headers: dict[str, Any]) -> tuple[int, str, str]:
        """Send a request as a browser does; return the status, the text and the cookie."""
        connection = HTTPSConnection(self.authority, timeout=20, context=self.trusted)
        connection._create_connection = self._connect  # type: ignore[attr-defined]
        fields = {"Host": self.authority, **headers}
        if data:
            fields |= {"Origin": self.origin, "Content-Type": "application/json"}
        try:
            connection.request(method, path, data or None, fields)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace"), answer.headers.get("Set-Cookie", "")
        finally:
            connection.close()

    def _connect(self, _address: object, *_more: object) -> socket.socket:
        return socket.create_connection((LOOPBACK, self.port), 20)


def find_listening(pid: int) -> set[int]:
    """Return the ports at which a process listens."""
    links = (os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink())
    own = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENS and row[9] in own}
