"""The settings of one life of the daemon: options, environment, and the key from an inherited descriptor."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from attrs import evolve, field, frozen
from twisted.python import usage

from aileron import __version__
from aileron.base.addresses import read_base_url
from aileron.features.gateway.values import (
    BASE_URL_VARIABLES,
    PROXY_VARIABLES,
    GatewaySettings,
    Provider,
    UpstreamSource,
)
from aileron.home.paths import Home, find_home
from aileron.model.errors import InvalidRequest
from aileron.vault import DataKey, read_key

from ._config import Config

_LIMITS = ("per_session", "per_home", "per_action")


class Options(usage.Options):
    """The options of C{twistd aileron}."""

    optParameters: ClassVar = [
        ["home", None, None, "State directory; else $AILERON_HOME, else ~/.aileron."],
        ["listen", None, None, "Endpoint string of the agent site; else a remembered or free port of 127.0.0.1."],
        ["operator-listen", None, None, "Endpoint string of the operator site; else likewise, of localhost."],
        ["key-fd", None, None, "Inherited descriptor from which the vault's key is read.", int],
        ["pending-per-session", None, None, "How many approvals of one session may wait.", int],
        ["pending-per-home", None, None, "How many approvals may wait in all.", int],
        ["pending-per-action", None, None, "How many approvals of one action may wait.", int],
    ]

    def opt_version(self) -> None:
        """Print the version and exit."""
        sys.stdout.write(f"aileron {__version__}\n")
        raise SystemExit(0)


@frozen
class GatewayEnvironment:
    """The gateway's settings by the environment.

    :ivar base_urls: by the provider's name.
    :ivar proxies: by the variable's name in lower case; may hold passwords.
    """

    base_urls: tuple[tuple[str, str], ...] = ()
    proxies: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> GatewayEnvironment:
        """Read an environment; what is empty is not said.

        :raises InvalidRequest: a base URL is none.
        """
        said = {name: environ.get(variable) for name, variable in BASE_URL_VARIABLES.items()}
        proxies = {name: environ.get(name, environ.get(name.upper())) for name in PROXY_VARIABLES}
        return cls(
            tuple((name, _base_url(name, text)) for name, text in said.items() if text),
            tuple((name, text) for name, text in proxies.items() if text),
        )

    def over(self, settings: GatewaySettings) -> GatewaySettings:
        """Return these settings, but where the environment says something, that."""
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


@frozen
class DaemonSettings:
    """The settings of one life of the daemon.

    :ivar listens: endpoints that the command line names, by the site's field in L{Config}.
    :ivar pending: limits that the command line sets, by their name.
    :ivar config: what is in force: it says nothing before L{over}.
    """

    home: Home
    key: DataKey | None = field(repr=False)
    listens: Mapping[str, Any] = field(factory=dict)
    pending: Mapping[str, Any] = field(factory=dict)
    environment: GatewayEnvironment = field(factory=GatewayEnvironment)
    config: Config = field(factory=Config)

    def over(self, config: Config) -> DaemonSettings:
        """Put in force what the configuration says, where command line and environment say nothing."""
        pending = evolve(config.pending, **self.pending)
        gateway = self.environment.over(config.gateway)
        return evolve(self, config=evolve(config, pending=pending, gateway=gateway, **self.listens))

    @classmethod
    def read(cls, options: Options) -> DaemonSettings:
        """Read options, environment and the inherited descriptor.

        :raises AileronError: no home can be told, or a variable says what it must not.
        :raises ValueError: the pipe brought no key.
        """
        environ = {**os.environ, "AILERON_HOME": options["home"]} if options["home"] else os.environ
        descriptor = options["key-fd"]
        return cls(
            home=find_home(environ),
            key=None if descriptor is None else read_key(descriptor),
            listens=_pick(options, {"listen": "listen", "operator_listen": "operator-listen"}),
            pending=_pick(options, {name: f"pending-{name.replace('_', '-')}" for name in _LIMITS}),
            environment=GatewayEnvironment.read(environ),
        )


def _pick(options: Options, names: Mapping[str, str]) -> dict[str, Any]:
    return {name: options[option] for name, option in names.items() if options[option] is not None}
