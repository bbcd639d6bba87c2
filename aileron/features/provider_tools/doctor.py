"""Checks for C{aileron doctor} whether requests are read for tools that providers run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aileron.cli.doctor.findings import DoctorFinding, remark


def find_unwatched(status: Mapping[str, Any]) -> Iterator[DoctorFinding]:
    """Yield a remark if no request is read for tools that its provider runs.

    :param status: the response of C{GET /v1/status}.
    """
    tools = [each.get("provider_tools") for each in status.get("gateway", {}).get("providers", ())]
    if tools and set(tools) <= {"off"}:
        yield remark(
            "Providers may run tools themselves, such as web search or remote MCP servers: no approval, no sandbox and "
            "no record sees these.",
            "To note or refuse them, set gateway.provider_tools in config.yaml, then: aileron config trust",
        )
