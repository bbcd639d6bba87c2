"""The settings of the gateway and its providers: the key C{gateway} of C{config.yaml}, and the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, fields_dict, frozen

from aileron.base.addresses import read_base_url, read_certificates
from aileron.base.yaml_keys import (
    Key,
    Keys,
    NotConfig,
    Section,
    WholeNumber,
    base_url,
    entries,
    line_of,
    match_text,
    read_keys,
    scalar,
    section,
    switch,
)
from aileron.credentials import DEFAULT_KIND
from aileron.model.errors import InvalidRequest

from .values import (
    BASE_URL_VARIABLES,
    BUILT_IN_PROVIDERS,
    PROXY_VARIABLES,
    Dialect,
    GatewaySettings,
    Provider,
    UpstreamSource,
)

if TYPE_CHECKING:
    from yaml import Node

TAKEN = frozenset(("v1", "api", "s", "mcp", "metrics"))
"""First path segments reserved for other routes of the site."""

_BUILT_IN: Mapping[str, Provider] = {each.name: each for each in BUILT_IN_PROVIDERS}
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_PREFIX = re.compile(r"(/[a-z0-9_-][a-z0-9_.-]*){1,8}")
_CREDENTIAL = re.compile(r"vault:([a-z0-9_]{1,32}/[a-z0-9][a-z0-9_.-]{0,62}/[A-Za-z0-9][A-Za-z0-9_.@+-]{0,126})")
_MOST_PREFIX = 128
_MOST_PROVIDERS = 32
_MOST_PEM = 2**18


def _gateway(providers: Mapping[str, Provider] | None = None, **settings: Any) -> GatewaySettings:
    given = _set_apart(GatewaySettings, settings)
    return GatewaySettings(providers=tuple({**_BUILT_IN, **(providers or {})}.values()), **given)


def _set_apart(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings, with those that are not fields of C{kind} moved to a mapping under C{of_features}.

    :param kind: the class of the settings. Keys of other features are not fields of it.
    """
    own = fields_dict(kind)
    others = {name: value for name, value in given.items() if name not in own}
    kept = {name: value for name, value in given.items() if name in own}
    return {**kept, "of_features": others} if others else kept


def _providers(keys: Keys, node: Node, where: str, _line: int) -> dict[str, Provider]:
    said = entries(node, where)
    if len(said) > _MOST_PROVIDERS:
        raise NotConfig(f"{where} may have {_MOST_PROVIDERS} entries at most", line_of(node))
    served = {each.prefix for each in _BUILT_IN.values() if each.name not in said}
    found: dict[str, Provider] = {}
    for name, (value, line) in said.items():
        found[name] = _provider(keys, name, value, line)
        if any(_is_nested(found[name].prefix, prefix) for prefix in served):
            raise NotConfig("the prefix of a provider must not be, begin or continue another's", line)
        served.add(found[name].prefix)
    return found


def _is_nested(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _provider(keys: Keys, name: str, node: Node, line: int) -> Provider:
    if not _NAME.fullmatch(name):
        raise NotConfig("a provider's name must be of a-z, 0-9 and -, begin with a letter, 32 at most", line)
    where = f"gateway.providers.{name}"
    read = _set_apart(Provider, read_keys(node, where, keys))
    if "base_url" in read:
        read["source"] = UpstreamSource.CONFIG
    elif name not in _BUILT_IN:
        raise NotConfig(f"{where} must have a base_url", line)
    provider = evolve(_BUILT_IN.get(name, Provider(name, "", f"/{name}")), **read)
    if provider.prefix.split("/")[1] in TAKEN:
        raise NotConfig(
            f"{where} needs another prefix: the site has these for itself: {', '.join(sorted(TAKEN))}", line
        )
    return provider


def _prefix(node: Node, name: str, line: int) -> str:
    text = scalar(node, "str") or ""
    if len(text) > _MOST_PREFIX or not _PREFIX.fullmatch(text):
        raise NotConfig(f"{name} must be a plain path in lower case, such as /groq, without a slash at its end", line)
    return text


def _dialect(node: Node, name: str, line: int) -> Dialect:
    text = scalar(node, "str")
    if text not in set(Dialect):
        raise NotConfig(f"{name} must be one of: {', '.join(sorted(Dialect))}", line)
    return Dialect(text)


def _credential(node: Node, name: str, line: int) -> str:
    problem = f"{name} must name a binding, such as vault:{DEFAULT_KIND}/openai/default"
    return match_text(node, _CREDENTIAL, line, problem)[1]


def _audit(node: Node, name: str, line: int) -> bool:
    """Parse the value of the key C{audit}: return True for C{shape}, False for C{off}.

    :raises NotConfig: if it has another value.
    """
    text = scalar(node, "str") or scalar(node, "bool")  # YAML parses off as false
    if text not in {"off", "shape"}:
        raise NotConfig(f"{name} must be one of: off, shape", line)
    return text == "shape"


def _certificates(node: Node, name: str, line: int) -> str:
    """Return the certificates of a PEM text. If it contains anything else, raise L{NotConfig}."""
    text = scalar(node, "str") or ""
    if len(text) > _MOST_PEM:
        raise NotConfig(f"{name} must have {_MOST_PEM} characters at most", line)
    try:
        found = read_certificates(text.encode("ascii"))
    except ValueError:
        raise NotConfig(f"{name} must be certificates in PEM", line) from None
    if len(found) != text.count("-----BEGIN "):
        raise NotConfig(f"{name} must have certificates only, no key or other thing", line)
    return "".join(f"{each.decode('ascii')}\n" for each in found)


_DEFAULT = GatewaySettings()
_OF_PROVIDER: Keys = {
    "base_url": Key(base_url, "URL that is put before every path", f"known for {', '.join(_BUILT_IN)}, else required"),
    "prefix": Key(_prefix, "path under which the gateway serves it", "a slash and the name"),
    "dialect": Key(_dialect, "whose API it speaks, `openai` or `anthropic`", "that of its name, else `openai`"),
    "credential": Key(_credential, "`vault:` and a binding, whose key replaces the agent's", "the agent's own key"),
}
_OF_GATEWAY: Keys = {
    "silence_seconds": Key(WholeNumber(86_400), "seconds of silence until an exchange ends", _DEFAULT.silence_seconds),
    "max_body_bytes": Key(WholeNumber(2**40), "bytes that a request may have", "the provider decides"),
    "ca_certificates": Key(_certificates, "certificates in PEM that are trusted too", "the system's alone"),
    "accounting": Key(switch, "whether finished answers are read for the tokens that they cost", _DEFAULT.accounting),
    "audit": Key(_audit, "`shape` records the shape of each completion in the audit log, `off` does not", "`off`"),
    "providers": Section(_providers, _OF_PROVIDER, ".<name>"),
}
GATEWAY = section(_gateway, _OF_GATEWAY)


@frozen
class GatewayEnvironment:
    """The gateway's settings from the environment.

    :ivar base_urls: the base URLs, by the provider's name.
    :ivar proxies: the proxies, by the variable's name in lower case. They may contain passwords.
    """

    base_urls: tuple[tuple[str, str], ...] = ()
    proxies: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> GatewayEnvironment:
        """Read the gateway's variables of an environment. Empty variables are ignored.

        :raises InvalidRequest: if a base URL is invalid.
        """
        said = {name: environ.get(variable) for name, variable in BASE_URL_VARIABLES.items()}
        proxies = {name: environ.get(name, environ.get(name.upper())) for name in PROXY_VARIABLES}
        return cls(
            tuple((name, _base_url(name, text)) for name, text in said.items() if text),
            tuple((name, text) for name, text in proxies.items() if text),
        )

    def over(self, settings: GatewaySettings) -> GatewaySettings:
        """Return C{settings} with the base URLs and proxies of this environment."""
        providers = tuple(self._move(provider) for provider in settings.providers)
        return evolve(settings, providers=providers, environment=self.proxies)

    def _move(self, provider: Provider) -> Provider:
        url = dict(self.base_urls).get(provider.name)
        return provider if url is None else evolve(provider, base_url=url, source=UpstreamSource.ENVIRONMENT)


def _base_url(name: str, text: str) -> str:
    try:
        return read_base_url(text).url
    except ValueError as error:
        raise InvalidRequest(f"{BASE_URL_VARIABLES[name]} {error}.") from None
