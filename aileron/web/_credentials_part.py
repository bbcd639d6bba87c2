"""Draws the credentials on a page: the problems of each, its scope, and the command that adds one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen
from twisted.web.template import Tag, tags

from aileron.api import Dependencies, current_target, needed_scopes
from aileron.base.text import visible
from aileron.model.connectors import ConnectorDescription
from aileron.model.vault import Binding, BindingFlag, CredentialState, Scope

from .blocks import Part, act, command, facts, quiet
from .texts import credential_problem, segment

_BUILTIN = "builtin://"


@frozen
class ComparedBinding:
    """A credential binding compared with the scope that its connector requests now.

    :ivar wanted: the scope that the connector requests now, or None if it requests none or is not loaded.
    :ivar problem: the reasons why the operator should check it, as sentences; empty if there is no problem.
    """

    binding: Binding
    wanted: Scope | None
    state: CredentialState
    problem: str


async def read_credentials(deps: Dependencies) -> Sequence[ComparedBinding]:
    """Return every credential compared with its connector, sorted by name."""
    flags = await deps.flags.all()
    return [_compare(deps, each, flags.get(each.name)) for each in deps.bindings.list()]


def _compare(deps: Dependencies, binding: Binding, flag: BindingFlag | None) -> ComparedBinding:
    target = current_target(deps, binding)
    wanted = None if target is None else target.scope
    state, problem = deps.bindings.credential_state(binding, needed_scopes(deps, binding.connector)), ""
    if flag is not None and flag.revision == binding.revision:
        problem = flag.reason
    elif binding.address_problem is not None:
        problem = f"It cannot be used: its base URL {binding.address_problem}. Revoke it and add it again."
    elif target is None or (wanted is None and binding.scope is not None):
        problem = "It cannot be used: what it was added for is not there, or needs no credential now."
    elif wanted != binding.scope:
        problem = "It cannot be used: its connector asks for another scope now. Compare both, then rebind it."
    else:
        problem = credential_problem(binding, state)
    return ComparedBinding(binding, wanted, state, problem)


def draw_credential(credential: ComparedBinding, users: Sequence[str] = ()) -> Iterator[Part]:
    """Draw one credential with the buttons that change it.

    :param users: the actions that stop working without this credential.
    """
    binding, wanted = credential.binding, credential.wanted
    path = f"/v1/bindings/{segment(binding.name)}"
    stops = f". Stops working: {', '.join(users)}" if users else ""
    sure = f"Confirm: delete the secret{stops}"
    buttons = [act("Revoke", f"DELETE {path}", sure=sure, name=f"revoke-{binding.name}")]
    yield tags.h3(visible(binding.name))
    if credential.problem:
        yield tags.p(visible(credential.problem), **{"class": "warning"})
    if credential.state.surplus:
        yield quiet(visible(credential.state.surplus), " To sign in again for less:")
        yield command("aileron", "credential", "renew", binding.name)
    owner = None if binding.owner is None else binding.owner.name
    known = [
        ("Account", binding.account),
        ("For the agents of", owner),
        ("Used for", binding.connector),
        ("Added", binding.created_at),
    ]
    known += [("Expires", credential.state.expires_at)] if credential.state.expires_at else []
    if wanted not in (None, binding.scope) and binding.address_problem is None:
        sides = _side("Sealed for", binding.scope, wanted), _side("Asked for now", wanted, binding.scope)
        yield facts(known)
        yield tags.div(*sides, **{"class": "home-cards"})
        sure, body = "Confirm: allow it to be sent there", {"revision": binding.revision}
        buttons.insert(0, act("Rebind", f"POST {path}/rebind", body, sure=sure, name=f"rebind-{binding.name}"))
    else:
        yield facts([*known, *_in_words(binding.scope)])
    yield tags.p(*buttons, **{"class": "buttons"})


def draw_connect(about: ConnectorDescription, has_setup: bool) -> Iterator[Part]:
    """Draw how to add a credential: the scope that it will be encrypted for, and the command to run.

    :param has_setup: whether there is a setup command that also adds actions.
    """
    chosen: Sequence[str] = () if about.base_url else ("--base-url", "URL")
    if about.template is not None:
        asked = [each for each in about.template.variables if each.default is None]
        chosen = [part for each in asked for part in ("--set", f"{each.name}={each.example}")]
    if has_setup and about.name.startswith(_BUILTIN):
        yield quiet("This shows where to get the credential, adds ready actions, and checks that it works:")
        yield command("aileron", "setup", about.name.removeprefix(_BUILTIN))
        yield quiet("To add only the credential:")
    yield quiet("Run this in your terminal. It asks for the secret there: no page shows or takes one.")
    yield command("aileron", "credential", "setup", about.name, *chosen)
    if about.template is not None and about.template.placed:
        yield quiet("Its base URL is ", tags.code(about.template.text), ": set your own values.")
    elif about.template is not None:
        names = ", ".join(f"{each.name} ({each.title})" for each in about.template.variables)
        yield quiet(visible(f"To set a variable, add --set NAME=VALUE. There is: {names}."))
    elif about.bindable and about.base_url:
        yield quiet("To use another base URL, add ", tags.code("--base-url URL"), ".")
    yield quiet("To show whose credential it is, add ", tags.code("--account NAME"), ". It can be used only for:")
    yield facts(
        _in_words(about.scope(about.template.text if about.template else about.base_url or "The one that you set"))
    )


def _side(title: str, scope: Scope | None, other: Scope | None) -> Tag:
    """Draw one of two scopes that are shown side by side, and mark what the other lacks."""
    known = dict(_in_words(other))
    rows = [
        (name, value if known.get(name) == value else tags.mark(visible(value))) for name, value in _in_words(scope)
    ]
    inside = facts(rows) if rows else quiet("Nothing: it was never sealed for a scope")
    return tags.section(tags.h4(title), inside, **{"class": "home-card"})


def _in_words(scope: Scope | None) -> Sequence[tuple[str, str]]:
    if scope is None:
        return ()
    placed = [("Header", f"{scope.header}: {scope.format}")] if scope.header else []
    settings = [(name.replace("_", " ").capitalize(), text) for name, text in sorted(scope.settings.items())]
    return ("Hosts", ", ".join(scope.hosts)), ("Base URL", scope.base_url), *placed, *settings
