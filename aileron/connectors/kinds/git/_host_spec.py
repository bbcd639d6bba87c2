"""The connector file of a git host, by which the git of an agent in a sandbox reads and pushes."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from aileron.base.tables import FileTable
from aileron.connectors._forwarding import FORWARD_SECONDS, SERVICE_RULE
from aileron.connectors._operations import Identity
from aileron.connectors._services import read_service
from aileron.model.connectors import (
    FORWARD,
    FORWARD_READ,
    READ,
    WRITE,
    ConnectorDescription,
    Operation,
    Presentation,
)
from aileron.model.own_tools import ToolDeclaration

from ._spec import CREDENTIAL_KINDS, GitSpec

SHOW_PUSH = "show_push"
"""The read that shows what a push would change, for previews."""

PUSH_INPUTS = frozenset(
    "host repository changes updates capabilities options shallow headers content size recognised".split()
)
"""The inputs of a push, and of the read that shows it."""

_PUSH_SECONDS, _PREVIEW_SECONDS = 120.0, 30.0
_WHY = "it sends what a git of the agent wrote"
_PRESENTED = Presentation(
    "push",
    {"repository": ("repository",), "branch": ("changes",)},
    ("Push to ${in.repository}: ${in.changes}",),
)


def read_git_host(document: FileTable, head: FileTable, identity: Identity) -> GitSpec:
    """Return the spec read from a connector file: C{[own_tools]}, C{[credential]}, and the address.

    Faults are added to the tables.
    """
    service = read_service(document, head)
    about = service.describe(identity, _declare_operations())
    need = service.need
    if need is None or need.kind not in CREDENTIAL_KINDS or need.header.lower() != "authorization":
        kinds = " or ".join(CREDENTIAL_KINDS)
        document.faults.add(("credential", "kind"), f"`kind` must be {kinds}, in the header Authorization, for git")
    if about.bindable or about.places or about.template is not None or len(about.hosts) != 1:
        document.faults.add(
            ("connector", "base_url"), "`base_url` must be fixed, and its host the only one, for own tools"
        )
    about = evolve(about, own_tools=_read_own_tools(document, about))
    return GitSpec(about, {}, service.private_network, is_host=True)


def _declare_operations() -> Mapping[str, Operation]:
    push = Operation(
        FORWARD,
        WRITE,
        idempotent=False,
        description="Pushes what a git of the agent wrote.",
        timeout_seconds=_PUSH_SECONDS,
        reconcilable=True,
        presentation=_PRESENTED,
        needs_approval=_WHY,
        tools_only=True,
    )
    read = Operation(
        FORWARD_READ,
        READ,
        idempotent=True,
        description="Sends a read that a git of the agent wrote.",
        timeout_seconds=FORWARD_SECONDS,
        needs_approval=_WHY,
        tools_only=True,
    )
    show = Operation(
        SHOW_PUSH,
        READ,
        idempotent=True,
        description="Shows what a push of the agent's git would change.",
        timeout_seconds=_PREVIEW_SECONDS,
        tools_only=True,
    )
    return {each.name: each for each in (push, read, show)}


def _read_own_tools(document: FileTable, about: ConnectorDescription) -> ToolDeclaration:
    table = document.table("own_tools", required=True)
    service = table.text("service", SERVICE_RULE)
    table.close()
    hosts = tuple(each.removesuffix(":443") for each in about.hosts)
    return ToolDeclaration(service, hosts, {}, frozenset({"authorization"}), is_git=True)
