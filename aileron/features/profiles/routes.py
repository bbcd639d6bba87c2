"""The routes of profiles: list them, and preview which actions a session would have."""

from __future__ import annotations

from attrs import evolve

from aileron.api.endpoint import Dependencies, EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS, Who
from aileron.api.routes.sessions import AGENT_NAME, DIRECTORY, PROFILE, SELECTION, restrict_session
from aileron.api.shapes.schemas import COUNT, TEXT, list_of, made_of
from aileron.base.json import JSON
from aileron.model.sessions import Session

from .running import RunningProfiles

TABLE = EndpointTable()

_SELECTORS = list_of(TEXT)
_PROFILE = made_of(
    {
        "name": TEXT,
        "allow": _SELECTORS,
        "deny": _SELECTORS,
        "agents": _SELECTORS,
        "projects": _SELECTORS,
        "actions": list_of(TEXT),
    }
)
_PREVIEW = made_of({"profile": TEXT, "actions": list_of(TEXT), "hidden": COUNT})


@TABLE.route("GET", "/v1/profiles", operators=READERS, answers={200: made_of({"items": list_of(_PROFILE)})})
async def list_profiles(context: RequestContext, deps: Dependencies) -> Answer:
    """List the profiles of config.yaml, each with the names of the actions that it allows now."""
    running = deps.features.find(RunningProfiles)
    profiles = {} if running is None else running.settings.profiles
    found: list[JSON] = []
    for profile in profiles.values():
        session = evolve(_blank(context, deps), profile=profile.name)
        offers = deps.filters.narrow(session, deps.submission.offering()).offers
        found.append(
            {
                "name": profile.name,
                "allow": list(profile.selection.allow),
                "deny": list(profile.selection.deny),
                "agents": list(profile.agents),
                "projects": list(profile.projects),
                "actions": sorted(offers),
            }
        )
    return answer({"items": found})


@TABLE.route(
    "POST",
    "/v1/profiles/preview",
    agents=Who.LAUNCH,
    body=made_of({"agent": AGENT_NAME}, {"working_dir": DIRECTORY, "profile": PROFILE, "selection": SELECTION}),
    answers={200: _PREVIEW},
)
async def preview(context: RequestContext, deps: Dependencies) -> Answer:
    """Return the profile and the actions that a new session of this agent would have. Nothing is stored.

    :raises InvalidRequest: if there is no such profile.
    """
    session = deps.filters.open(restrict_session(_blank(context, deps), context.body))
    offering = deps.submission.offering()
    offers = deps.filters.narrow(session, offering).offers
    hidden = len(offering.offers) - len(offers)
    return answer({"profile": session.profile, "actions": sorted(offers), "hidden": hidden})


def _blank(context: RequestContext, deps: Dependencies) -> Session:
    """Return a session for a preview, with the agent and directory in the body of the request. It is never stored."""
    now = deps.now()
    return Session("", context.text("agent") or "", context.text("working_dir") or "", started_at=now, seen_at=now)
