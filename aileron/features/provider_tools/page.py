"""Parts of pages about the tools that providers run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twisted.web.template import tags

from aileron.api import Dependencies
from aileron.features.gateway.values import ToolCount
from aileron.model.sessions import Session
from aileron.web.blocks import Cell, Part, link, quiet, table
from aileron.web.parts import Visit

from .running import RunningProviderTools

_TOOLS = ("Provider", "Tool", "Host", "Outcome", "Requests")


async def draw_for_gateway(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the tools that providers were asked to run in all sessions, or nothing if the feature does not run."""
    running = deps.features.find(RunningProviderTools)
    if running is None:
        return ()
    tools = running.watch.counts()
    return list(_draw_tools(tools, watched=bool(tools) or bool(running.watch.providers)))


async def draw_for_session(deps: Dependencies, visit: Visit, subject: Session) -> Sequence[Part]:
    """Draw the tools that providers were asked to run in one session, or nothing if it has none and notes none."""
    running = deps.features.find(RunningProviderTools)
    if running is None:
        return ()
    tools = [each for each in running.watch.counts() if each.session_id == subject.id]
    return list(_draw_tools(tools, watched=True)) if tools or subject.notes_tools else ()


async def draw_for_settings(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw a link to the page that shows the rules for tools that providers run."""
    return [
        tags.h2("Tools that providers run"),
        quiet("Web search, remote MCP servers and the like can be noted or refused: ", link("/gateway", "LLM traffic")),
    ]


def _draw_tools(tools: Sequence[ToolCount], *, watched: bool) -> Iterator[Part]:
    """Draw the tools that providers were asked to run. If requests are not read, draw a hint on the setting."""
    yield tags.h2("Tools that providers run")
    if watched:
        yield quiet("Requests since the daemon started. Only the kind of tool and the host are kept.")
    else:
        yield quiet(
            "Requests are not checked for tools that a provider runs itself, such as web search or remote MCP servers. "
            "To note or refuse them, set ",
            tags.code("gateway.provider_tools"),
            " in config.yaml.",
        )
    rows: dict[tuple[Cell, ...], int] = {}
    for each in tools:
        row = each.provider, each.tool.kind.value, each.tool.host or None, "Refused" if each.refused else "Sent"
        rows[row] = rows.get(row, 0) + each.requests
    yield table("Tools that providers run", _TOOLS, ((*row, count) for row, count in rows.items()), "") if rows else ""
