"""What the operator is asked to trust, whole and with the difference, and what is trusted already."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer, tags

from aileron.values import Candidate, TrustItem, TrustKind, TrustState, visible

from ._parts import Drawing, PageParts, Visit, template
from ._texts import moment, shown, size

_KINDS = {TrustKind.ACTION: "action", TrustKind.CONNECTOR: "connector", TrustKind.CONFIG: "configuration"}
_ORDER = (TrustKind.CONFIG, TrustKind.CONNECTOR, TrustKind.ACTION)
_NEW = "Nobody has trusted it: it does nothing."
_CHANGED = "It is not what you trusted: it does nothing."
_UNKNOWN_BEFORE = "What you trusted is not known any more, or too long to compare: only the whole can be shown."


class TrustPage(Element):
    """The page of files on disk; untrusted ones come first and are shown in full."""

    loader = template("trust.xml")

    def __init__(self, items: tuple[TrustItem, ...]) -> None:
        super().__init__()
        ordered = sorted(items, key=lambda item: (_ORDER.index(item.kind), item.name))
        waiting = (TrustState.NEW, TrustState.CHANGED)
        self._asked = [item for item in ordered if item.candidate is not None and item.state in waiting]
        self._others = [item for item in ordered if item.state not in waiting]

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """How much there is to read, to be said aloud."""
        return tag(**{"data-title": "Trust – Aileron", "data-said": f"To read: {len(self._asked) or 'nothing'}"})

    @renderer
    def nothing(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A sentence where there is nothing to read."""
        return "" if self._asked else tag

    @renderer
    def asked(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Each file whole, with what differs from what was trusted, and a button for exactly that."""
        for item in self._asked:
            if item.candidate is not None:
                yield tag.clone().fillSlots(
                    **self._about(item),
                    state=_CHANGED if item.state is TrustState.CHANGED else _NEW,
                    path=visible(item.candidate.path),
                    size=size(item.candidate.text),
                    difference=_difference(item, item.candidate),
                    text=shown(item.candidate.text),
                    digest=visible(item.candidate.digest),
                )

    @renderer
    def several(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """One button for all that was read, where there is more than one."""
        return tag.fillSlots(count=str(len(self._asked))) if len(self._asked) > 1 else ""

    @renderer
    def others(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """What is trusted, since when, and a button to take it back."""
        for item in self._others:
            since: Tag | str = "" if item.trusted is None else tags.small(" since ", moment(item.trusted.changed_at))
            gone = " (nothing of that name lies there any more)" if item.state is TrustState.GONE else ""
            yield tag.clone().fillSlots(**self._about(item), since=since, gone=gone)

    @renderer
    def any_others(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """Their heading, where there are any."""
        return tag if self._others else ""

    def _about(self, item: TrustItem) -> dict[str, str]:
        return {"name": visible(item.name), "what": _KINDS[item.kind], "kind": item.kind.value}


async def draw_trust(parts: PageParts, visit: Visit) -> Drawing:
    """What there is to trust now."""
    items = await parts.trust.trust_items()
    return Drawing(lambda: TrustPage(items))


def _difference(item: TrustItem, candidate: Candidate) -> Tag | str:
    if item.state is not TrustState.CHANGED:
        return ""
    difference = item.difference
    if item.before is None or difference == candidate.text:
        return tags.p(_UNKNOWN_BEFORE)
    return tags.div(tags.h3("What differs"), tags.pre(shown(difference)))
