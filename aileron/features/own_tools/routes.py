"""The route of own tools: launchers open services for the tools of a session."""

from __future__ import annotations

from typing import cast

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext, Schema
from aileron.api.faults import Answer, answer
from aileron.api.guard import Who
from aileron.api.routes.sessions import find_launched
from aileron.api.shapes.schemas import TEXT, list_of, made_of
from aileron.model.errors import NotFound

from .running import RunningOwnTools

TABLE = EndpointTable()

_NAMES: Schema = {**list_of({"type": "string", "minLength": 1, "maxLength": 64}), "minItems": 1, "maxItems": 20}
_OPENED = made_of(
    {
        "certificate": {**TEXT, "description": "the certificate of the session's authority, as PEM"},
        "hosts": {**list_of(TEXT), "description": "with a port unless that is 443"},
        "services": list_of(made_of({"name": TEXT, "connector": TEXT})),
        "variables": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "environment variables for tools, each with a placeholder for the credential",
        },
    }
)


@TABLE.route(
    "GET",
    "/v1/sessions/<session_id>/own-tools",
    agents=Who.LAUNCH,
    answers={200: made_of({"services": list_of(TEXT)})},
)
async def read_own_tools(context: RequestContext, deps: Dependencies, session_id: str) -> Answer:
    """Return the services that C{config.yaml} has for the session's directory. None of them is opened.

    :raises NotFound: if the session does not exist, has ended or belongs to an account.
    """
    session = await find_launched(deps, session_id)
    return answer({"services": list(_find_tools(deps).settings.find_services(session.working_dir))})


@TABLE.route(
    "POST",
    "/v1/sessions/<session_id>/own-tools",
    agents=Who.LAUNCH,
    body=made_of({"services": _NAMES}),
    answers={200: _OPENED},
)
async def open_own_tools(context: RequestContext, deps: Dependencies, session_id: str) -> Answer:
    """Open services for the tools of a session, such as C{gh}.

    The session's connections to the services' hosts are then answered by Aileron, with certificates of an authority
    that is valid for these hosts only. The first call fixes the services. An equal call returns the same.

    :raises NotFound: if the session does not exist, has ended or belongs to an account, or a service was not added.
    :raises BindingRequired: if no credential is bound to a service.
    :raises Conflict: if other services were opened for this session, or the daemon was restarted since.
    :raises StoreUnavailable: if the audit log cannot be written.
    """
    await find_launched(deps, session_id)
    tools = _find_tools(deps)
    opened = await tools.sessions.open(session_id, tuple(cast("list[str]", context.body["services"])))
    try:
        await find_launched(deps, session_id)
    except NotFound:
        tools.sessions.end(session_id)  # the session ended meanwhile, before its services were opened
        raise
    return answer(
        {
            "certificate": opened.authority.pem,
            "hosts": sorted(opened.hosts),
            "services": [{"name": each.name, "connector": each.connector} for each in opened.services],
            "variables": {name: value for each in opened.services for name, value in each.variables.items()},
        }
    )


def _find_tools(deps: Dependencies) -> RunningOwnTools:
    tools = deps.features.find(RunningOwnTools)
    if tools is None:
        raise NotFound("This daemon opens no services for the tools of agents.")
    return tools
