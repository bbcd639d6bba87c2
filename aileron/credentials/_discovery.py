"""Finds the sign-in page for a protected resource, such as an MCP server.

Follows the MCP specification: reads the resource's metadata (RFC 9728) and that of its authorization server (RFC 8414,
OpenID Connect Discovery).  Requests are made by a function that the caller passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self
from urllib.parse import parse_qsl

from attrs import frozen

from aileron.base.addresses import may_be_private, read_origin, read_url
from aileron.base.json import JSON

from ._challenge import read_challenge, read_scopes
from ._kind import PRIVATE_NETWORK, SignInRefused, TokenExchange, TokenRequest
from ._oauth2 import ISSUER, METHODS, NONE, OFFLINE, RESOURCE, covers, read_endpoint

_RESOURCE_PAGES = (
    "{origin}/.well-known/oauth-protected-resource{path}",
    "{origin}/.well-known/oauth-protected-resource",
)
_SERVER_PAGES = (
    "{origin}/.well-known/oauth-authorization-server{path}",
    "{origin}/.well-known/openid-configuration{path}",
    "{origin}{path}/.well-known/openid-configuration",
)
_ACCEPT = ("Accept", "application/json")
JSON_HEADERS = (("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json"))
_PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'  # has no effect if the server accepts it
_MOST_URL = 2048
_OURS = frozenset(
    "client_id code_challenge code_challenge_method redirect_uri request request_uri resource response_mode "
    "response_type scope state".split()
)
"""The parameters that Aileron sets in a request to a sign-in page, or that would replace the request.

A sign-in page that reads the first of two values would obey one in its own address.
"""


@frozen
class ProtectedResource:
    """A protected resource as its metadata describes it.

    :ivar name: the resource for which tokens are requested (RFC 8707): its URL, or a prefix of the URL.
    :ivar issuers: the authorization servers that the resource trusts. Empty if it names none.
    :ivar scopes: the scopes that the resource requires.
    """

    name: str
    issuers: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()

    @classmethod
    async def find(cls, settings: Mapping[str, str], exchange: TokenExchange) -> Self:
        """Request the resource's metadata, without a credential and only from its own host.

        :raises SignInRefused: if the metadata is invalid.
        :raises NetworkError, BindingFailed: if the resource cannot be reached.
        """
        url = settings[RESOURCE]
        asked = TokenRequest(url, PRIVATE_NETWORK in settings, JSON_HEADERS, _PING, "MCP server")
        answer = await exchange(asked)
        told = read_challenge(answer.challenge)
        pages, scopes = _pages(url, _RESOURCE_PAGES), read_scopes(told.get("scope"))
        if "resource_metadata" in told:
            page = _read_place("resource_metadata", told["resource_metadata"], settings)
            if read_origin(page) != read_origin(url):
                raise SignInRefused("The MCP server names a metadata document on another host (resource_metadata).")
            pages.insert(0, page)
        members = await _find_metadata(pages, settings, exchange)
        return cls(url, (), scopes) if members is None else cls._read(url, members, scopes)

    @classmethod
    def _read(cls, url: str, members: Mapping[str, JSON], scopes: tuple[str, ...]) -> Self:
        name = members.get("resource")
        if not isinstance(name, str) or not covers(name, url):
            raise SignInRefused("The MCP server's metadata is for another resource (resource).")
        issuers = _texts(members, "authorization_servers")
        return cls(name, issuers, scopes or read_scopes(_texts(members, "scopes_supported")))

    def issuer(self, settings: Mapping[str, str]) -> str:
        """Return the authorization server: the issuer in the connector file, else the first that the resource names.

        :raises SignInRefused: if there is none, the resource does not name the one in the file, or its address is not
            allowed.
        """
        declared = settings.get(ISSUER)
        if declared is not None and declared not in (self.issuers or (declared,)):
            raise SignInRefused(
                "The MCP server does not name the authorization server that the connector file expects (issuer)."
            )
        if declared is None and not self.issuers:
            raise SignInRefused(
                "The MCP server does not say where to sign in. If you know its authorization server, "
                "set issuer in the connector file."
            )
        found = _read_place(ISSUER, declared or self.issuers[0], settings)
        if "?" in found:
            raise SignInRefused("The issuer of the authorization server must have no query.")
        return found


@frozen
class AuthorizationServer:
    """An authorization server as its metadata describes it.

    :ivar registration_url: the endpoint for registering clients, or None if there is none.
    :ivar methods: the client authentication methods of the token endpoint.
    :ivar reads_clients: whether a client id may be the URL of a document about the client.
    :ivar names_itself: whether all sign-in responses name the server (RFC 9207).
    :ivar gives_offline: whether a refresh token is requested by a scope.
    """

    issuer: str
    authorize_url: str
    token_url: str
    registration_url: str | None
    methods: tuple[str, ...]
    reads_clients: bool
    names_itself: bool
    gives_offline: bool

    @property
    def method(self) -> str:
        """The first of Aileron's authentication methods that the server supports, else C{none}."""
        return next((each for each in METHODS if each in self.methods), NONE)

    @classmethod
    async def find(cls, issuer: str, settings: Mapping[str, str], exchange: TokenExchange) -> Self:
        """Request the server's metadata, only from its own host.

        :raises SignInRefused: if there is no metadata, or it does not permit a safe sign-in.
        :raises NetworkError, BindingFailed: if the server cannot be reached.
        """
        members = await _find_metadata(_pages(issuer, _SERVER_PAGES), settings, exchange)
        if members is None:
            raise SignInRefused("The authorization server publishes no metadata.")
        if members.get("issuer") != issuer:
            raise SignInRefused("The authorization server's metadata names another issuer (issuer).")
        if "S256" not in _texts(members, "code_challenge_methods_supported"):
            raise SignInRefused("The authorization server does not say that it supports PKCE with S256.")
        _check_page(members.get("authorization_endpoint"))
        registers = members.get("registration_endpoint") is not None

        def read(name: str) -> str:
            return _read_place(name, members.get(name), settings)

        return cls(
            issuer=issuer,
            authorize_url=read("authorization_endpoint"),
            token_url=read("token_endpoint"),
            registration_url=read("registration_endpoint") if registers else None,
            methods=_texts(members, "token_endpoint_auth_methods_supported") or METHODS,
            reads_clients=members.get("client_id_metadata_document_supported") is True,
            names_itself=members.get("authorization_response_iss_parameter_supported") is True,
            gives_offline=OFFLINE in _texts(members, "scopes_supported"),
        )


async def _find_metadata(
    pages: Iterable[str], settings: Mapping[str, str], exchange: TokenExchange
) -> Mapping[str, JSON] | None:
    """Return the first metadata document found, or None if there is none.

    :raises SignInRefused: if a page responds neither with a document nor with a client error. Redirects are not
        followed.
    """
    for page in pages:
        answer = await exchange(TokenRequest(page, PRIVATE_NETWORK in settings, (_ACCEPT,), None, "metadata"))
        if answer.status == 200 and answer.members:
            return answer.members
        if answer.status != 200 and not 400 <= answer.status <= 499:
            raise SignInRefused(f"{page} has no metadata; it answered with status {answer.status}.")
    return None


def _pages(url: str, shapes: Iterable[str]) -> list[str]:
    found = read_url(url)
    pages = (each.format(origin=found.origin.url, path=found.path.rstrip("/")) for each in shapes)
    return [*dict.fromkeys(pages)]


def _texts(members: Mapping[str, JSON], name: str) -> tuple[str, ...]:
    found = members.get(name)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _check_page(told: JSON) -> None:
    """Raise if the address of a sign-in page sets a parameter that Aileron sets.  Other faults are checked elsewhere.

    :raises SignInRefused: if the address sets such a parameter.
    """
    query = told.partition("?")[2] if isinstance(told, str) and len(told) <= _MOST_URL else ""
    names = (name for name, _ in parse_qsl(query, keep_blank_values=True) if name in _OURS)
    if (name := next(names, None)) is not None:
        raise SignInRefused(f"The sign-in page that the server names sets {name} itself (authorization_endpoint).")


def _read_place(name: str, told: JSON, settings: Mapping[str, str]) -> str:
    """Return a URL that a server names.  A private host is allowed only if the connector declares a private network.

    :raises SignInRefused: if the URL is invalid or not allowed.
    """
    url = told if isinstance(told, str) and len(told) <= _MOST_URL else ""
    try:
        origin = read_origin(read_endpoint(url))
        problem = "must have a public host"
    except ValueError as error:
        origin, problem = None, str(error)
    if origin is None or (may_be_private(origin.host) and PRIVATE_NETWORK not in settings):
        raise SignInRefused(f"A server names an address that cannot be used: {name} {problem}.")
    return url
