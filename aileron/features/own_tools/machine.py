"""Finds what this machine lacks for agents' own tools to use services, and which of the known tools it has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

from attrs import frozen

from aileron.base.addresses import SYSTEM_BUNDLES, system_authorities
from aileron.features.sandbox.sandbox import find_sandbox
from aileron.model.errors import Forbidden, NotFound
from aileron.model.own_tools import ToolDeclaration

from ._services import NO_GRAPHQL

SYSTEM, HOST_NAME = "the sandbox's certificates", "the name of its host"
"""What is shown in the place of a variable: they work in a sandbox only."""


@frozen
class KnownTool:
    """A tool, or a library of programs, that was tried with own tools.

    :ivar trusts_by: the variable by which it trusts the session's authority, or an empty text if there is none.
    :ivar reaches_by: the variable by which it finds the proxy. Empty if it ignores proxies: then it reaches a service
        only in a sandbox, by the name of its host.
    :ivar needs: the variables for its credential, of which one must be set. Empty if it works without a credential.
    :ivar uses_system: whether it trusts the system's certificates, which the sandbox replaces.
    :ivar is_program: whether it is a program on C{PATH}.
    """

    name: str
    trusts_by: str
    reaches_by: str = "HTTPS_PROXY"
    needs: frozenset[str] = frozenset()
    uses_system: bool = True
    is_program: bool = True


_GIT = KnownTool("git", "GIT_SSL_CAINFO")
KNOWN_TOOLS = (
    KnownTool("gh", "SSL_CERT_FILE", needs=frozenset(("GH_TOKEN", "GITHUB_TOKEN"))),
    KnownTool("glab", "SSL_CERT_FILE", needs=frozenset(("GITLAB_TOKEN",))),
    KnownTool("npm", "NODE_EXTRA_CA_CERTS", needs=frozenset(("NPM_TOKEN",)), uses_system=False),
    KnownTool("twine", "REQUESTS_CA_BUNDLE", needs=frozenset(("TWINE_PASSWORD",)), uses_system=False),
    KnownTool("cargo", "CARGO_HTTP_CAINFO", needs=frozenset(("CARGO_REGISTRY_TOKEN",))),
    KnownTool("aws", "AWS_CA_BUNDLE", needs=frozenset(("AWS_ACCESS_KEY_ID",)), uses_system=False),
    KnownTool("curl", "CURL_CA_BUNDLE"),
    _GIT,
    KnownTool("wget", "", "https_proxy"),
    KnownTool("openssl s_client", "SSL_CERT_FILE", "", is_program=False),
    KnownTool("Go", "SSL_CERT_FILE", is_program=False),
    KnownTool("Python: requests", "REQUESTS_CA_BUNDLE", uses_system=False, is_program=False),
    KnownTool("Python: boto3", "AWS_CA_BUNDLE", uses_system=False, is_program=False),
    KnownTool("Python: httpx", "SSL_CERT_FILE", uses_system=False, is_program=False),
    KnownTool("Python: aiohttp", "SSL_CERT_FILE", "", is_program=False),
    KnownTool("Python: urllib", "SSL_CERT_FILE", is_program=False),
    KnownTool("Python: http.client", "SSL_CERT_FILE", "", is_program=False),
    KnownTool("Node before 24: fetch, https", "NODE_EXTRA_CA_CERTS", "", uses_system=False, is_program=False),
    KnownTool("Node from 24 on: fetch, https", "NODE_EXTRA_CA_CERTS", uses_system=False, is_program=False),
    KnownTool("Node: axios", "NODE_EXTRA_CA_CERTS", uses_system=False, is_program=False),
)
"""The tools that were tried, in the order of the table in C{doc/own-tools.md}."""


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
    general = [each for each in KNOWN_TOOLS if each.is_program and each != _GIT]
    for each in (_GIT,) if declared.is_git else general:
        given = sorted(each.needs & set(declared.variables))
        if given or not each.needs:
            path = shutil.which(each.name, path=environment.get("PATH")) or ""
            trusts_by, reaches_by = each.trusts_by or SYSTEM, each.reaches_by or HOST_NAME
            yield ToolOnPath(each.name, path, given[0] if given else "", trusts_by, reaches_by)


def list_ways(environment: Mapping[str, str]) -> list[str]:
    """Return how tools in a sandbox of this machine reach their services, by starting a sandbox twice.

    :return: C{proxy}, C{host names}, both, or nothing if there can be no sandbox.
    """
    try:
        sandbox = find_sandbox(None, environment)
    except (Forbidden, NotFound):
        return []
    return ["proxy", "host names"] if sandbox.can_listen() else ["proxy"]


def list_lacking(
    declared: ToolDeclaration, environment: Mapping[str, str], bundles: Sequence[str] = SYSTEM_BUNDLES
) -> Iterator[tuple[str, str]]:
    """Yield pairs: something that this machine lacks, and how to provide it."""
    if shutil.which("bwrap", path=environment.get("PATH")) is None:
        yield "bubblewrap is not installed, so there is no sandbox.", "Install the package: bubblewrap"
    elif not list_ways(environment):
        yield "This system does not allow sandboxes.", "See why: aileron launch --sandbox AGENT"
    if not system_authorities(bundles):
        yield "This system has no certificate authorities.", "Install the package: ca-certificates"
    if declared.graphql and find_spec("graphql") is None:
        yield NO_GRAPHQL, "Install it: pipx inject aileron 'graphql-core'"
