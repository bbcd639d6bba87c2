"""What the daemon's environment says of the gateway."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from aileron.addresses import read_base_url
from aileron.errors import InvalidRequest
from aileron.values import BASE_URL_VARIABLES, PROXY_VARIABLES, GatewaySettings, Provider, UpstreamSource


@frozen
class Surroundings:
    """What the environment says.

    :ivar base_urls: by the provider's name.
    :ivar proxies: by the variable's name in lower case; may hold passwords.
    """

    base_urls: tuple[tuple[str, str], ...] = ()
    proxies: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Surroundings:
        """From an environment; what is empty is not said.

        :raises InvalidRequest: a base URL is none.
        """
        said = {name: environ.get(variable) for name, variable in BASE_URL_VARIABLES.items()}
        proxies = {name: environ.get(name, environ.get(name.upper())) for name in PROXY_VARIABLES}
        return cls(
            tuple((name, _base_url(name, text)) for name, text in said.items() if text),
            tuple((name, text) for name, text in proxies.items() if text),
        )

    def over(self, settings: GatewaySettings) -> GatewaySettings:
        """These settings, and where the environment says something that."""
        providers = tuple(self._moved(provider) for provider in settings.providers)
        return evolve(settings, providers=providers, environment=self.proxies)

    def _moved(self, provider: Provider) -> Provider:
        url = dict(self.base_urls).get(provider.name)
        return provider if url is None else evolve(provider, base_url=url, source=UpstreamSource.ENVIRONMENT)


def _base_url(name: str, text: str) -> str:
    try:
        return read_base_url(text).url
    except ValueError as error:
        raise InvalidRequest(f"{BASE_URL_VARIABLES[name]} {error}.") from None
