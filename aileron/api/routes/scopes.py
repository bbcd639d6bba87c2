"""Finds the scope that applies to a binding now: what its credential may be used for.

A connector declares the scope, or a feature's target, such as a channel of notifications.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from aileron.api.dependencies import Dependencies
from aileron.api.shapes.values import optional_json, to_json
from aileron.base.addresses import base_url_problem
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.credentials import DEFAULT_KIND
from aileron.model.connectors import ConnectorDescription
from aileron.model.errors import Conflict, InvalidRequest
from aileron.model.trust import TrustItem, TrustKind, TrustState
from aileron.model.vault import Binding, BindingFlag, Scope

_UNREAD = frozenset((TrustState.NEW, TrustState.CHANGED))


@frozen
class Target:
    """The place to which a binding's credential would be sent.

    :ivar base_url: the binding's own base URL, or None for the connector's.
    :ivar scope: what the credential is encrypted for, or None if the connector needs no credential.
    :ivar kind: the kind of credential.
    :ivar variables: the values of variables that are not in the base URL.
    """

    base_url: str | None
    scope: Scope | None
    kind: str = DEFAULT_KIND
    variables: Mapping[str, str] = field(factory=dict)


async def trusted_target(deps: Dependencies, fqn: str, base_url: str | None, variables: Mapping[str, str]) -> Target:
    """Return the target of a new binding, whose credential is encrypted for its scope.

    :param fqn: the name of a connector, or of a feature's target such as a channel of notifications.
    :param base_url: the requested base URL, or None.
    :param variables: the values of variables that are not in the base URL.
    :raises InvalidRequest: if there is no such connector or provider, or the base URL or a variable is missing or not
        allowed.
    :raises Conflict: if the connector's file on disk is not trusted.
    :raises VaultLocked: if the vault was never unlocked in this process.
    """
    words = _find_words(deps, fqn)
    if words is not None:
        return _configured_target(deps, fqn, words, base_url)
    items = await deps.trust.trust_items()  # reads the files, so that all further checks see the same bytes
    unread = next((item for item in items if _is_unread(item, fqn)), None)
    if unread is not None:
        raise Conflict(
            f"The connector {fqn} is not trusted as it is now, so no credential was bound. "
            f"Review it: `aileron connector trust {fqn}`.",
            {"connector": fqn, "state": unread.state.value},
        )
    description = _describe(deps, fqn)
    if description is None:
        raise InvalidRequest(f"Connector {visible(fqn)[:200]} not found. List connectors: aileron connector list")
    if base_url is not None and not description.bindable:
        raise wrong("/base_url", "must be left out: this connector lets no binding choose")
    if base_url is not None:
        problem = base_url_problem(base_url) or description.base_url_problem(base_url)
        if problem is not None:
            raise wrong("/base_url", problem)
    _check_variables(description, variables)
    target = _target(description, base_url, variables)
    if target is None:
        raise wrong("/base_url", "is required: this connector has none of its own")
    return target


def current_target(deps: Dependencies, binding: Binding) -> Target | None:
    """Return the target of the binding's credential as its connector declares it now, or None.

    It is None if the connector is missing or cannot use the base URL, or if a feature's target is not configured.
    """
    if _find_words(deps, binding.connector) is not None:
        place = _find_configured(deps, binding.connector)
        return None if place is None else Target(None, place.scope())
    description = _describe(deps, binding.connector)
    if description is None:
        return None
    chosen = binding.base_url if description.bindable else None
    return _target(description, chosen, description.sealed_variables(binding.scope))


def needed_scopes(deps: Dependencies, fqn: str) -> tuple[str, ...] | None:
    """Return the scopes of a connector that are needed, in the connector's order.

    These are the scopes that trusted actions need, and those that no operation declares. Scopes needed only by
    operations that no trusted action uses are left out.

    :return: None if there is no such connector, it needs no credential, no trusted action uses it, or the used
        operations declare no scopes.
    """
    description = _describe(deps, fqn)
    if description is None or description.credential is None:
        return None
    pins = (pin for offer in deps.submission.offering().offers.values() for pin in offer.action.connectors)
    operations = description.operations
    used = {each for pin in pins if pin.name == fqn for each in pin.capabilities}
    used |= {lookup for name in used & operations.keys() if (lookup := operations[name].lookup) is not None}
    declared = {scope for each in operations.values() for scope in each.scopes}
    needed = {scope for name in used if name in operations for scope in operations[name].scopes}
    if not needed:
        return None
    asked = description.credential.settings.get("scopes", "").split()
    return tuple(each for each in asked if each in needed or each not in declared)


def binding_payload(deps: Dependencies, binding: Binding, flag: BindingFlag | None) -> dict[str, JSON]:
    """Return the JSON of a binding, with its connector's present scope, whether both are equal, and its state.

    :param flag: a problem noted for the binding, or None. It is left out if the binding has changed since.
    """
    target = current_target(deps, binding)
    told = flag if flag is not None and flag.revision == binding.revision else None
    now = None if target is None else target.scope
    scopes = needed_scopes(deps, binding.connector)
    return {
        **to_json(binding),
        "in_force": optional_json(now),
        "fits": target is not None and binding.scope == now and binding.address_problem is None,
        "flag": optional_json(told),
        "scopes": scopes if scopes is None else list(scopes),
        "state": to_json(deps.bindings.credential_state(binding, scopes)),
    }


def _find_configured(deps: Dependencies, fqn: str) -> Any:
    """Return the configured target of a feature, such as a channel of notifications, or None if there is none.

    :param fqn: the name of the target.
    """
    return deps.features.find_scope(fqn)


def _find_words(deps: Dependencies, fqn: str) -> str | None:
    """Return the description of a feature's target with this name, or None if no feature has such a target."""
    targets = deps.features.features.targets()
    return next((words for prefix, words in targets.items() if fqn.startswith(prefix)), None)


def _configured_target(deps: Dependencies, fqn: str, words: str, base_url: str | None) -> Target:
    place = _find_configured(deps, fqn)
    if place is None:
        raise wrong("/connector", f"names no {words} in config.yaml, as the daemon goes by it")
    if base_url is not None:
        raise wrong("/base_url", "must be left out: where it goes is set in config.yaml, or is the secret")
    return Target(None, place.scope())


def _is_unread(item: TrustItem, fqn: str) -> bool:
    return (item.kind, item.name) == (TrustKind.CONNECTOR, fqn) and item.state in _UNREAD


def _describe(deps: Dependencies, fqn: str) -> ConnectorDescription | None:
    connector = deps.connectors.get(fqn)
    return None if connector is None else connector.describe()


def _check_variables(description: ConnectorDescription, given: Mapping[str, str]) -> None:
    known = {} if description.template is None else {each.name: each for each in description.template.unplaced}
    for name, value in given.items():
        if name not in known:
            raise wrong("/variables", f"has {name!r}, which is no variable of the credential's settings alone")
        try:
            known[name].check(value)
        except ValueError as error:
            raise wrong(f"/variables/{name}", str(error)) from None
    for each in known.values():
        if each.default is None and each.name not in given:
            raise wrong("/variables", f"must have {each.name!r}, such as {each.example}")


def _target(description: ConnectorDescription, chosen: str | None, variables: Mapping[str, str]) -> Target | None:
    base_url = chosen or description.base_url
    kind = DEFAULT_KIND if description.credential is None else description.credential.kind
    return None if base_url is None else Target(chosen, description.scope(base_url, variables), kind, variables)


def wrong(pointer: str, problem: str) -> InvalidRequest:
    """Return the error for a binding request that is wrong at C{pointer}."""
    return InvalidRequest.listing("The credential cannot be bound.", (pointer, problem))
