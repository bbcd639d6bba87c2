"""The page of accounts, and the link to it on the settings page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.errors import Forbidden
from aileron.model.people import PersonAccount, Role
from aileron.web.blocks import Cell, Part, act, answer, chip, command_line, heading, page, quiet, table
from aileron.web.parts import Visit

from .running import RunningPeople

_NO_NAME = "People sign in at a public name, and none is configured. Add phone.public_url to config.yaml."
_COLUMNS = ("Name", "Role", "Groups", "State", "Passkeys", "Since", "")
_CHIPS = {
    "active": ("Active", "good"),
    "invited": ("Invited", "waits"),
    "altered": ("Altered outside of Aileron", "bad"),
}


async def draw_link(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the link to the accounts on the settings page, or nothing if there is no public name."""
    if deps.features.find(RunningPeople) is None:
        return ()
    return [tags.h2("People"), tags.p(tags.a("Let others decide too, each with an account", href="/settings/people"))]


async def draw_people(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the accounts, with buttons that change roles and remove accounts.

    :raises Forbidden: if the login may not manage accounts.
    """
    running = deps.features.find(RunningPeople)
    if running is None:
        return page("People", "People", heading("People"), quiet(_NO_NAME))
    # guard of roles: the page of accounts is for administrators -> features.people.test_routes.PageTests.test_roles
    if visit.operator.passkey is not None or visit.role not in (None, Role.ADMINISTRATOR):
        raise Forbidden("Accounts are managed at the desk, or by an administrator.")
    accounts = await running.accounts.list()
    return page(
        "People",
        "People",
        heading("People"),
        quiet("Each person signs in at ", tags.code(visible(running.public_url)), " with a name and a passphrase."),
        tags.p(answer()),
        table("People", _COLUMNS, _draw_rows(running, accounts), "No accounts: you decide alone."),
        quiet("A viewer sees requests. An approver also decides. An administrator also manages accounts. To add one:"),
        command_line("aileron people add NAME --role approver"),
    )


def _draw_rows(running: RunningPeople, accounts: Sequence[PersonAccount]) -> Iterator[tuple[Cell, ...]]:
    for each in accounts:
        # guard of roles: the name in a forged row leads a button nowhere else
        #    -> features.people.test_routes.PageTests.test_forged_name, instead path = f"/v1/people/{each.name}"
        path = f"/v1/people/{quote(each.name, safe='', errors='replace')}"
        buttons = [
            act(
                f"Make {role.value}",
                f"POST {path}/role",
                {"role": role.value},
                sure=f"Confirm: make {role.value}",
                name=f"{role.value}-{each.name}",
            )
            for role in Role
            if role is not each.role
        ]
        remove = act("Remove", f"DELETE {path}", sure=f"Confirm: remove {each.name}", name=f"remove-{each.name}")
        yield (
            each.name,
            each.role.value.capitalize(),
            ", ".join(each.groups),
            chip(*_CHIPS[running.describe(each)]),
            len(each.passkeys) or None,
            each.created_at,
            tags.span(*(part for button in buttons for part in (button, " ")), remove),
        )
