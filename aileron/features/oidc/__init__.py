"""Sign-in with a provider by OpenID Connect: people sign in where they always do, and groups give roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command

if TYPE_CHECKING:
    from aileron.features.core import Core


class Oidc(Feature):
    """The feature with which people sign in at the public name with a provider, such as Keycloak or Google."""

    name = "oidc"
    summary = "Lets people sign in with your company's provider, by OpenID Connect."
    needs: ClassVar[Sequence[str]] = ("people",)
    targets: ClassVar[Mapping[str, str]] = {"oidc://": "client secret of the sign-in provider"}

    def commands(self) -> Mapping[str, Command]:
        return {"oidc": Command("aileron.features.oidc.commands:oidc", "Decide")}

    def settings(self) -> Mapping[str, Any]:
        from .settings import OIDC

        return {"oidc": OIDC}

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "oidc.withdrawn": EventName("Sign-in withdrawn by the provider", "logins", "bad"),
            "oidc.allowed": EventName("Removed person may sign in again", "logins"),
        }

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        from .routes import STATUS

        return {"status": {"oidc": STATUS}}

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        from .doctor import find_problems

        return (find_problems,)

    async def start(self, core: Core) -> RunningFeature | None:
        settings = core.settings.get("oidc")
        if settings is None:
            return None
        from .running import start_oidc

        return start_oidc(core, settings)


FEATURE = Oidc()
