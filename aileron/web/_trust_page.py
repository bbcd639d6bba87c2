"""The trust page: untrusted files in full with their differences, and the trusted files."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.template import Flattenable, Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.trust import Candidate, TrustItem, TrustKind, TrustState
from aileron.review import compare_versions, find_trust_difference, render_value

from .hunks import draw_hunks
from .parts import Drawing, Fragment, Visit, template, titled
from .texts import moment, size

_KINDS = {TrustKind.ACTION: "action", TrustKind.CONNECTOR: "connector", TrustKind.CONFIG: "configuration"}
_ORDER = (TrustKind.CONFIG, TrustKind.CONNECTOR, TrustKind.ACTION)
_NEW = "New. Not active until you trust it."
_CHANGED = "Changed since you trusted it. Not active until you trust it again."
_TEMPLATE = template("trust.xml")
_UNKNOWN_BEFORE = "The version you trusted is no longer available or too long to compare, so no changes are shown."


def _page(items: tuple[TrustItem, ...]) -> Fragment:
    """Draw the files on disk, untrusted ones first and in full."""
    ordered = sorted(items, key=lambda item: (_ORDER.index(item.kind), item.name))
    waiting = (TrustState.NEW, TrustState.CHANGED)
    asked = [(item, item.candidate) for item in ordered if item.candidate is not None and item.state in waiting]
    others = [item for item in ordered if item.state not in waiting]
    return Fragment(
        _TEMPLATE,
        root=titled("Trust – Aileron", f"Files to review: {len(asked) or 'none'}"),
        nothing=not asked,
        asked=[_draw_asked(item, candidate) for item, candidate in asked],
        several={"count": str(len(asked))} if len(asked) > 1 else False,
        any_others=bool(others),
        others=[_draw_trusted(item) for item in others],
    )


def _draw_asked(item: TrustItem, candidate: Candidate) -> dict[str, Flattenable]:
    """Draw an untrusted file in full, its differences from the trusted version, and a button to trust that content."""
    return {
        **_about(item),
        "state": _state(item, candidate),
        "path": visible(candidate.path),
        "size": size(candidate.text),
        "difference": _difference(item, candidate),
        "text": render_value(candidate.text),
        "digest": visible(candidate.digest),
        "named": _ask_name(item) if candidate.unasked else "",
    }


def _ask_name(item: TrustItem) -> Tag:
    """Draw the field in which the operator types the name of a file that makes changes without asking."""
    field = tags.input(
        **{"type": "text", "class": "typed-name", "data-name": visible(item.name), "autocomplete": "off"},
        spellcheck="false",
    )
    return tags.p(tags.label("To trust it, type its name: ", field))


def _state(item: TrustItem, candidate: Candidate) -> Tag:
    """Draw whether a file is trusted, after the warnings about it."""
    first = []
    if candidate.lacks:
        first.append(f"Cannot run, so it cannot be trusted: it {candidate.lacks[0]}.")
    if candidate.unasked:
        first.append("Makes changes without asking you. To be asked, write `required = true` under `[approval]`.")
    warnings = [tags.strong(visible(each), " ", **{"class": "bad"}) for each in first]
    return tags.span(*warnings, _CHANGED if item.state is TrustState.CHANGED else _NEW)


def _draw_trusted(item: TrustItem) -> dict[str, Flattenable]:
    """Draw a trusted file, since when it is trusted, and a button to revoke the trust."""
    since: Tag | str = "" if item.trusted is None else tags.small(", trusted ", moment(item.trusted.changed_at))
    gone = " (the file no longer exists)" if item.state is TrustState.GONE else ""
    return {**_about(item), "since": since, "gone": gone}


def _about(item: TrustItem) -> dict[str, Flattenable]:
    return {"name": visible(item.name), "what": _KINDS[item.kind], "kind": item.kind.value}


async def draw_trust(deps: Dependencies, visit: Visit) -> Drawing:
    """Draw the trust page.

    :raises VaultLocked: if there is no vault, or it was never unlocked in this process.
    """
    items, name = await deps.trust.trust_items(), visit.query.get("action")
    return Drawing(lambda: _page(items if name is None else tuple(_of_action(items, name))))


def _of_action(items: tuple[TrustItem, ...], name: str) -> Iterator[TrustItem]:
    """Yield the file of an action and the files of the connectors that it needs."""
    mine = [item for item in items if (item.kind, item.name) == (TrustKind.ACTION, name)]
    needed = {need for item in mine if item.candidate is not None for need in item.candidate.needs}
    yield from mine
    yield from (item for item in items if item.kind is TrustKind.CONNECTOR and item.name in needed)


def _difference(item: TrustItem, candidate: Candidate) -> Tag | str:
    if item.state is not TrustState.CHANGED:
        return ""
    difference = find_trust_difference(item)
    if item.before is None or difference == candidate.text:
        return tags.p(_UNKNOWN_BEFORE)
    compared = compare_versions(item.before, candidate.text)
    drawn = draw_hunks(compared, f"same-{item.kind.value}-{visible(item.name)}") if compared else None
    return tags.div(tags.h3("Changes"), drawn or tags.pre(render_value(difference)))
