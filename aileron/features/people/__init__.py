"""Accounts of people: each signs in at the public name with a name and a passphrase, and has a role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command

if TYPE_CHECKING:
    from aileron.features.core import Core


class People(Feature):
    """The feature that lets several people use one daemon, each with an account of their own."""

    name = "people"
    summary = "Lets several people decide, each with an account and a role, at a name of yours."
    needs: ClassVar[Sequence[str]] = ("phone",)

    def commands(self) -> Mapping[str, Command]:
        return {"people": Command("aileron.features.people.commands:people", "Decide")}

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "people.added": EventName("Account added", "logins"),
            "people.invited": EventName("Account invited again", "logins"),
            "people.joined": EventName("Passphrase of an account set", "logins"),
            "people.role_changed": EventName("Role of an account changed", "logins"),
            "people.groups_changed": EventName("Groups of an account changed", "logins"),
            "people.removed": EventName("Account removed", "logins"),
            "people.passkey_added": EventName("Passkey of an account added", "logins"),
            "people.passkey_removed": EventName("Passkey of an account removed", "logins"),
        }

    def routes(self) -> Sequence[Any]:
        from .own_routes import TABLE as OWN
        from .routes import TABLE

        return (TABLE, OWN)

    def pages(self) -> Mapping[str, Callable[..., Any]]:
        from .own_page import draw_own_account
        from .page import draw_people

        return {"/settings/people": draw_people, "/settings/account": draw_own_account}

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .own_page import draw_own_link
        from .page import draw_link

        return {"settings": draw_link, "approvals_end": draw_own_link}

    async def start(self, core: Core) -> RunningFeature | None:
        from .running import start_people

        return start_people(core)


FEATURE = People()
