"""The pages on which the operator writes an action and previews its requests before trusting it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from twisted.web.template import Tag, tags

from aileron.actions.drafting import example, text_of
from aileron.api import Dependencies, read_body
from aileron.base.text import visible
from aileron.model.actions import Offer
from aileron.model.errors import InvalidRequest, NotFound
from aileron.review import RequestReview

from .approvals.decision import edit_fields
from .approvals.page import (
    draw_facts,
    draw_payload,
    draw_requests,
    draw_warnings,
    headline,
    origin,
)
from .blocks import heading, link, quiet
from .parts import Drawing, Fragment, Visit, template, titled

_EDITOR, _TRY = template("action_editor.xml"), template("action_try.xml")
_UNSEEN = "Contains characters that are invisible here. The trust page shows them."


async def draw_new(deps: Dependencies, visit: Visit) -> Fragment:
    """Draw the editor with the template that C{aileron action new} starts from."""
    return _editor("", text_of(example("my-action")), None)


async def draw_edit(deps: Dependencies, visit: Visit, name: str) -> Drawing:
    """Draw the editor with the action's file from disk.

    :raises NotFound: if there is no such file.
    :raises Forbidden, InvalidRequest: if the file is a link or too large.
    """
    found = deps.action_files.read(name)
    if found is None:
        raise NotFound("No action file has this name.")
    text, digest = found.text, found.digest
    return Drawing(lambda: _editor(name, text, digest))


def _editor(name: str, text: str, before: str | None) -> Fragment:
    """Draw the editor. The text is stored as JSON in an attribute, from which the script fills the field."""
    title, plainly = name or "New action", text.replace("\r\n", "\n").replace("\t", " ")
    slots = {"name": visible(name), "text": json.dumps(text), "before": json.dumps(before)}
    return Fragment(
        _EDITOR,
        root=titled(f"Edit {visible(title)} – Aileron", f"Edit {visible(title)}"),
        heading=heading(title),
        unseen=quiet("" if visible(plainly, multiline=True) == plainly else _UNSEEN),
        form=lambda tag: tag.fillSlots(**slots),
    )


async def draw_try(deps: Dependencies, visit: Visit, name: str) -> Drawing:
    """Draw the form of an action's arguments, as its file on disk declares them.

    :raises NotFound: if there is no such file, or it has errors.
    :raises Forbidden, InvalidRequest: if the file is a link or too large.
    """
    found = deps.action_files.read(name)
    action = None if found is None else found.action
    if action is None:
        raise NotFound("No action has this name, or its file has errors.")
    usual = {one.name: one.default for one in action.inputs if one.has_default}
    place = f"/actions/{visible(action.name)}"
    return Drawing(
        lambda: Fragment(
            _TRY,
            root=titled(f"Try {visible(action.name)} – Aileron", f"Try {visible(action.name)}"),
            edit=link(f"{place}/edit", "Edit"),
            trust=link(f"/trust?action={action.name}", "Review and trust"),
            heading=heading(f"Try {action.name}"),
            form=lambda tag: tag.fillSlots(place=f"/fragments{place}/try"),
            fields=edit_fields(action, usual),
        )
    )


async def draw_dry_run(deps: Dependencies, visit: Visit, name: str) -> Drawing:
    """Draw the approval of a call with the arguments in the request body, without running it.

    If the arguments are not valid, draw the problems.

    :raises NotFound: if there is no such action.
    :raises BindingRequired, CapabilityDenied: if a binding or capability is missing.
    """
    try:
        found = deps.submission.dry_run(name, read_body(visit.body))
    except InvalidRequest as error:
        return Drawing(partial(_refused, error))
    (before,) = await deps.decisions.precedents((found.approval,))
    review = RequestReview(found.approval, before, found.offer, found.cards)
    return Drawing(lambda: _result(review, found.offer))


def _result(review: RequestReview, offer: Offer) -> Tag:
    approval, warnings = review.approval, review.warnings
    gate = "Requires your approval" if offer.action.approval.gated else "Runs without your approval"
    return tags.section(
        tags.h2(headline(approval), tabindex="-1"),
        quiet(*origin(approval, None, review.cards)),
        quiet(f"{gate}. This was a dry run: nothing was sent or stored."),
        draw_warnings(warnings),
        draw_payload(approval, review.cards, review.before),
        draw_facts(warnings),
        draw_requests(approval, review.cards),
    )


def _refused(error: InvalidRequest) -> Tag:
    problems = cast("Sequence[Mapping[str, str]]", error.details.get("problems", ()))
    found = [f"{each['pointer'].removeprefix('/args/')} {each['message']}" for each in problems] or [error.message]
    rows = (tags.li(visible(each)) for each in found)
    return tags.section(tags.h2("The arguments have errors", tabindex="-1"), tags.ul(*rows))
