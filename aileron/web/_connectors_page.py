"""Connectors, and which credential is bound to which."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.values import Binding, BindingFlag, ConnectorDescription, Operation, visible

from ._actions_page import problems
from ._blocks import Cell, act, answer, facts, heading, page, quiet, table
from ._parts import Visit


async def draw_connectors(deps: Dependencies, visit: Visit) -> Tag:
    """Draw what the daemon can talk to, and as whom."""
    known, flags = deps.connectors.descriptions(), await deps.flags.all()
    bound = [(each, find_warning(each, flags.get(each.name))) for each in deps.bindings.list()]
    heads = ("Credential", "Connector", "Account", "Added", "Hosts", "Warning", "")
    return page(
        "Connectors",
        f"{len(known)} connectors, {len(bound)} credentials",
        heading("Connectors"),
        tags.h2("Credentials"),
        quiet(
            "Secrets are never entered or shown on a page. To add a credential, run ",
            tags.code("aileron binding setup"),
            " in your terminal.",
        ),
        tags.p(answer()),
        table("Credentials", heads, (_binding(*each) for each in bound), "No credentials"),
        *(part for each in known for part in _connector(each)),
        *problems(deps.connectors.problems()),
    )


def find_warning(binding: Binding, flag: BindingFlag | None) -> str:
    """Return why a credential is to be looked at; nothing where it is not, or was bound anew since."""
    return flag.reason if flag is not None and flag.revision == binding.revision else ""


def _binding(binding: Binding, beware: str) -> tuple[Cell, ...]:
    where = "None: bind it again" if binding.scope is None else ", ".join(binding.scope.hosts)
    sure = "Confirm: delete the secret"
    revoke = act("Revoke", f"DELETE /v1/bindings/{binding.name}", sure=sure, name=f"revoke-{binding.name}")
    return binding.name, binding.connector, binding.account, binding.created_at, where, beware, revoke


def _connector(about: ConnectorDescription) -> Iterator[Tag]:
    yield tags.h2(visible(about.fqn), " ", tags.span(visible(about.version), **{"class": "quiet"}))
    yield facts(_about(about))
    heads = ("Operation", "Effect", "Idempotent", "Outcome can be looked up", "Description")
    operations = (each for _, each in sorted(about.operations.items()))
    yield table(f"Operations of {about.fqn}", heads, map(_operation, operations), "No operations")


def _about(about: ConnectorDescription) -> Iterator[tuple[str, Cell]]:
    need = about.credential
    yield "Hosts", ", ".join(about.hosts)
    yield "Base URL", about.base_url or "Set by its credential"
    yield "Credential", "None" if need is None else f"{need.kind}, in the header {need.header}"
    yield "Content hash", about.content_hash


def _operation(operation: Operation) -> tuple[Cell, ...]:
    twice, found = ("Yes" if each else "No" for each in (operation.idempotent, operation.reconcilable))
    return operation.name, operation.effect.capitalize(), twice, found, operation.description
