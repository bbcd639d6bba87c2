"""The kinds of credential: what is stored of each, and how a request is authorized with it.

A kind is one class and its place in L{KINDS}. Connector files, the vault, the daemon's API and the commands read the
kinds from there.  No kind does I/O: each gets a function that calls token endpoints (L{TokenExchange}).
"""

from collections.abc import Mapping

from ._aws_sigv4 import CONTENT_HEADER, UNSIGNED_CHUNKS, AwsSigV4, SignedService, find_signed_service
from ._challenge import says_invalid, wanted_scopes
from ._discovery import AuthorizationServer, ProtectedResource
from ._github_app import GithubApp
from ._keys import LEAST_RSA_BITS, ApiKey, Basic, SshKey, header_problem, load_private_key
from ._kind import (
    PRIVATE_NETWORK,
    CredentialKind,
    CredentialUse,
    NeedsYou,
    SettingRule,
    SignInRefused,
    TokenAnswer,
    TokenExchange,
    TokenRequest,
    no_exchange,
    only,
    place,
)
from ._oauth2 import (
    CLIENT,
    CODE,
    DEVICE,
    DISCOVER,
    NONE,
    RESOURCE,
    OAuth2,
    OAuth2Document,
    missing_scopes,
    read_endpoint,
)
from ._renewal import write
from ._sign_in import BrowserSignIn, DeviceSignIn, NotOurCallback, SignInClient, found_client, register

DEFAULT_KIND = ApiKey.name
"""The kind of a credential if none is named."""

KINDS: Mapping[str, CredentialKind] = {
    kind.name: kind for kind in (ApiKey(), Basic(), OAuth2(), AwsSigV4(), GithubApp(), SshKey())
}
"""All kinds by name."""

__all__ = [
    "CLIENT",
    "CODE",
    "CONTENT_HEADER",
    "DEFAULT_KIND",
    "DEVICE",
    "DISCOVER",
    "KINDS",
    "LEAST_RSA_BITS",
    "NONE",
    "PRIVATE_NETWORK",
    "RESOURCE",
    "UNSIGNED_CHUNKS",
    "ApiKey",
    "AuthorizationServer",
    "Basic",
    "BrowserSignIn",
    "CredentialKind",
    "CredentialUse",
    "DeviceSignIn",
    "NeedsYou",
    "NotOurCallback",
    "OAuth2",
    "OAuth2Document",
    "ProtectedResource",
    "SettingRule",
    "SignInClient",
    "SignInRefused",
    "SignedService",
    "SshKey",
    "TokenAnswer",
    "TokenExchange",
    "TokenRequest",
    "find_signed_service",
    "found_client",
    "header_problem",
    "load_private_key",
    "missing_scopes",
    "no_exchange",
    "only",
    "place",
    "read_endpoint",
    "register",
    "says_invalid",
    "wanted_scopes",
    "write",
]
