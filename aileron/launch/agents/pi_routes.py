"""Which of pi's providers go through the gateway: those that the user has not sent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from aileron.values import JSON, visible

from .bypass import unproxied
from .iagent import KEY_HEADER, STAND_IN_KEY, Gateway, Upstream
from .pi_settings import Settings, part

GATEWAY_KEY = "AILERON_GATEWAY_KEY"
"""The variable from which pi takes the session's gateway key."""

_KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"),
    "openai": ("OPENAI_API_KEY",),
}
_ENDS = {"anthropic": "", "openai": "/v1"}
"""What stands at the end of a base URL."""

_NO_UPSTREAM = Upstream("")


@frozen
class Routes:
    """What comes of it.

    :ivar providers: what is to be registered of them, by name; no secret.
    :ivar notes: what the user is to be told, a line each.
    """

    providers: Mapping[str, JSON] = field(factory=dict)
    variables: Mapping[str, str] = field(factory=dict, repr=False)
    notes: tuple[str, ...] = ()


def routed(settings: Settings, gateway: Gateway | None) -> Routes:
    """Send the user's providers through C{gateway}, or say why not.

    :param gateway: L{None}: leave them all alone.
    """
    if gateway is None:
        return Routes()
    if settings.models.values is None:
        reason = f"{visible(settings.models.name)} cannot be read, and may name base URLs."
        return Routes(notes=(f"aileron: pi's providers are left alone: {reason}",))
    kept = [name for name in _KEYS if _leaves(name, settings, gateway)]
    # Without a key pi does not offer them for it: so each can be sent there, and told is of those that are used.
    through = [name for name in _KEYS if name not in kept]
    return Routes(
        {name: _entry(name, gateway) for name in through},
        dict(_variables(through, settings, gateway)),
        tuple(_notes([name for name in _KEYS if _is_used(name, settings, gateway)], kept, settings)),
    )


def _is_used(name: str, settings: Settings, gateway: Gateway) -> bool:
    """Whether the user has a key for it, or the gateway has."""
    said = name in (settings.logins.values or {})
    injected = gateway.upstreams.get(name, _NO_UPSTREAM).injected
    return said or injected or name in settings.models.part("providers") or _has_variable(name, settings)


def _has_variable(name: str, settings: Settings) -> bool:
    return any(settings.environment.get(variable) for variable in _KEYS[name])


def _leaves(name: str, settings: Settings, gateway: Gateway) -> bool:
    """Whether the user sends it to an address which is not the gateway's and not its upstream's."""
    entry = part(settings.models.part("providers"), name)
    models = entry.get("models")
    listed = models if isinstance(models, list) else []
    parts = [entry, *(model for model in listed if isinstance(model, Mapping))]
    upstream = gateway.upstreams.get(name, _NO_UPSTREAM).base_url
    known = (f"{gateway.url}{_ENDS[name]}", f"{upstream}{_ENDS[name]}")
    addresses = [each["baseUrl"] for each in parts if each.get("baseUrl") is not None]
    return "oauth" in entry or any(str(address).rstrip("/") not in known for address in addresses)


def _entry(name: str, gateway: Gateway) -> JSON:
    return {"baseUrl": f"{gateway.url}{_ENDS[name]}", "headers": {KEY_HEADER: f"${GATEWAY_KEY}"}}


def _variables(through: list[str], settings: Settings, gateway: Gateway) -> Iterator[tuple[str, str]]:
    if through:
        yield GATEWAY_KEY, gateway.key
        yield from unproxied({**_proxy(settings), **settings.environment}, gateway.url).items()
    for name in through:
        alone = name not in (settings.logins.values or {}) and not _has_variable(name, settings)
        if gateway.upstreams.get(name, _NO_UPSTREAM).injected and alone:
            yield _KEYS[name][0], STAND_IN_KEY


def _proxy(settings: Settings) -> Mapping[str, str]:
    """What pi makes of its own setting, unless the variable is there."""
    proxy = (settings.others.values or {}).get("httpProxy")
    return {"HTTP_PROXY": proxy} if isinstance(proxy, str) else {}


def _notes(used: list[str], kept: list[str], settings: Settings) -> Iterator[str]:
    if through := [name for name in used if name not in kept]:
        yield f"aileron: through the gateway: {', '.join(through)}"
    for name in kept:
        yield (
            f"aileron: pi's {name} is left alone: {visible(settings.models.name)} sends it elsewhere. For the gateway "
            f"to take it there, name that address in config.yaml as gateway.providers.{name}.base_url"
        )
