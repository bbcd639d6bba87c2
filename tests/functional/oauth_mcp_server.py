"""An MCP server of the SDK's that is an authorization server too: it registers clients, and binds tokens to itself.

Started with a port and a directory: what happens is a line in its file C{happened}; where a file C{revoked} lies, no
refresh token is good, and where a file C{more} lies, no call is allowed without the scope C{admin}.
"""

import secrets
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

_SECONDS = 30
"""For how long a token is good: less than the minute before its end in which it is renewed at its next use."""


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Knows its clients and tokens until it ends; whoever comes to sign in is let in."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._refresh: dict[str, RefreshToken] = {}
        self._access: dict[str, AccessToken] = {}

    def _note(self, *happened: object) -> None:
        with (self._directory / "happened").open("a") as file:
            file.write(" ".join(map(str, happened)) + "\n")

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info
        self._note("registered", *(client_info.redirect_uris or ()), client_info.client_secret)

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = secrets.token_hex(20)
        given = params.model_dump(include={"code_challenge", "redirect_uri", "redirect_uri_provided_explicitly"})
        self._codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            resource=params.resource,
            **given,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._give("signed-in", client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return None if (self._directory / "revoked").exists() else self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self._refresh[refresh_token.token]
        return self._give("refreshed", client.client_id, refresh_token.scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._refresh.pop(token.token, None)

    def _give(self, how: str, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_hex(20)}", f"refresh-{secrets.token_hex(20)}"
        self._access = {access: AccessToken(token=access, client_id=client_id, scopes=scopes, resource=resource)}
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        self._note(how, resource, access, refresh)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=_SECONDS, scope=" ".join(scopes))


class WantsMore:
    """Refuses a call whose token lacks a scope, and says which."""

    def __init__(self, app: Any, directory: Path, provider: Provider) -> None:
        self._app, self._more, self._provider = app, directory / "more", provider

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        token = dict(scope.get("headers", ())).get(b"authorization", b"").decode().removeprefix("Bearer ")
        access = await self._provider.load_access_token(token)
        if access is None or "admin" in access.scopes or not self._more.exists():
            await self._app(scope, receive, send)
            return
        challenge = b'Bearer error="insufficient_scope", scope="notes admin"'
        await send({"type": "http.response.start", "status": 403, "headers": [(b"www-authenticate", challenge)]})
        await send({"type": "http.response.body", "body": b""})


def main(port: int, directory: Path) -> None:
    """Serve until killed."""
    issuer = f"http://127.0.0.1:{port}"
    auth = AuthSettings.model_validate(
        {
            "issuer_url": issuer,
            "resource_server_url": f"{issuer}/mcp",
            "required_scopes": ["notes"],
            "validate_token_resource": True,
            "client_registration_options": ClientRegistrationOptions(enabled=True, valid_scopes=["notes", "admin"]),
        }
    )
    provider = Provider(directory)
    server = MCPServer("notes", auth_server_provider=provider, auth=auth)

    @server.tool()
    def add_note(text: str) -> str:
        """Adds a note."""
        return f"added {text}"

    app = server.streamable_http_app()
    app.add_middleware(WantsMore, directory=directory, provider=provider)
    uvicorn.run(app, port=port, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
