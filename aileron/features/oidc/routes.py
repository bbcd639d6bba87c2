"""The operator's routes about the sign-in with a provider."""

from __future__ import annotations

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.shapes.schemas import BOOLEAN, TEXT, list_of, made_of, or_null
from aileron.base.json import JSON
from aileron.model.errors import NotFound

from .running import RunningOidc
from .values import TARGET

TABLE = EndpointTable()
STATUS = made_of({"issuer": TEXT, "redirect_uri": TEXT, "problem": or_null(TEXT)})

_PROVIDER = made_of(
    {
        "issuer": TEXT,
        "redirect_uri": TEXT,
        "problem": or_null(TEXT),
        "has_secret": BOOLEAN,
        "removed": {**list_of(TEXT), "description": "names of removed accounts, which may not sign in again"},
    }
)
_NONE = "No sign-in provider is in force. Set phone.public_url and oidc in config.yaml."


@TABLE.route("GET", "/v1/oidc", operators=READERS, answers={200: _PROVIDER})
async def show_provider(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the sign-in provider, and the removed accounts that may not sign in again.

    :raises NotFound: if there is no provider.
    """
    running = _running(deps)
    removed: list[JSON] = [*sorted(running.accounts.list_removed().values())]
    has_secret = bool(deps.bindings.for_connector(TARGET))
    return answer({**running.describe(), "has_secret": has_secret, "removed": removed})


@TABLE.route("DELETE", "/v1/oidc/removed/<name>", operators=Who.OPERATOR, answers={200: made_of({"name": TEXT})})
async def allow_again(context: RequestContext, deps: Dependencies, name: str) -> Answer:
    """Allow a person to sign in with the provider again after their account was removed.

    :raises NotFound: if there is no such removed account, or no provider.
    :raises VaultLocked, BindingFailed, StoreUnavailable: if it cannot be stored or recorded.
    """
    await _running(deps).accounts.allow(name)
    await deps.access_log.record("oidc.allowed", context.caller.actor, {"name": name})
    return answer({"name": name})


def _running(deps: Dependencies) -> RunningOidc:
    found = deps.features.find(RunningOidc)
    if found is None:
        raise NotFound(_NONE)
    return found
