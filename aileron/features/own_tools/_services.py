"""Finds the service that a tool addresses: its connector, its action and its credential."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.util import find_spec

from attrs import frozen

from aileron.model.connectors import FORWARD, ConnectorDescription
from aileron.model.errors import BindingRequired, NotFound
from aileron.model.interfaces.connectors import IConnectors
from aileron.model.interfaces.runner import ISubmission
from aileron.model.interfaces.vault import IBindings
from aileron.model.own_tools import ToolDeclaration, is_address
from aileron.model.vault import Binding

from .action_file import name_action
from .values import ToolRequest, ToolService

NO_GRAPHQL = "GraphQL requests of tools are refused, because Aileron was installed without its extra named graphql."


@frozen
class UsedService:
    """A service that agents' own tools can use.

    :ivar about: its connector, with the variables of the bound base URL filled in.
    :ivar action: the action by which they use it.
    :ivar inputs: the names of the action's inputs. Actions that earlier versions wrote have fewer.
    """

    about: ConnectorDescription
    tools: ToolDeclaration
    action: str
    inputs: frozenset[str] = frozenset()


@frozen
class ToolServices:
    """Finds the services of connectors that declare C{[own_tools]} and have an action for them."""

    _connectors: IConnectors
    _bindings: IBindings
    _submission: ISubmission

    def find(self, names: tuple[str, ...]) -> tuple[ToolService, ...]:
        """Return the services with these names. Each must have an action and a credential now.

        :raises NotFound: if no connector with C{[own_tools]} has the name, its action is not offered, or its host is an
            IP address.
        :raises BindingRequired: if no credential is bound to it.
        """
        return tuple(map(self._find_named, dict.fromkeys(names)))

    def list_names(self) -> list[str]:
        """Return the names of the services whose action is offered, sorted."""
        return sorted(each.tools.service for each in self._list())

    def list_problems(self, names: Collection[str]) -> Iterator[str]:
        """Yield a sentence for each reason why tools cannot use the services with these names."""
        for name in names:
            try:
                self._find_named(name)
            except (BindingRequired, NotFound) as error:
                yield error.message
        declared = (each.own_tools for each in self._connectors.descriptions() if each.own_tools is not None)
        if any(each.graphql and each.service in names for each in declared) and find_spec("graphql") is None:
            yield NO_GRAPHQL

    def find_for(self, request: ToolRequest) -> UsedService:
        """Return the service that a request addresses, of those that its session opened.

        If several are at the request's host, return the one that declares its path, or else the one without paths.

        :raises NotFound: if there is none, or more than one.
        """
        host = request.host
        # guard of own tools: a session uses no service that it did not open
        #    -> features.own_tools.test_door.ServiceTests.test_not_opened
        opened = [each for each in self._list() if each.tools.service in request.services]
        found = [each for each in opened if each.tools.has_host(host)]
        if len(found) > 1:
            placed = [each for each in found if each.tools.paths and each.tools.covers(request.target)]
            found = placed or [each for each in found if not each.tools.paths] or found
        if not found:
            raise NotFound(f"No service at {host} is open to the tools of this agent.")
        # guard of own tools: a host stands for one credential -> features.own_tools.test_door.ServiceTests.test_two
        if len(found) > 1:
            names = " and ".join(each.about.name for each in found)
            raise NotFound(
                f"{names} are both at {host}, so nothing is sent. Run `aileron own-tools list`, and remove one."
            )
        return found[0]

    def _find_named(self, name: str) -> ToolService:
        described = [each for each in self._connectors.descriptions() if each.own_tools is not None]
        known = [each for each in described if each.own_tools is not None and each.own_tools.service == name]
        if not known:
            raise NotFound(f"No connector declares own tools for {name}. Run `aileron own-tools list`.")
        used = next((each for each in self._list() if each.tools.service == name), None)
        if used is None:
            raise NotFound(f"{name} has no action that can be used now. Run `aileron own-tools check {name}`.")
        if not _list_shared(self._bindings, used.about.name):
            fqn = used.about.name
            raise BindingRequired(f"No credential is bound to {fqn}. Run `aileron credential setup {fqn}`.")
        tools = used.tools
        # guard of own tools: no service is opened that tools reach without Aileron
        #    -> features.own_tools.test_service.FoundTests.test_address
        if any(map(is_address, tools.hosts)):
            raise NotFound(f"{name} is at an IP address. Tools reach a service by its name only: use one in base_url.")
        return ToolService(name, used.about.name, frozenset(tools.hosts), tools.variables, tools.is_git)

    def _place(self, about: ConnectorDescription) -> ConnectorDescription:
        """Return a connector with its own tools at the base URL of its only binding, with variables filled in."""
        if about.own_tools is None or not about.bindable:
            return about
        bound = _list_shared(self._bindings, about.name)
        base_url = bound[0].base_url if len(bound) == 1 and bound[0].address_problem is None else None
        return about.fill(base_url)

    def _list(self) -> list[UsedService]:
        """Return all services whose action is offered, each once."""
        found = dict[str, UsedService]()
        offers = self._submission.offering().offers
        for declared in self._connectors.descriptions():
            about = self._place(declared)
            if about.own_tools is None:
                continue
            named = [
                name
                for name, offer in sorted(offers.items())
                if offer.tools_only
                and offer.enabled
                and [(each.connector, each.operation) for each in offer.action.steps] == [(about.name, FORWARD)]
            ]
            usual = name_action(about.own_tools.service)
            if named:
                name = usual if usual in named else named[0]
                inputs = frozenset(each.name for each in offers[name].action.inputs)
                found[about.name] = UsedService(about, about.own_tools, name, inputs)
        return [*found.values()]


def _list_shared(bindings: IBindings, connector: str) -> list[Binding]:
    """Return the credentials of a connector that every session may use."""
    return [each for each in bindings.for_connector(connector) if each.owner is None]
