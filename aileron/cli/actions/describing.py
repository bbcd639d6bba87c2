"""One connector, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aileron.cli._output import heading, table, values


def show_one(found: Mapping[str, Any], state: str | None) -> None:
    """Print what the daemon tells of one connector.

    :param state: how its file stands to what is trusted, or L{None}: it comes with the program.
    """
    heading("{name} {version}", name=found["name"], version=found["version"])
    chosen = " (a binding may choose another)" if found["bindable"] else ""
    values(
        {
            "state": state or "comes with Aileron or a plugin",
            "content": found["content_hash"],
            "address": f"{found['base_url']}{chosen}",
            "may send to": ", ".join(found["hosts"]),
            "credential": _credential(found.get("credential")),
        },
        "  ",
    )
    heading("What it can do")
    table(("OPERATION", "EFFECT", "ONCE MORE", "SECONDS", "MEANING"), [_row(each) for each in found["operations"]])


def _credential(need: Mapping[str, Any] | None) -> str:
    return "none" if need is None else f"{need['kind']}, in {need['header']}"


def _row(operation: Mapping[str, Any]) -> tuple[object, ...]:
    found = "can be looked for" if operation["reconcilable"] else "never by itself"
    again = "does no harm" if operation["idempotent"] else found
    seconds = f"{operation['timeout_seconds']:g}"
    return (operation["name"], operation["effect"], again, seconds, operation["description"] or None)
