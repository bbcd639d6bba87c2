"""Asks the transit engine of HashiCorp Vault or OpenBao to encrypt and decrypt the secret of one vault.

Nothing that the server sends is repeated in a message, because a server could send back a token or a secret.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from aileron.base.blocking import Post, Posted, ServiceSilent
from aileron.base.json import JSON, canonical, loads_strict
from aileron.model.errors import AileronError, Forbidden, InvalidRequest, NetworkError

from .secret_file import read_secret
from .settings import TransitLogin, TransitSettings

ANSWER_SECONDS = 5.0
"""The limit for one request."""

SECRET_BYTES = 32

_TAG = "aileron.vault.transit.v1"
_OK, _FORBIDDEN, _MISSING, _REDIRECTS = 200, 403, 404, range(300, 400)
_REFUSALS = (400, _FORBIDDEN, _MISSING)
_MOST_TOKEN_CHARACTERS = 16 * 1024
_AWAY: Mapping[int, str] = {
    412: "is not up to date yet",
    429: "is busy or on standby",
    472: "is a disaster recovery secondary",
    473: "is on standby",
    500: "has an internal error",
    502: "is not reached by its proxy",
    503: "is sealed or in maintenance",
    504: "is not reached by its proxy",
}


@frozen
class TransitClient:
    """The client of one server, for one of our vaults.

    :ivar vault: the ID of our vault, to which each ciphertext is bound.
    :ivar post: sends the requests.
    """

    settings: TransitSettings
    vault: str
    post: Post = field(repr=False)

    def log_in(self) -> str:
        """Return a token, from the file or by a login.

        :raises NetworkError: if there is none now.
        :raises Forbidden, InvalidRequest: if the file cannot be used, or the server refuses the login.
        """
        settings = self.settings
        secret = read_secret(Path(settings.secret_file))
        if settings.login is TransitLogin.TOKEN:
            return secret
        name = "secret_id" if settings.login is TransitLogin.APPROLE else "jwt"
        role = "role_id" if settings.login is TransitLogin.APPROLE else "role"
        path = f"/v1/auth/{settings.login_mount or settings.login}/login"
        answer = self._ask(path, {role: settings.role, name: secret}, None)
        token = self._read(answer, "auth", "client_token")
        # guard of signing: a token of a login is one line -> features.key_sources.test_transit.LoginTests.test_line
        if not token.isascii() or not token.isprintable() or not 0 < len(token) <= _MOST_TOKEN_CHARACTERS:
            raise self._invalid()
        return token

    def encrypt(self, secret: bytes, token: str) -> str:
        """Return the ciphertext of a secret, bound to our vault.

        :raises NetworkError: if the server does not answer now.
        :raises Forbidden, InvalidRequest: if it refuses.
        """
        answer = self._ask(self._path("encrypt"), self._bound("plaintext", _base64(secret)), token)
        return self._read(answer, "data", "ciphertext")

    def decrypt(self, token: str) -> bytes:
        """Return the secret that was encrypted, 32 bytes.

        :raises NetworkError: if the server does not answer now.
        :raises Forbidden, InvalidRequest: if it refuses, or the ciphertext is of another vault or key.
        """
        body = self._bound("ciphertext", self.settings.ciphertext)
        found = self._read(self._ask(self._path("decrypt"), body, token), "data", "plaintext")
        try:
            secret = base64.b64decode(found, validate=True)
        except (binascii.Error, ValueError):
            raise self._invalid() from None
        # guard of signing: a plaintext that is no secret of ours opens nothing
        #    -> features.key_sources.test_transit.DecryptTests.test_other_length
        if len(secret) != SECRET_BYTES:
            raise InvalidRequest(f"{self._who} decrypted something else than this vault's secret.")
        return secret

    def _path(self, operation: str) -> str:
        return f"/v1/{self.settings.mount}/{operation}/{self.settings.key}"

    def _bound(self, name: str, text: str) -> Mapping[str, JSON]:
        about = _base64(canonical({"tag": _TAG, "vault": self.vault}))
        # guard of signing: a ciphertext opens for the vault that it was made for
        #    -> features.key_sources.test_transit.DecryptTests.test_other_vault, instead return {name: text}
        return {name: text, "context": about, "associated_data": about}

    def _ask(self, path: str, body: Mapping[str, JSON], token: str | None) -> JSON:
        """Send a request, and return the JSON of the answer.

        :param token: the token, or None for a login.
        """
        settings = self.settings
        headers = {"X-Vault-Request": "true", "X-Vault-Namespace": settings.namespace, "X-Vault-Token": token}
        given = {name: text for name, text in headers.items() if text}
        ca_file = Path(settings.ca_file) if settings.ca_file else None
        try:
            reply = self.post(Posted(settings.url, path, canonical(body), given, ca_file), ANSWER_SECONDS)
        except ServiceSilent as error:
            raise NetworkError(f"{self._who} {error}.") from None
        if reply.status in _REFUSALS:
            raise self._refused_login() if token is None else self._refused(reply.status)
        # guard of signing: a redirect is not followed -> features.key_sources.test_transit.DecryptTests.test_redirect
        if reply.status in _REDIRECTS:
            raise NetworkError(f"{self._who} redirects to another address, which was not followed.")
        if reply.status != _OK:
            raise NetworkError(f"{self._who} {_AWAY.get(reply.status, 'cannot answer now')} (status {reply.status}).")
        # guard of signing: a page in the place of an answer is no answer
        #    -> features.key_sources.test_transit.DecryptTests.test_no_json
        if reply.content_type != "application/json":
            raise self._invalid()
        try:
            return loads_strict(reply.body)
        except ValueError:
            raise self._invalid() from None

    def _read(self, answer: JSON, part: str, name: str) -> str:
        members = answer.get(part) if isinstance(answer, dict) else None
        found = members.get(name) if isinstance(members, dict) else None
        if not isinstance(found, str):
            raise self._invalid()
        return found

    @property
    def _who(self) -> str:
        return f"The transit server {self.settings.server}"

    def _invalid(self) -> NetworkError:
        return NetworkError(f"{self._who} sent no valid answer.")

    def _refused(self, status: int) -> AileronError:
        key = f"{self.settings.mount}/{self.settings.key}"
        if status == _FORBIDDEN:
            return Forbidden(f"{self._who} refused the token: it has expired, or its policy does not allow {key}.")
        if status == _MISSING:
            return InvalidRequest(f"{self._who} has no transit engine or key {key}.")
        return InvalidRequest(
            f"{self._who} refused: the ciphertext is not of this vault and the key {key}, or the key's type has no"
            " associated data."
        )

    def _refused_login(self) -> AileronError:
        return Forbidden(f"{self._who} refused the login with the role {self.settings.role}.")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
