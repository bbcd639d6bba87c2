"""The inbox on a phone: the pages at a public host name, at which a person signs in and approves with a passkey.

They have a listener of their own, separate from both sites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command

if TYPE_CHECKING:
    from aileron.features.core import Core


class Phone(Feature):
    """The feature that serves the operator's pages to a phone, at a public host name."""

    name = "phone"
    summary = "Serves your inbox to your phone, at a name of yours."
    targets: ClassVar[Mapping[str, str]] = {"phone://": "certificate of the public name"}

    def commands(self) -> Mapping[str, Command]:
        return {"phone": Command("aileron.features.phone.commands:phone", "Decide")}

    def settings(self) -> Mapping[str, Any]:
        from .settings import PHONE

        return {"phone": PHONE}

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "phone.certificate_set": EventName("Certificate of the public name set", "logins"),
            "phone.pairing_begun": EventName("Phone pairing started", "logins"),
            "phone.pairing_opened": EventName("Phone opened the pairing code", "logins"),
            "phone.pairing_refused": EventName("Phone pairing refused", "logins", "bad"),
        }

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        from .routes import STATUS

        return {"status": {"phone": STATUS}}

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        from .doctor import find_problems

        return (find_problems,)

    async def start(self, core: Core) -> RunningFeature | None:
        settings = core.settings.get("phone")
        if settings is None:
            return None
        from .running import start_phone

        return start_phone(core, settings)


FEATURE = Phone()
