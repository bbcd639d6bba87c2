"""Whether what Codex asks goes through the gateway: not where the user has sent it elsewhere.

Codex lets nobody change its own provider but for the address, and an argument is no place for a key.  So there is one
beside it which has its name, and with that everything that it does for it, and takes the key from a variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import field, frozen

from .codex_settings import BUILT_IN, Login, Settings
from .iagent import KEY_HEADER, STAND_IN_KEY, Gateway, Upstream
from .toml_values import TomlValue, overriding

KEY_VARIABLE = "AILERON_GATEWAY_KEY"
_ID, _OTHER_ID = "aileron", "aileron_session"
_NAME = "OpenAI"  # Codex does by the name what it does for the models of that company only
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_AS_EVER = {"OpenAI-Organization": "OPENAI_ORGANIZATION", "OpenAI-Project": "OPENAI_PROJECT"}
_NO_LOGIN = {
    Login.NONE: "there is no login yet. Launch it again once there is one.",
    Login.HIDDEN: "it cannot be told how it is logged in.",
}
_NO_CHATGPT = "logged in with ChatGPT, it goes to an address of its own."
_ELSEWHERE = (
    "it goes elsewhere. For the gateway to take it there, name that address, without /v1, in config.yaml as a "
    "provider's base_url"
)


@frozen
class Routes:
    """What comes of it.

    :ivar arguments: Codex's, without a secret.
    :ivar variables: what they name.
    :ivar notes: what the user is to be told, a line each.
    """

    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(factory=dict, repr=False)
    notes: tuple[str, ...] = ()


@frozen
class _Way:
    """One through the gateway.

    :ivar name: the provider's of the gateway.
    :ivar url: where Codex is to ask.
    """

    name: str
    upstream: Upstream
    url: str


def routed(settings: Settings, gateway: Gateway | None, *, steered: bool) -> Routes:
    """Send what Codex asks through C{gateway}, or say why not.

    :param gateway: L{None}: leave it alone.
    :param steered: whether the user's arguments say where it goes.
    """
    if gateway is None:
        return Routes()
    reason = "your arguments say where it goes." if steered else _hidden(settings)
    if reason is not None:
        return _left_alone(settings.provider, reason)
    if settings.provider == BUILT_IN:
        return _own_provider(settings, gateway)
    return _users_provider(settings, gateway)


def _left_alone(provider: str, reason: str) -> Routes:
    return Routes(notes=(f"aileron: Codex's {provider} is left alone: {reason}",))


def _hidden(settings: Settings) -> str | None:
    """Why it cannot be told where the user sends it, if so."""
    hidden = (place.name for place in settings.places if place.said is None)
    return next((f"{name} cannot be read, and may name base URLs." for name in hidden), None)


def _own_provider(settings: Settings, gateway: Gateway) -> Routes:
    """Codex's own for the models of OpenAI, with whatever login it has."""
    said = settings.text("openai_base_url")
    way = _usual(settings.login, gateway) if said is None else _way(gateway, said[0])
    if way is None:
        return _left_alone("openai", _NO_CHATGPT if said is None else f"by {said[1]} {_ELSEWHERE}")
    if settings.login in _NO_LOGIN and not way.upstream.injected:
        return _left_alone("openai", _NO_LOGIN[settings.login])
    entry: dict[str, TomlValue] = {
        "name": _NAME,
        "base_url": way.url,
        "wire_api": "responses",
        "requires_openai_auth": settings.login is not Login.NONE,
        "env_http_headers": {KEY_HEADER: KEY_VARIABLE, **_AS_EVER},
    }
    # Codex would mix ours with what the user has under its name: their key would go where ours leads.
    name = _OTHER_ID if settings.entry(_ID) else _ID
    arguments = (*overriding("model_provider", name), *overriding(f"model_providers.{name}", entry))
    return _through(way, gateway, arguments)


def _users_provider(settings: Settings, gateway: Gateway) -> Routes:
    """One of the user's own goes on as they have it, but for the address; its key is their business."""
    provider = settings.provider
    entry = settings.entry(provider)
    address = entry.get("base_url")
    way = _way(gateway, address) if isinstance(address, str) and _BARE.fullmatch(provider) else None
    if way is None:
        return _left_alone(provider, _ELSEWHERE)
    path = f"model_providers.{provider}"
    arguments = (
        *overriding(f"{path}.base_url", way.url),
        *overriding(f"{path}.env_http_headers.{KEY_HEADER}", KEY_VARIABLE),
        *overriding(f"{path}.supports_websockets", False),
    )
    variable = entry.get("env_key")
    lacking = way.upstream.injected and isinstance(variable, str) and not settings.environment.get(variable)
    return _through(way, gateway, arguments, {str(variable): STAND_IN_KEY} if lacking else {})


def _through(way: _Way, gateway: Gateway, arguments: tuple[str, ...], more: Mapping[str, str] | None = None) -> Routes:
    variables = {KEY_VARIABLE: gateway.key, **(more or {})}
    return Routes(arguments, variables, (f"aileron: through the gateway: {way.name}",))


def _usual(login: Login, gateway: Gateway) -> _Way | None:
    """The way of Codex's own provider while the user names no address for it."""
    name, rest = ("chatgpt", "") if login is Login.CHATGPT else ("openai", "/v1")
    upstream = gateway.upstreams.get(name)
    return None if upstream is None else _Way(name, upstream, f"{gateway.url}{upstream.prefix}{rest}")


def _way(gateway: Gateway, address: str) -> _Way | None:
    """The way to an address: that of the provider of the gateway's whose it is, or the gateway's own."""
    address = address.rstrip("/")
    found = (
        _Way(name, upstream, f"{gateway.url}{upstream.prefix}{address.removeprefix(base)}")
        for name, upstream in gateway.upstreams.items()
        for base in _bases(gateway, upstream)
        if f"{address}/".startswith(f"{base}/")
    )
    return next(found, None)


def _bases(gateway: Gateway, upstream: Upstream) -> Iterator[str]:
    yield upstream.base_url
    yield f"{gateway.url}{upstream.prefix}"
