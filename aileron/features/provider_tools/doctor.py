"""The check of C{aileron doctor} that requests are read for tools that providers run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aileron.cli.doctor.findings import DoctorFinding, remark


def find_unwatched(status: Mapping[str, Any]) -> Iterator[DoctorFinding]:
    """Yield a remark if no provider has a rule for the tools that it runs, so that requests are not read for them.

    :param status: the response of C{GET /v1/status}.
    """
    tools = [each.get("provider_tools") for each in status.get("gateway", {}).get("providers", ())]
    if tools and set(tools) <= {"off"}:
        yield remark(
            "Providers may run tools themselves, such as web search or remote MCP servers: no approval, no sandbox and "
            "no record sees these.",
            "To note or refuse them, set gateway.provider_tools in config.yaml, then: aileron config trust",
        )
