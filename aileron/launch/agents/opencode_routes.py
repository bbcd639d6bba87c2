"""Which of OpenCode's providers go through the gateway: those that the user uses and has not sent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import field, frozen

from aileron.values import JSON

from .iagent import KEY_HEADER, STAND_IN_KEY, Gateway, Upstream
from .opencode_settings import Settings

_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
_ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
_ELSEWHERE = ("api", "npm")
_ANTHROPIC = "https://api.anthropic.com"  # OpenCode itself adds /v1 to exactly this
_NO_UPSTREAM = Upstream("")


@frozen
class Routes:
    """What comes of it.

    :ivar providers: OpenCode's C{provider}, what the user has in that variable included; empty: nothing to be set.
    :ivar notes: what the user is to be told, a line each.
    """

    providers: Mapping[str, JSON] = field(factory=dict, repr=False)
    notes: tuple[str, ...] = ()


@frozen
class _Provider:
    """One of them, as the user has it."""

    name: str
    settings: Settings
    gateway: Gateway

    @property
    def upstream(self) -> Upstream:
        return self.gateway.upstreams.get(self.name, _NO_UPSTREAM)

    def has_key(self) -> bool:
        """Whether OpenCode has something to send as its key."""
        named = any("apiKey" in _part(entry, "options") for _, entry in self.entries())
        return named or self.name in self.settings.logins or bool(self.settings.environment.get(_KEYS[self.name]))

    def is_used(self) -> bool:
        """Whether OpenCode offers it: a mere mention of ours would have it offer what the user has no key for."""
        return self.has_key() or self.upstream.injected or any(True for _, _ in self.entries())

    def entries(self) -> Iterator[tuple[str, Mapping[str, JSON]]]:
        """What the user says of it, with the place's name."""
        for place in self.settings.places:
            if self.name in (place.providers or {}):
                yield place.name, _part(place.providers or {}, self.name)

    def elsewhere(self) -> str | None:
        """The place that sends it to an address which is not the gateway's and not its upstream's, if there is one."""
        variable = _ADDRESSES[self.name]
        if not self._is_ours(self.settings.environment.get(variable) or None):
            return variable
        return next((place for place, entry in self.entries() if self._leaves(entry)), None)

    def _leaves(self, entry: Mapping[str, JSON]) -> bool:
        models = (_part(model, "provider") for model in _part(entry, "models").values() if isinstance(model, Mapping))
        moved = any(key in part for part in (entry, *models) for key in _ELSEWHERE)
        return moved or not self._is_ours(_part(entry, "options").get("baseURL"))

    def _is_ours(self, address: JSON) -> bool:
        """Whether an address is where the gateway is or sends: ours of another launch, or configured for both."""
        if not isinstance(address, str):
            return address is None
        known = (f"{self.gateway.url}/v1", f"{self.upstream.base_url}/v1")
        return (f"{_ANTHROPIC}/v1" if address == _ANTHROPIC else address.rstrip("/")) in known


def routed(settings: Settings, configuration: Mapping[str, JSON], gateway: Gateway | None) -> Routes:
    """Send the user's providers through C{gateway}, or say why not.

    :param configuration: the user's own in the variable that will be set, which is kept.
    :param gateway: L{None}: leave them all alone.
    """
    if gateway is None:
        return Routes()
    if (hidden := _hidden(settings)) is not None:
        return Routes(notes=(f"aileron: OpenCode's providers are left alone: {hidden}",))
    used = [one for name in _KEYS if (one := _Provider(name, settings, gateway)).is_used()]
    kept = {one.name: reason for one in used if (reason := _why_not(one)) is not None}
    through = [one for one in used if one.name not in kept]
    theirs = _part(configuration, "provider")
    ours = {one.name: _entry(one, _part(theirs, one.name)) for one in through}
    notes = [f"aileron: OpenCode's {name} is left alone: {reason}" for name, reason in kept.items()]
    if ours:
        notes.append(f"aileron: through the gateway: {', '.join(ours)}")
    return Routes({**theirs, **ours} if ours else {}, tuple(notes))


def _hidden(settings: Settings) -> str | None:
    """Why it cannot be told where the user sends them, if so."""
    for place in settings.places:
        if place.providers is None:
            return f"{place.name} cannot be read, and may name base URLs."
    if "wellknown" in settings.logins.values():
        return "an organisation's settings, which OpenCode fetches, may name base URLs."
    return None


def _why_not(provider: _Provider) -> str | None:
    name = provider.name
    if name == "openai" and provider.settings.logins.get(name) == "oauth":
        return "logged in with ChatGPT, it goes to an address of its own."
    if (place := provider.elsewhere()) is not None:
        return (
            f"{place} sends it elsewhere. For the gateway to take it there, name that address, without /v1, "
            f"in config.yaml as gateway.providers.{name}.base_url"
        )
    return None


def _entry(provider: _Provider, theirs: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The user's own entry in the variable, with the gateway's address and key in it."""
    options = _part(theirs, "options")
    others = {name: text for name, text in _part(options, "headers").items() if name.lower() != KEY_HEADER.lower()}
    alone = provider.upstream.injected and not provider.has_key()
    stand_in: Mapping[str, JSON] = {"apiKey": STAND_IN_KEY} if alone else {}
    gateway = provider.gateway
    ours: Mapping[str, JSON] = {"baseURL": f"{gateway.url}/v1", "headers": {**others, KEY_HEADER: gateway.key}}
    return {**theirs, "options": {**options, **stand_in, **ours}}


def _part(value: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}
