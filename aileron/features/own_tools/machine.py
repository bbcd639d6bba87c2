"""Finds what this machine lacks for agents' own tools to use services, and which of the known tools it has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

from attrs import frozen

from aileron.base.addresses import SYSTEM_BUNDLES, system_authorities
from aileron.model.own_tools import ToolDeclaration

from ._services import NO_GRAPHQL


@frozen
class KnownTool:
    """A tool that was tried with own tools.

    :ivar trusts_by: the variable by which it trusts the session's authority.
    :ivar reaches_by: the variable by which it finds the proxy.
    :ivar needs: variables of which it needs one that has a credential; empty if it works without.
    """

    name: str
    trusts_by: str
    reaches_by: str
    needs: frozenset[str] = frozenset()


KNOWN_TOOLS = (
    KnownTool("gh", "SSL_CERT_FILE", "HTTPS_PROXY", frozenset(("GH_TOKEN", "GITHUB_TOKEN"))),
    KnownTool("glab", "SSL_CERT_FILE", "HTTPS_PROXY", frozenset(("GITLAB_TOKEN",))),
    KnownTool("aws", "AWS_CA_BUNDLE", "HTTPS_PROXY", frozenset(("AWS_ACCESS_KEY_ID",))),
    KnownTool("curl", "CURL_CA_BUNDLE", "HTTPS_PROXY"),
)
_GIT = KnownTool("git", "GIT_SSL_CAINFO", "HTTPS_PROXY")


@frozen
class ToolOnPath:
    """A tool as this machine has it.

    :ivar path: its program, or an empty text if it is not on C{PATH}.
    :ivar credential: the variable that has its placeholder, or an empty text if it needs none.
    """

    tool: str
    path: str
    credential: str
    trusts_by: str
    reaches_by: str


def find_tools(declared: ToolDeclaration, environment: Mapping[str, str]) -> Iterator[ToolOnPath]:
    """Yield the known tools that work with a service: those that need no credential, or get a placeholder for it."""
    for each in (_GIT,) if declared.is_git else KNOWN_TOOLS:
        given = sorted(each.needs & set(declared.variables))
        if given or not each.needs:
            path = shutil.which(each.name, path=environment.get("PATH")) or ""
            yield ToolOnPath(each.name, path, given[0] if given else "", each.trusts_by, each.reaches_by)


def list_lacking(
    declared: ToolDeclaration, environment: Mapping[str, str], bundles: Sequence[str] = SYSTEM_BUNDLES
) -> Iterator[tuple[str, str]]:
    """Yield what this machine lacks, each with what to do. Whether the system allows sandboxes is not checked."""
    if shutil.which("bwrap", path=environment.get("PATH")) is None:
        yield "bubblewrap is not installed, so there is no sandbox.", "Install the package: bubblewrap"
    if not system_authorities(bundles):
        yield "This system has no certificate authorities.", "Install the package: ca-certificates"
    if declared.graphql and find_spec("graphql") is None:
        yield NO_GRAPHQL, "Install it: pip install 'aileron[graphql]'"
