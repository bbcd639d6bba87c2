"""Checks the destinations of a connector's requests, and that the connector prepared a request itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from aileron.base.addresses import BaseUrl, Origin, read_origin
from aileron.base.json import JSON, canonical
from aileron.model.connectors import ConnectorDescription, Operation, Request
from aileron.model.errors import CapabilityDenied, InvalidRequest
from aileron.model.places import UrlTemplate

from ._places import own_base_url
from ._template import Omitted, ReferenceScope, Template, problem, render


@frozen
class Reach:
    """The addresses that a connector declares.

    :ivar private_network: whether loopback and private addresses may be connected to.
    :ivar ssh: whether it uses SSH. Then its base URL is the only address.
    """

    about: ConnectorDescription
    private_network: bool
    ssh: bool = False

    def find_base_url(self, place: str | None, base_url: str) -> BaseUrl:
        """Return the base URL of an operation, if its connector's is C{base_url}.

        :param place: the host that the operation names, or None for the connector's base URL.
        :raises CapabilityDenied: the host is not declared.
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

    def check_own(self, request: Request, operation: Operation, method: str, place: str | None) -> None:
        """Check that the connector prepared a request itself, and that its host is declared.

        :raises CapabilityDenied: the request is of another connector, or was changed.
        """
        expected = (self.about.name, operation.effect, operation.idempotent, method)
        if expected != (request.connector, request.effect, request.idempotent, request.method):
            raise CapabilityDenied("The request is not one of this connector.")
        try:
            origin = read_origin(request.url, ssh=self.ssh)
            own_base_url(origin.url, private_network=self.private_network, ssh=self.ssh)
        except ValueError as error:
            raise CapabilityDenied(f"The URL of the request {error}.") from error
        if not self._leads_to(place, origin):
            raise self._refuse(origin)

    def _leads_to(self, place: str | None, origin: Origin) -> bool:
        """Return whether an operation may send requests to C{origin}: its own host, or a permitted base URL."""
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

    def _refuse(self, origin: Origin) -> CapabilityDenied:
        """Return the error for a host that the connector does not declare."""
        details: dict[str, JSON] = {
            "requested": f"network:{origin.host_and_port}",
            "granted": [f"network:{each}" for each in self.about.hosts],
        }
        return CapabilityDenied(f"{self.about.name} does not declare the host {origin.host_and_port}.", details)


def refuse_strangers(inputs: Mapping[str, JSON], known: Collection[str]) -> None:
    """Check that an operation knows all its inputs.

    :raises InvalidRequest: an input is unknown.
    """
    for name in inputs:
        if name not in known:
            raise problem(name, "is unknown to the operation")


def encode_json(template: Template, scope: ReferenceScope) -> bytes:
    """Return the JSON body made from a template.

    :raises InvalidRequest: an input cannot be encoded.
    """
    try:
        value = render(template, scope)
        return canonical(None if isinstance(value, Omitted) else value)
    except ValueError as error:
        raise InvalidRequest("An input holds a number or a text that JSON cannot carry.") from error
