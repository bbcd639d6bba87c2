"""The settings page: where each setting is changed, and the operator's passkeys."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.template import Flattenable, Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.authority import Passkey
from aileron.model.sessions import OperatorSession

from .blocks import Cell, act, answer, chip, facts, heading, page, part, quiet, table
from .parts import Fragment, Visit, template, titled
from .texts import moment

_PASSKEYS = template("passkeys.xml")


async def draw_passkeys(deps: Dependencies, visit: Visit) -> Fragment:
    """Draw the registered passkeys, the rule that requires them, and a form to add one."""
    keys, rule = deps.passkeys.passkeys(), deps.passkeys.passkey_rule()
    words = "No approval requires a passkey."
    if rule.everything:
        words = "Every approval requires a passkey."
    elif rule.actions:
        words = f"Approvals of these actions require a passkey: {visible(', '.join(rule.actions))}."
    return Fragment(
        _PASSKEYS,
        root=titled("Passkeys – Aileron", f"Passkeys: {len(keys) or 'none'}"),
        rule=words,
        none=not keys,
        items=[_passkey(key, deps.passkeys.site()) for key in keys],
    )


def _passkey(key: Passkey, site: str | None) -> dict[str, Flattenable]:
    elsewhere = "" if key.site == site else f"; cannot be used here, since it was made for {visible(key.site)}"
    return {"name": visible(key.name), "made_at": moment(key.made_at), "elsewhere": elsewhere}


_LOCK = "Confirm: lock the vault and end all logins"


async def draw_settings(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the settings page: the daemon, its vault, audit record and logins."""
    logins = deps.operators.list()
    return page(
        "Settings",
        "Settings",
        heading("Settings"),
        quiet(
            "To change other settings, edit ", tags.code("config.yaml"), " in your Aileron home, then trust the file."
        ),
        tags.p(answer()),
        facts(_daemon(deps)),
        tags.h2("Vault"),
        tags.p(
            tags.span(chip(deps.vault.state().value.capitalize(), "good"), **{"data-part": "vault"}),
            " ",
            act("Lock vault", "POST /v1/vault/lock", sure=_LOCK, name="lock"),
        ),
        quiet(
            "Locking the vault ends the logins of terminals; browsers can then only watch. Pending approvals are kept."
        ),
        tags.h2("Audit log"),
        part("record", facts(_record(deps))),
        *[part for draw in deps.features.features.slots("settings") for part in await draw(deps, visit, None)],
        tags.h2("Logins"),
        table(
            "Logins",
            ("Login", "Client", "Can", "Started", "Last used", "Decides until", ""),
            _logins(logins, visit.operator),
            "",
        ),
        tags.p(act("End all other logins", "DELETE /v1/operator/sessions", name="end-others")),
        tags.h2("Passkeys"),
        tags.p(tags.a("Require your passkey for approvals", href="/settings/passkeys")),
    )


def _daemon(deps: Dependencies) -> Iterator[tuple[str, Cell]]:
    yield "Version", deps.version
    yield "Started", deps.started_at


def _record(deps: Dependencies) -> Iterator[tuple[str, Cell]]:
    latest = deps.signer.latest
    yield "Signed by", deps.signer.fingerprint or "No key yet: the vault has never been unlocked"
    yield "Signed up to", None if latest is None else f"record {latest.sequence:,}"
    yield "Signs of tampering since the daemon started", deps.signer.tampered


def _logins(logins: tuple[OperatorSession, ...], own: OperatorSession) -> Iterator[tuple[Cell, ...]]:
    for each in logins:
        where = "Browser" if each.browser else "Terminal"
        end = act("End login", f"DELETE /v1/operator/sessions/{each.id}", name=f"end-{each.id}")
        name = f"{each.id} (this login)" if each.id == own.id else each.id
        can, until = ("Decide", each.expires_at) if each.decides else ("Watch", None)
        yield name, where, can, each.started_at, each.used_at, until, "" if each.id == own.id else end
