"""The page of settings: where each is changed, and the operator's passkeys."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.values import ChannelState, OperatorSession, visible

from ._blocks import Cell, Part, act, answer, chip, facts, heading, page, quiet, table
from ._parts import Fragment, Visit, template, titled
from ._texts import moment

_PASSKEYS = template("passkeys.xml")


async def draw_passkeys(deps: Dependencies, visit: Visit) -> Fragment:
    """Draw the passkeys that count, the rule, and a form to add one."""
    keys, rule = deps.passkeys.passkeys(), deps.passkeys.passkey_rule()
    words = "No approval needs one."
    if rule.everything:
        words = "Every approval needs one."
    elif rule.actions:
        words = f"Approvals of these actions need one: {visible(', '.join(rule.actions))}."
    return Fragment(
        _PASSKEYS,
        root=titled("Passkeys – Aileron", f"Passkeys: {len(keys) or 'none'}"),
        rule=words,
        none=not keys,
        items=[{"name": visible(key.name), "made_at": moment(key.made_at)} for key in keys],
    )


_LOCK = "What waits is kept, and every login ends: yours too. Sure?"


async def draw_settings(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the daemon, its vault, its record, its logins."""
    logins = deps.operators.list()
    return page(
        "Settings",
        "Settings",
        heading("What the daemon goes by"),
        quiet("What is not changed here is changed in ", tags.code("config.yaml"), " of your home, and trusted then."),
        tags.p(answer()),
        facts(_daemon(deps)),
        tags.h2("Vault"),
        tags.p(
            chip(deps.vault.state().value, "good"), " ", act("Lock it", "POST /v1/vault/lock", sure=_LOCK, name="lock")
        ),
        tags.h2("Record"),
        facts(_record(deps)),
        tags.h2("Notifications"),
        *_notifications(deps),
        tags.h2("Logins"),
        table("Logins", ("Login", "In", "Since", "Used", "Ends", ""), _logins(logins, visit.operator), ""),
        tags.p(act("End all the others", "DELETE /v1/operator/sessions", name="end-others")),
        tags.h2("Passkeys"),
        tags.p(tags.a("Have approvals need your passkey", href="/settings/passkeys")),
    )


def _daemon(deps: Dependencies) -> Iterator[tuple[str, Cell]]:
    yield "Version", deps.version
    yield "Runs since", deps.started_at


def _record(deps: Dependencies) -> Iterator[tuple[str, Cell]]:
    latest = deps.signer.latest
    yield "Signed by", deps.signer.fingerprint or "nobody yet: the vault was never open"
    yield "Signed up to", None if latest is None else f"record {latest.sequence:,}"
    yield "Signs of tampering in this life", deps.signer.tampered


def _notifications(deps: Dependencies) -> Iterator[Part]:
    channels = () if deps.notifier is None else deps.notifier.channels()
    heads = ("Channel", "Kind", "Sent", "Given up", "On their way", "Last problem")
    yield table("Channels", heads, map(_channel, channels), "None is configured: you are told here alone.")
    if channels:
        yield tags.p(act("Send a test by each", "POST /v1/notifications/test", name="try-channels"))


def _channel(state: ChannelState) -> tuple[Cell, ...]:
    return state.name, state.kind, state.sent, state.failed, state.waiting, state.problem or ""


def _logins(logins: tuple[OperatorSession, ...], own: OperatorSession) -> Iterator[tuple[Cell, ...]]:
    for each in logins:
        where = "a browser" if each.browser else "a terminal"
        end = act("End it", f"DELETE /v1/operator/sessions/{each.id}", name=f"end-{each.id}")
        name = f"{each.id} (this one)" if each.id == own.id else each.id
        yield name, where, each.started_at, each.used_at, each.ends_at, "" if each.id == own.id else end
