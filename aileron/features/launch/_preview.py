"""The preview of a launch, for people and programs. All secrets are replaced by placeholders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from aileron.base.json import JSON, plain
from aileron.redaction import is_secret

from .agent import Agent
from .formats import parse_jsonc
from .plan import DaemonFacts, LaunchPlan, prepare
from .registration import GatewayAccess, Invocation

TOKEN_STAND_IN = "<the session's token>"  # not a valid token
GATEWAY_KEY_STAND_IN = "<the session's gateway key>"
IN_BAND_KEY_STAND_IN = "<the session's in-band key>"
DIRECTORY_STAND_IN = "/tmp/aileron-agent-XXXXXXXX"  # noqa: S108  # nothing lies there

_YOURS, _CHANGED = "<as you have it>", "<yours, changed>"
_SHORTEST_SECRET = 6


@frozen
class LaunchPreview:
    """A preview of a launch: what would run and be written, without secrets.

    :ivar argv: the command that would run.
    :ivar directory: the working directory.
    :ivar added: variables that would be added to the user's environment or changed, by name.
    :ivar removed: the names of the variables that the agent would not get.
    :ivar files: the texts of the files that would be written, by path.
    :ivar gateway: the gateway's URL and each provider's upstream, or None if LLM traffic would not be routed.
    :ivar notes: the messages that the user would see.
    """

    argv: tuple[str, ...]
    directory: str
    added: Mapping[str, str]
    removed: tuple[str, ...]
    files: Mapping[str, str]
    gateway: Mapping[str, Any] | None
    notes: tuple[str, ...]


def preview_launch(
    agent: Agent,
    invocation: Invocation,
    facts: DaemonFacts,
    interpreter: str,
    *,
    through_gateway: bool = True,
    sandboxed: bool = False,
    prompts: bool | None = None,
    wake: bool | None = None,
) -> LaunchPreview:
    """Return the preview of a launch. Nothing is started, opened or written.

    :param facts: facts about the daemon. The launch key is not used.
    :param prompts: see L{Launcher.launch}.
    :param wake: see L{Launcher.launch}.
    :raises Forbidden: if the vault's passphrase is in the environment.
    :raises NotFound: if a program is not installed.
    :raises InvalidRequest: if the user's own settings cannot be extended.
    """
    key = IN_BAND_KEY_STAND_IN if agent.in_band else GATEWAY_KEY_STAND_IN
    gateway = facts.gateway(key, notes_tools=sandboxed) if through_gateway else None
    prepared = prepare(agent, invocation, interpreter)
    plan = prepared.plan(
        facts.url, TOKEN_STAND_IN, gateway, DIRECTORY_STAND_IN, facts.prompts(prompts), facts.wake(wake)
    )
    return describe(plan, invocation, gateway)


def describe(plan: LaunchPlan, invocation: Invocation, gateway: GatewayAccess | None) -> LaunchPreview:
    """Return the preview of a plan.

    The plan must contain placeholders for the session's secrets. The user's own secrets, recognised by the names and
    values of their variables, are replaced by C{<NAME>}. If Aileron extends a variable, only the addition is shown.

    :param gateway: the gateway that the plan uses, or None.
    """
    theirs = invocation.environment
    secrets = {
        value: f"<{name}>"
        for name, value in theirs.items()
        if len(value) >= _SHORTEST_SECRET and is_secret(name, value)
    }

    def safe(text: str) -> str:
        for secret, stand_in in secrets.items():
            text = text.replace(secret, stand_in)
        return text

    changed = {name: value for name, value in plan.environment.items() if theirs.get(name) != value}
    return LaunchPreview(
        argv=tuple(map(safe, plan.argv)),
        directory=invocation.directory,
        added={name: safe(_addition(theirs.get(name, ""), value)) for name, value in sorted(changed.items())},
        removed=tuple(sorted(set(theirs) - set(plan.environment))),
        files={f"{plan.directory}/{name}": safe(text) for name, text in sorted(plan.files.items())},
        gateway=None if gateway is None else {"url": gateway.url, "upstreams": dict(_routes(gateway))},
        notes=tuple(map(safe, plan.notes)),
    )


def _routes(gateway: GatewayAccess) -> Iterator[tuple[str, str]]:
    for name, upstream in sorted(gateway.upstreams.items()):
        whose = "key from the vault" if upstream.injected else "the agent's own key"
        yield name, f"{upstream.base_url}, {whose}"


def _addition(before: str, after: str) -> str:
    """Return the part of C{after} that Aileron adds to the user's value C{before}."""
    ours = _object(after)
    if not before.strip():
        return after if ours is None else _indent(ours)
    if ours is not None:
        theirs = _object(before)
        return _CHANGED if theirs is None else _indent(_new(theirs, ours))
    return after.replace(before, _YOURS) if before in after else _CHANGED


def _new(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the members of C{after} that C{before} lacks or has with other values."""
    new: dict[str, JSON] = {}
    for name, each in after.items():
        old = before.get(name)
        if not isinstance(each, Mapping) or not isinstance(old, Mapping):
            if name not in before or each != old:
                new[name] = each
        elif inner := _new(old, each):
            new[name] = inner
    return new


def _object(text: str) -> Mapping[str, JSON] | None:
    try:
        value = parse_jsonc(text)
    except ValueError:
        return None
    return value if isinstance(value, Mapping) else None


def _indent(value: Mapping[str, JSON]) -> str:
    return json.dumps(plain(value), indent=2)
