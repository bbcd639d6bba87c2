"""Which of goose's providers go through the gateway: those that the user has not sent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from attrs import field, frozen

from aileron.values import visible

from .bypass import unproxied
from .goose_settings import Settings
from .iagent import STAND_IN_KEY, Gateway, Invocation, Upstream

_HOSTS = {"anthropic": "ANTHROPIC_HOST", "openai": "OPENAI_HOST"}
_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_NAMES = {"anthropic": {"ANTHROPIC_HOST": ""}, "openai": {"OPENAI_HOST": "", "OPENAI_BASE_URL": "/v1"}}
"""Where a user says an address, and what stands at its end there."""

_PATH, _PATHS = "OPENAI_BASE_PATH", ("v1/chat/completions", "v1/responses")
_NO_UPSTREAM = Upstream("")


@frozen
class Routes:
    """What comes of it.

    :ivar notes: what the user is to be told, a line each.
    """

    variables: Mapping[str, str] = field(factory=dict, repr=False)
    notes: tuple[str, ...] = ()


def routed(settings: Settings, invocation: Invocation, gateway: Gateway | None) -> Routes:
    """Send what can be sent through C{gateway}, and say what becomes of the provider that the user has chosen.

    :param gateway: L{None}: leave them all alone.
    """
    if gateway is None:
        return Routes()
    hidden = next((layer.name for layer in settings.layers if layer.values is None), None)
    if hidden is not None:
        reason = f"{visible(hidden)} cannot be read, and may name hosts."
        return Routes(notes=(f"aileron: goose's providers are left alone: {reason}",))
    places = {name: _elsewhere(name, settings, gateway) for name in _HOSTS}
    through = [name for name, place in places.items() if place is None]
    variables = {name: text for provider in through for name, text in _variables(provider, invocation, gateway)}
    past = unproxied(invocation.environment, gateway.url, ports=False) if through else {}
    return Routes({**variables, **past}, tuple(_notes(_chosen(settings, invocation), places)))


def _variables(provider: str, invocation: Invocation, gateway: Gateway) -> Iterator[tuple[str, str]]:
    # In the path: the provider anthropic has no headers of the user's.
    yield _HOSTS[provider], f"{gateway.url}/s/{gateway.key}"
    if gateway.upstreams.get(provider, _NO_UPSTREAM).injected and not invocation.environment.get(_KEYS[provider]):
        yield _KEYS[provider], STAND_IN_KEY


def _elsewhere(provider: str, settings: Settings, gateway: Gateway) -> str | None:
    """The place that sends it to an address which is not the gateway's and not its upstream's, if there is one."""
    upstream = gateway.upstreams.get(provider, _NO_UPSTREAM).base_url
    for name, end in _NAMES[provider].items():
        said = settings.said(name)
        if said is not None and said[1].rstrip("/") not in (f"{gateway.url}{end}", f"{upstream}{end}"):
            return said[0]
    path = settings.said(_PATH) if provider == "openai" else None
    return path[0] if path is not None and path[1].strip("/") not in _PATHS else None


def _chosen(settings: Settings, invocation: Invocation) -> str | None:
    """The provider that is named, if one is."""
    for argument, following in pairwise((*invocation.arguments, "")):
        if argument == "--provider":
            return following
        if argument.startswith("--provider="):
            return argument.removeprefix("--provider=")
    said = settings.said("GOOSE_PROVIDER")
    return None if said is None else said[1]


def _notes(chosen: str | None, places: Mapping[str, str | None]) -> Iterator[str]:
    if chosen is not None and chosen not in places:
        yield f"aileron: goose's {visible(chosen)} is left alone: the gateway carries {' and '.join(places)} only"
    asked = [name for name in places if chosen in (None, name)]
    if through := [name for name in asked if places[name] is None]:
        yield f"aileron: through the gateway: {', '.join(through)}"
    for name in asked:
        if (place := places[name]) is not None:
            yield (
                f"aileron: goose's {name} is left alone: {visible(place)} sends it elsewhere. For the gateway to take "
                f"it there, name that address in config.yaml as gateway.providers.{name}.base_url"
            )
