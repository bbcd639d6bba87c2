"""Checks the destinations of a connector's requests, and that the connector prepared a request itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from aileron.base.addresses import WILDCARD, BaseUrl, Origin, read_origin
from aileron.base.json import JSON, canonical
from aileron.model.connectors import ConnectorDescription, Operation, Request
from aileron.model.errors import CapabilityDenied, InvalidRequest
from aileron.model.places import UrlTemplate

from ._places import own_base_url
from ._template import Omitted, ReferenceScope, Template, problem, render

_HTTPS_PORT = ":443"


@frozen
class Reach:
    """The addresses that a connector declares.

    :ivar private_network: whether loopback and private addresses are permitted.
    :ivar ssh: whether it uses SSH. Then its base URL is the only address.
    """

    about: ConnectorDescription
    private_network: bool
    ssh: bool = False

    def find_base_url(self, place: str | None, base_url: str) -> BaseUrl:
        """Return the base URL to which an operation sends its requests.

        :param place: the name of another host that the operation uses, or None for the connector's base URL.
        :param base_url: the base URL with which the connector is used, its own or that of a binding.
        :raises CapabilityDenied: if the connector does not declare this base URL, or the URL is not permitted.
        """
        about = self.about
        try:
            base = own_base_url(base_url, private_network=self.private_network, ssh=self.ssh)
            if about.template is not None:
                about.template.values_of(base_url)
            elif about.base_url_problem(base_url) is not None:
                raise self._refuse(base.origin)
            if place is None:
                return base
            return own_base_url(about.url_of(place, base_url), private_network=self.private_network)
        except ValueError as error:
            raise CapabilityDenied(f"The base URL of {about.name} {error}.") from error

    def find_forwarding_url(self, host: str, base_url: str) -> str:
        """Return the beginning of the URLs at a host to which requests of an agent's own tools are forwarded.

        :param host: a host of the connector in lower case, with its port unless that is 443.
        :param base_url: the base URL with which the connector is used.
        :raises CapabilityDenied: if tools do not address this host.
        """
        about = self.about
        base, tools = self.find_base_url(None, base_url), about.find_tools(base_url)
        # guard of own tools: requests go only to the hosts that the connector covers
        #    -> connectors.kinds.http.test_forward.PrepareTests.test_host
        if tools is None or not tools.has_host(host):
            raise CapabilityDenied(f"{about.name} does not cover the host {host}.")
        # guard of own tools: a request goes to the host that was shown
        #    -> connectors.kinds.http.test_forward.PrepareTests.test_other_base_url, instead return base.origin.url
        if base.origin.host_and_port.removesuffix(_HTTPS_PORT) == host:
            return base.origin.url
        for place in about.places:
            origin = self.find_base_url(place, base_url).origin
            if origin.host_and_port.removesuffix(_HTTPS_PORT) == host:
                return origin.url
        try:
            return own_base_url(f"https://{host}", private_network=False).origin.url
        except ValueError as error:
            raise CapabilityDenied(f"The host {error}.") from error

    def check_own(
        self, request: Request, operation: Operation, method: str, *places: str | None, listed: bool = False
    ) -> None:
        """Check that the connector prepared a request itself, and that its host is declared.

        :param places: the names of the other hosts that the operation uses. None is the connector's base URL.
        :param listed: whether the operation uses all hosts that the connector lists, by HTTPS.
        :raises CapabilityDenied: if the request is of another connector, was changed, or its URL is invalid or not
            declared.
        """
        expected = (self.about.name, operation.effect, operation.idempotent, method)
        if expected != (request.connector, request.effect, request.idempotent, request.method):
            raise CapabilityDenied("The request is not one of this connector.")
        try:
            origin = read_origin(request.url, ssh=self.ssh)
            own_base_url(origin.url, private_network=self.private_network, ssh=self.ssh)
        except ValueError as error:
            raise CapabilityDenied(f"The URL of the request {error}.") from error
        if not any(self._leads_to(place, origin) for place in places) and not (listed and self._lists(origin)):
            raise self._refuse(origin)

    def _leads_to(self, place: str | None, origin: Origin) -> bool:
        """Return whether an operation may send requests to C{origin}.

        If bindings may choose any base URL, every origin is permitted.

        :param place: the name of another host of the connector, the only one permitted, or None for the connector's
            base URL.
        """
        about = self.about
        if self.ssh:
            return origin == read_origin(about.base_url or "", ssh=True)
        template = about.template or UrlTemplate(about.base_url or "", ())
        if place is not None:
            template = UrlTemplate(about.places[place], template.variables)
        elif about.template is None and about.bindable:
            return True
        try:
            template.origin.values_of(origin.url)
        except ValueError:
            return False
        return True

    def _lists(self, origin: Origin) -> bool:
        """Return whether the connector lists the host of C{origin}, which is reached by HTTPS."""
        template, host = self.about.template, origin.host_and_port
        label, _, rest = host.partition(".")
        for declared in self.about.hosts if origin.scheme == "https" else ():
            asked = f"{WILDCARD}{rest}" if label and declared.startswith(WILDCARD) else host
            try:
                UrlTemplate(declared, template.variables if template else ()).read(asked)
            except ValueError:
                continue
            return True
        return False

    def _refuse(self, origin: Origin) -> CapabilityDenied:
        """Return the error for an origin that the connector does not declare."""
        details: dict[str, JSON] = {
            "requested": f"network:{origin.host_and_port}",
            "granted": [f"network:{each}" for each in self.about.hosts],
        }
        return CapabilityDenied(f"{self.about.name} does not declare the host {origin.host_and_port}.", details)


def refuse_strangers(inputs: Mapping[str, JSON], known: Collection[str]) -> None:
    """Check that an operation knows all its inputs.

    :raises InvalidRequest: if an input is unknown.
    """
    for name in inputs:
        if name not in known:
            raise problem(name, "is unknown to the operation")


def encode_json(template: Template, scope: ReferenceScope) -> bytes:
    """Return the JSON body made from a template. A value that is left out becomes null.

    :raises InvalidRequest: if an input cannot be encoded, or a text refers to an input that L{text} refuses.
    """
    try:
        value = render(template, scope)
        return canonical(None if isinstance(value, Omitted) else value)
    except ValueError as error:
        raise InvalidRequest("An input holds a number or a text that JSON cannot carry.") from error
