"""Which part of a room stands on which: a room's private modules compose its parts, which never import them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from ._source import Source

LAYERS: Mapping[str, tuple[str, ...]] = {
    "aileron.runner": (
        "tasks",
        "runs",
        "offerings",
        "session_filters",
        "plan",
        "outcomes",
        "call_digests",
        "rate_limits",
        "pauses",
        "shared_pauses",
        "effect_gate",
        "loops",
        "denials",
        "caps",
        "limits",
        "previews",
        "grant_terms",
        "decisions",
        "votes",
        "approval_requests",
        "approvals",
        "decision_service",
        "grants",
        "executor",
        "tool_reads",
        "scheduler",
        "reconciler",
        "recovery",
        "submission",
        "build",
    ),
}
"""By room, its parts (packages, or public modules), each of which may import those before it alone."""


def layers(source: Source) -> Iterator[str]:
    """Find imports that go up within a room: from a part to one above it, or to what composes the parts."""
    for room, parts in LAYERS.items():
        part = _part(source.name, room)
        if part is None:
            continue
        if part not in parts:
            yield f"{source.name} is in no layer of {room}"
            continue
        below = parts[: parts.index(part) + 1]
        for imported in source.imports:
            if _is_within(imported.path, room) and _part(imported.path, room) not in below:
                yield f"{source.name}:{imported.line} {imported.path} is above {part}"


def circles(sources: Iterable[Source]) -> Iterator[str]:
    """Find modules that import each other in a circle, be it for type checkers only."""
    modules = {source.name: source for source in sources if not source.is_package}
    needs = {
        name: {path for each in source.imports for path in (each.module, each.path) if path in modules}
        for name, source in modules.items()
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        yield " -> ".join(reversed(error.args[1]))


def _is_within(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def _part(name: str, room: str) -> str | None:
    """Name the part of C{room} that a module is in; L{None}: it is in none, for what composes them is private."""
    if not name.startswith(f"{room}."):
        return None
    first = name.removeprefix(f"{room}.").split(".")[0]
    return None if first.startswith("_") or first[0].isupper() else first
