"""Finds credentials in a tool's request that are not the placeholder that the tool was given."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection
from urllib.parse import unquote_plus

from aileron.base.attachments import regular_base64
from aileron.model.connectors import CredentialNeed
from aileron.model.own_tools import ToolDeclaration

from ._aws import is_signed_with
from .values import ToolRequest

_HEADERS = frozenset(
    "authorization proxy-authorization cookie cookie2 api-key apikey x-api-key x-api-token x-apikey x-access-token "
    "x-amz-s3session-token x-amz-security-token x-auth-key x-auth-token x-goog-api-key job-token private-token "
    "deploy-token x-github-token x-token x-vault-token".split()
)
_PARAMETERS = frozenset(
    "access_token api_key api_token apikey auth_token bearer_token client_secret job_token oauth_token private_token "
    "refresh_token token x_amz_credential x_amz_security_token x_amz_signature x_goog_signature".split()
)
_IN_FORM = re.compile(
    rf"(?:\A|[&;])\s*({'|'.join(sorted(_PARAMETERS)).replace('_', '[_-]')})\s*(?=[=&;]|\Z)", re.IGNORECASE
)
_SCHEMED = re.compile(r"(?:[A-Za-z]{1,20} )?([A-Za-z0-9_-]{8,100})")
_MOST_BASIC = 1000


def find_foreign_credential(
    request: ToolRequest, declaration: ToolDeclaration, need: CredentialNeed | None, parameters: Collection[str]
) -> str:
    """Return the place of a credential that is not a placeholder, such as C{header Cookie}, or an empty text.

    :param need: the credential that Aileron adds.
    :param parameters: the names of the parameters in the query and in a form, decoded.
    """
    placeholders, is_own = declaration.placeholders, is_signed_with if declaration.aws else _is_placeholder
    forbidden = _HEADERS | ({need.header.lower()} if need and need.header else frozenset())
    seen: set[str] = set()
    for name, value in request.headers:
        plain = name.lower().replace("_", "-")
        if plain in declaration.headers and plain == name.lower():
            # guard of own tools: a tool sends no credential but its placeholder
            #    -> features.own_tools.test_recognition.CredentialTests.test_refused
            # guard against attack: no other credential is sent -> test_own_tools_way.WayTests.test_credentials
            if plain in seen or not is_own(value, placeholders):
                return f"header {name}"
            seen.add(plain)
        elif plain in forbidden or plain in declaration.headers:
            return f"header {name}"
    query = {need.query.lower().replace("-", "_")} if need and need.query else frozenset[str]()
    for name in parameters:
        if name.lower().replace("-", "_") in _PARAMETERS | query:
            return f"parameter {name[:60]}"
    return ""


def list_form_credentials(body: bytes) -> list[str]:
    """Return the names of the first parameters in a form that could contain a credential: at most one."""
    found = _IN_FORM.search(unquote_plus(body.decode("latin-1")))
    return [found[1]] if found else []


def _is_placeholder(value: str, placeholders: Collection[str]) -> bool:
    """Return whether a header's value is a placeholder, alone, after a scheme, or in HTTP Basic."""
    scheme, _, rest = value.partition(" ")
    if scheme.lower() == "basic":
        return _is_basic_placeholder(rest, placeholders)
    found = _SCHEMED.fullmatch(value)
    return found is not None and found[1] in placeholders


def _is_basic_placeholder(encoded: str, placeholders: Collection[str]) -> bool:
    regular = regular_base64(encoded) if len(encoded) <= _MOST_BASIC else None
    if regular is None:
        return False
    try:
        user, colon, password = base64.b64decode(regular).decode("utf-8").partition(":")
    except UnicodeDecodeError:
        return False
    return bool(colon) and (password in placeholders or (user in placeholders and password in ("", "x-oauth-basic")))
