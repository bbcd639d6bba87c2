"""Actions: which there are, whether they are on, and one as the model sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.errors import NotFound
from aileron.values import Action, ApprovalRule, Cap, Input, LoadError, Offer, Run, RunQuery, visible

from ._blocks import (
    Cell,
    Part,
    act,
    answer,
    back,
    chip,
    draw_whole,
    facts,
    heading,
    link,
    page,
    quiet,
    table,
)
from ._parts import Drawing, Visit
from ._runs_page import runs_table

_FEW = 5
_DAY_SECONDS = 86400


async def draw_actions(deps: Dependencies, visit: Visit) -> Tag:
    """Draw what agents can ask for."""
    offering = deps.submission.offering()
    offers = [offer for _, offer in sorted(offering.offers.items())]
    return page(
        "Actions",
        f"{len(offers)} actions",
        heading("What agents can ask for"),
        tags.p(answer()),
        table("Actions", ("Action", "Asks you", "Does", "State", ""), map(_row, offers), "No action can run."),
        *problems(offering.load_errors),
    )


async def draw_action(deps: Dependencies, visit: Visit, name: str) -> Drawing:
    """One action."""
    offer = deps.submission.offering().offers.get(name)
    if offer is None:
        raise NotFound("There is no action of this name.")
    found = await deps.submission.runs(RunQuery(action=name, limit=_FEW))
    return Drawing(lambda: _page(offer, found.items))


def _page(offer: Offer, runs: Iterable[Run]) -> Tag:
    action = offer.action
    return page(
        action.name,
        action.name,
        back("/actions", "All actions"),
        heading(action.name, action.version),
        tags.p(_state(offer), " ", _switch(offer), " ", answer()),
        facts(_about(offer)),
        tags.h2("What the model reads"),
        quiet("As the tool ", tags.code(visible(action.tool_name)), ", word for word."),
        draw_whole("body", action.body, "What the model reads"),
        tags.h2("What it takes"),
        table("Inputs", ("Name", "Type", "Needed", "Says"), map(_input, action.inputs), "Nothing."),
        _draw_asked(action.inputs),
        tags.details(
            tags.summary("As JSON Schema"),
            draw_whole("schema", dict(action.input_schema), "JSON Schema"),
            id="as-schema",
        ),
        tags.h2("What it does"),
        table("Steps", ("Step", "Operation", "Connector"), _steps(action), "Nothing."),
        tags.h2("Its last runs"),
        runs_table(runs, "The last runs"),
    )


def problems(errors: Iterable[LoadError]) -> Iterator[Part]:
    """Draw what could not be loaded, each with its place."""
    found = list(errors)
    if found:
        yield tags.h2("What could not be loaded")
        rows = ((each.file, each.line, each.message) for each in found)
        yield table("Files that are left out", ("File", "Line", "Why"), rows, "")


def limits(caps: Iterable[Cap]) -> str:
    """Limits in words."""
    return "; ".join(map(_limit, caps))


def _limit(cap: Cap) -> str:
    each = "" if cap.argument is None else f" for each {cap.argument}"
    own = " in each session" if cap.per_session else ""
    return f"{cap.most} a{' day' if cap.seconds >= _DAY_SECONDS else 'n hour'}{each}{own}"


def _row(offer: Offer) -> tuple[Cell, ...]:
    action = offer.action
    asks = "always" if action.approval.required else "never"
    return link(f"/actions/{action.name}", action.name), asks, _does(offer), _state(offer), _switch(offer)


def _does(offer: Offer) -> str:
    if offer.read_only:
        return "reads"
    return "changes something; twice is as once" if offer.idempotent else "changes something"


def _state(offer: Offer) -> Tag:
    return chip("on", "good") if offer.enabled else chip("off", "quiet")


def _switch(offer: Offer) -> Tag:
    name, words = offer.action.name, "Switch off" if offer.enabled else "Switch on"
    return act(words, f"PATCH /v1/actions/{name}", {"enabled": not offer.enabled}, name=f"switch-{name}")


def _about(offer: Offer) -> Iterator[tuple[str, Cell]]:
    action = offer.action
    yield "Source", action.source
    yield "Meant for", action.intent
    yield "Does", _does(offer)
    yield "Asks you", _asks(action.approval)
    yield "Limits", limits(action.caps)
    yield "Time", f"{action.timeout_seconds:g} s at most"
    yield "File", action.path
    yield "Digest", action.digest


def _asks(rule: ApprovalRule) -> str:
    if not rule.required:
        return "never"
    undo = f"; can be taken back for {rule.undo_seconds:g} s" if rule.undo_seconds else ""
    seconds = rule.expires_after_seconds
    ends = "" if seconds is None else f"; expires after {seconds:g} s"
    shown = "" if rule.preview is None else f"; shows you {rule.preview.operation} of {rule.preview.connector}"
    cancelled = "; taken back when the agent cancels its call" if rule.withdrawn_on_cancel else ""
    return f"always{shown}{undo}{ends}{cancelled}"


def _input(declared: Input) -> tuple[Cell, ...]:
    kind = declared.type if declared.items_type is None else f"{declared.type} of {declared.items_type}"
    return declared.name, kind, "yes" if declared.required else "no", declared.description


def _draw_asked(inputs: Iterable[Input]) -> Part:
    names = ", ".join(one.name for one in inputs if one.ask)
    if not names:
        return ""
    return quiet("Where its client can show you a form, the agent may leave to you: ", tags.code(visible(names)), ".")


def _steps(action: Action) -> Iterator[tuple[Cell, ...]]:
    for step in action.steps:
        yield step.id, step.operation, step.connector
