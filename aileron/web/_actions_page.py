"""The pages of actions: the list with each action's state, and one action as the model sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.load_error import LoadError
from aileron.base.text import duration, visible
from aileron.model.actions import Action, ApprovalRule, Cap, Input, Offer, is_action_name
from aileron.model.errors import NotFound
from aileron.model.queries import RunQuery

from ._runs_page import Lane, read_lanes, runs_table
from .blocks import (
    Cell,
    Part,
    act,
    answer,
    back,
    chip,
    command_line,
    copied,
    draw_whole,
    empty,
    facts,
    heading,
    link,
    page,
    quiet,
    table,
)
from .parts import Drawing, Visit
from .texts import count

_FEW = 5
_DAY_SECONDS = 86400


async def draw_actions(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the list of actions that agents can call."""
    offering = deps.submission.offering()
    offers = [offer for _, offer in sorted(offering.offers.items())]
    return page(
        "Actions",
        count(len(offers), "action", "actions"),
        heading("Actions"),
        quiet("What agents can request. An action is a file that has an effect once you trust it."),
        tags.p(tags.a("New action", href="/actions/_new", id="new-action", **{"class": "button"}), " ", answer()),
        *_warn_unasked(offers),
        table("Actions", ("Action", "Approval", "Effect", "State", ""), map(row, offers), _draw_nothing(deps)),
        *problems(offering.load_errors),
    )


def _warn_unasked(offers: Iterable[Offer]) -> Iterator[Part]:
    """Draw a warning that names the enabled actions that make changes without asking, if there are any."""
    found = [offer.action.name for offer in offers if not (offer.read_only or offer.action.approval.gated)]
    if found:
        make = "makes" if len(found) == 1 else "make"
        links = [part for name in found for part in (", ", link(f"/actions/{name}", name))][1:]
        words = tags.strong(*links), f" {make} changes without asking you."
        yield tags.p(*words, id="unasked", **{"class": "banner amber"})


def _draw_nothing(deps: Dependencies) -> Tag:
    """Draw the page for an empty list of actions: how to add one."""
    steps = (*deps.features.features.next_steps("empty"), "aileron action add FILE")
    return empty(
        "No actions yet",
        tags.p("Agents can request only what an action describes. Add one in your terminal, or write one here."),
        *map(command_line, steps),
        tags.p(link("/trust", "Files to review"), " · ", link("/actions/_new", "New action")),
    )


async def draw_action(deps: Dependencies, visit: Visit, name: str) -> Drawing:
    """Draw the page of one action.

    :raises NotFound: if no action has this name.
    """
    offer = deps.submission.offering().offers.get(name)
    if offer is None:
        raise NotFound("No action has this name.")
    found = await deps.submission.runs(RunQuery(action=name, limit=_FEW))
    lanes = await read_lanes(deps, found.items)
    return Drawing(lambda: _page(offer, lanes))


def _page(offer: Offer, lanes: Sequence[Lane]) -> Tag:
    action = offer.action
    return page(
        action.name,
        action.name,
        back("/actions", "All actions"),
        heading(action.name, action.version),
        tags.p(_state(offer), " ", _switch(offer), *_ways(action.name), " ", answer()),
        facts(_about(offer)),
        tags.h2("Tool description"),
        quiet("Shown to the model, word for word, as the tool ", tags.code(visible(action.tool_name)), "."),
        draw_whole("body", action.description, "Tool description"),
        tags.h2("Arguments"),
        table("Arguments", ("Name", "Type", "Required", "Description"), map(_input, action.inputs), "No arguments"),
        _draw_asked(action.inputs),
        tags.details(
            tags.summary("JSON Schema"),
            draw_whole("schema", dict(action.input_schema), "JSON Schema"),
            id="as-schema",
        ),
        tags.h2("Steps"),
        table("Steps", ("Step", "Operation", "Connector"), _steps(action), "No steps"),
        tags.h2("Recent runs"),
        runs_table(lanes, "Recent runs"),
    )


def _ways(name: str) -> Iterator[Part]:
    yield from (" ", link(f"/actions/{name}/edit", "Edit"), " ", link(f"/actions/{name}/try", "Try it"))


def problems(errors: Iterable[LoadError]) -> Iterator[Part]:
    """Draw the files that failed to load, each with its path and error."""
    found = list(errors)
    if found:
        yield tags.h2("Load errors")
        rows = ((each.file, each.line, each.message, _repair(each)) for each in found)
        yield table("Files that could not be loaded", ("File", "Line", "Reason", ""), rows, "")


def _repair(error: LoadError) -> Cell:
    """Draw a link to the editor, if the error is in a file of an action whose name is valid. Else draw nothing."""
    name = error.file.rpartition("/")[2].removesuffix(".md")
    return tags.span(*_ways(name)) if error.boundary == "action" and is_action_name(name) else ""


def limits(caps: Iterable[Cap]) -> str:
    """Return the caps of an action, which limit how often it runs, as text."""
    return "; ".join(map(_limit, caps))


def _limit(cap: Cap) -> str:
    each = "" if cap.argument is None else f" per {cap.argument}"
    own = " per session" if cap.per_session else ""
    return f"{cap.most} per {'day' if cap.seconds >= _DAY_SECONDS else 'hour'}{each}{own}"


def row(offer: Offer) -> tuple[Cell, ...]:
    """Draw an action as a table row: its name, approval, effect, state and switch."""
    action = offer.action
    asks = "Required" if action.approval.gated else "Not required"
    return link(f"/actions/{action.name}", action.name), asks, _does(offer), _state(offer), _switch(offer)


def _does(offer: Offer) -> str:
    if offer.read_only:
        return "Read-only"
    return "Makes changes (idempotent)" if offer.idempotent else "Makes changes"


def _state(offer: Offer) -> Tag:
    return chip("Enabled", "good") if offer.enabled else chip("Disabled", "quiet")


def _switch(offer: Offer) -> Tag:
    name, words = offer.action.name, "Disable" if offer.enabled else "Enable"
    return act(words, f"PATCH /v1/actions/{name}", {"enabled": not offer.enabled}, name=f"switch-{name}")


def _about(offer: Offer) -> Iterator[tuple[str, Cell]]:
    action = offer.action
    yield "Source", action.source
    yield "Intended for", action.intent
    yield "Effect", _does(offer)
    yield "Approval", _asks(action.approval)
    yield (
        "Undone by",
        None if action.inverse is None else link(f"/actions/{action.inverse.action}", action.inverse.action),
    )
    yield "Limits", limits(action.limits)
    yield "Timeout", duration(action.timeout_seconds)
    yield "File", action.path
    yield "Digest", copied(action.digest, "digest")


def _asks(rule: ApprovalRule) -> str:
    if not rule.gated:
        return "Not required"
    undo = f"; can be undone for {duration(rule.undo_seconds)}" if rule.undo_seconds else ""
    seconds = rule.expires_after_seconds
    ends = "" if seconds is None else f"; expires after {duration(seconds)}"
    shown = "" if rule.preview is None else f"; with a preview by {rule.preview.operation} of {rule.preview.connector}"
    cancelled = "; cancelled when the agent cancels its call" if rule.withdrawn_on_cancel else ""
    replaced = "; replaced by an identical later request" if rule.replaced_on_repeat else ""
    by = f"; by {', '.join(rule.by)}" if rule.by else ""
    several = f" of {rule.count} people" if rule.count > 1 else ""
    other = "; not by the requester" if rule.not_requester else ""
    return f"Required{several}{by}{other}{shown}{undo}{ends}{cancelled}{replaced}"


def _input(declared: Input) -> tuple[Cell, ...]:
    kind = declared.type if declared.items_type is None else f"{declared.type} of {declared.items_type}"
    return declared.name, kind, "Yes" if declared.required else "No", declared.description


def _draw_asked(inputs: Iterable[Input]) -> Part:
    names = ", ".join(one.name for one in inputs if one.ask)
    if not names:
        return ""
    return quiet("If its client can show forms, the agent may ask you for: ", tags.code(visible(names)), ".")


def _steps(action: Action) -> Iterator[tuple[Cell, ...]]:
    for step in action.steps:
        yield step.id, step.operation, step.connector
