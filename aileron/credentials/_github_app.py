"""GitHub Apps: a private key that obtains a token of one installation, valid for an hour."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import ClassVar

from attrs import evolve, field, frozen

from aileron.base.converter import Member
from aileron.base.json import JSON
from aileron.model.errors import NetworkError

from ._kind import PRIVATE_NETWORK, CredentialUse, NeedsYou, TokenRequest
from ._renewal import FORM, Renewable, RenewedKind, optional_members, token_of, write

_ID = re.compile(r"[A-Za-z0-9]{1,64}")
_LEAST_BITS = 2048
_GOOD_FOR = timedelta(minutes=9)
_SKEW = timedelta(seconds=60)
_ENDED = {
    401: "GitHub does not accept the app's key, or this machine's clock is wrong.",
    404: "The app is not installed.",
}


@frozen(kw_only=True)
class GithubAppDocument(Renewable):
    """The stored credential of a GitHub App: the app, one of its installations, and the app's private key in PEM."""

    app_id: str
    installation_id: str
    private_key: str = field(repr=False)


FORM.differ(GithubAppDocument, private_key=Member(), **optional_members())


class GithubApp(RenewedKind[GithubAppDocument]):
    """An installation of an app.

    Requests carry its token, obtained with the app's key from the connector's own host.
    """

    name: ClassVar[str] = "github_app"
    format: ClassVar[str] = "Bearer {key}"
    document = GithubAppDocument

    def problem(self, found: GithubAppDocument) -> str | None:
        """Return the fault of a document, as the end of a sentence, or None if the document is valid."""
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        if not all(map(_ID.fullmatch, (found.app_id, found.installation_id))):
            return "must have an app_id and an installation_id of letters and digits"
        try:  # skip the slow check of the numbers: GitHub refuses a wrong key
            key = load_pem_private_key(found.private_key.encode(), None, unsafe_skip_rsa_key_validation=True)
        except (ValueError, TypeError):  # TypeError: the key has a passphrase
            return "must have a private_key in PEM, without a passphrase"
        enough = isinstance(key, RSAPrivateKey) and key.key_size >= _LEAST_BITS
        return None if enough else f"must have a private_key that is RSA of {_LEAST_BITS} bits or more"

    def make_sample(self, secret: str) -> bytes:
        """Return a document with C{secret} as its token and a new private key, for C{aileron connector prove}."""
        from cryptography.hazmat.primitives import serialization as forms
        from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

        key = generate_private_key(65537, _LEAST_BITS)
        pem = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()).decode()
        return write(GithubAppDocument(access_token=secret, app_id="prove", installation_id="1", private_key=pem))

    def is_renewable(self, found: GithubAppDocument) -> bool:
        """Return True: the key can obtain a new token at any time."""
        return True

    async def renew(self, found: GithubAppDocument, use: CredentialUse) -> GithubAppDocument:
        """Request a new token from the connector's host.

        :raises NeedsYou: if the app or its installation was removed or suspended.
        :raises NetworkError: if GitHub gave no token, or cannot be reached.
        """
        scope, now = use.scope, use.now()
        headers = (
            ("Accept", "application/vnd.github+json"),
            ("Authorization", f"Bearer {_sign(found, now)}"),
            ("X-GitHub-Api-Version", "2022-11-28"),
        )
        url = f"{scope.base_url.rstrip('/')}/app/installations/{found.installation_id}/access_tokens"
        answer = await use.exchange(TokenRequest(url, PRIVATE_NETWORK in scope.settings, headers, b""))
        if answer.status in _ENDED:
            raise NeedsYou(_ENDED[answer.status])
        given = answer.members if 200 <= answer.status <= 299 else {}
        try:
            token, end = token_of(given.get("token")), _read_end(given.get("expires_at"))
        except ValueError:
            message = f"GitHub gave no token for the app's installation; it answered with status {answer.status}."
            raise NetworkError(message, {"status": answer.status}) from None
        return evolve(found, access_token=token, expires_at=end, obtained_at=use.now(), spent=False)


def _sign(found: GithubAppDocument, now: datetime) -> str:
    """Return the app's own token, valid for nine minutes, and from a minute ago because clocks differ."""
    import jwt

    claims = {"iat": int((now - _SKEW).timestamp()), "exp": int((now + _GOOD_FOR).timestamp()), "iss": found.app_id}
    return jwt.encode(claims, found.private_key, algorithm="RS256")


def _read_end(told: JSON) -> datetime:
    end = datetime.fromisoformat(told) if isinstance(told, str) else None
    if end is None or end.tzinfo is None:
        raise ValueError("no moment")
    return end
