"""A double of the transit engine of HashiCorp Vault: it encrypts, binds associated data, and refuses as Vault does."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from aileron.base.blocking import Posted, ServiceReply, ServiceSilent

TOKEN, ENCRYPT_TOKEN = "hvs.canary-of-daemons", "hvs.canary-of-operator"
JWT, SECRET_ID, ROLE_ID = "eyJ.canary.jwt", "canary-secret-id", "role-1"
URL = "https://vault.example.org:8200"
KEY_NAME = "aileron"


class TransitDouble:
    """One server with one transit key.

    :ivar status: the status of every answer, in place of what is asked, or None.
    :ivar replies: whole answers, in place of what is asked, which are used up first.
    :ivar tokens: the operations that each live token may use.
    :ivar log: the path and the headers of each request.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self.replies: list[ServiceReply | ServiceSilent] = []
        self.tokens: dict[str, tuple[str, ...]] = {TOKEN: ("decrypt",), ENCRYPT_TOKEN: ("encrypt",)}
        self.log: list[tuple[str, Mapping[str, str]]] = []
        self._key = AESGCM(os.urandom(32))

    def post(self, request: Posted, seconds: float) -> ServiceReply:
        """Answer as L{aileron.base.blocking.Post} does."""
        assert seconds > 0
        if self.replies:
            self.log.append((request.path, request.headers))
            reply = self.replies.pop(0)
            if isinstance(reply, ServiceSilent):
                raise reply
            return reply
        return self.answer(request.path, request.headers, request.body)

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> ServiceReply:
        """Answer one request."""
        self.log.append((path, headers))
        if self.status is not None:
            return _reply(self.status, {"errors": ["Vault is sealed", headers.get("X-Vault-Token", "")]})
        given = json.loads(body)
        if path.startswith("/v1/auth/"):
            return self._log_in(path, given)
        operation, name = path.removeprefix("/v1/transit/").partition("/")[::2]
        if not path.startswith("/v1/transit/"):
            return _reply(404, {"errors": [f"no handler for route {path}"]})
        if operation not in self.tokens.get(headers.get("X-Vault-Token", ""), ()):
            return _reply(403, {"errors": ["permission denied", headers.get("X-Vault-Token", "")]})
        if name != KEY_NAME:
            return _reply(400, {"errors": ["encryption key not found"]})
        bound = base64.b64decode(given["associated_data"]) + b"|" + base64.b64decode(given["context"])
        if operation == "encrypt":
            nonce = os.urandom(12)
            sealed = nonce + self._key.encrypt(nonce, base64.b64decode(given["plaintext"]), bound)
            return _reply(200, {"data": {"ciphertext": f"vault:v1:{_text(sealed)}", "key_version": 1}})
        data = base64.b64decode(given["ciphertext"].removeprefix("vault:v1:"))
        try:
            return _reply(200, {"data": {"plaintext": _text(self._key.decrypt(data[:12], data[12:], bound))}})
        except InvalidTag:
            return _reply(400, {"errors": ["cipher: message authentication failed"]})

    def _log_in(self, path: str, given: Mapping[str, str]) -> ServiceReply:
        accepted = {
            "/v1/auth/approle/login": {"role_id": ROLE_ID, "secret_id": SECRET_ID},
            "/v1/auth/kubernetes/login": {"role": ROLE_ID, "jwt": JWT},
        }
        if given != accepted.get(path):
            return _reply(400, {"errors": ["invalid role or secret ID"]})
        return _reply(200, {"auth": {"client_token": TOKEN, "lease_duration": 60}})


def page(status: int = 200) -> ServiceReply:
    """Return a page in the place of an answer."""
    return ServiceReply(status, "text/html", b"<html>Maintenance</html>")


def reply(body: Any, status: int = 200) -> ServiceReply:
    """Return an answer with a JSON body."""
    return _reply(status, body)


def _reply(status: int, body: Any) -> ServiceReply:
    return ServiceReply(status, "application/json", json.dumps(body).encode())


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
