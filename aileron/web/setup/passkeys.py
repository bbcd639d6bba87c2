"""The operator's passkeys, and what may not be approved without one."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer

from aileron.interfaces import IPasskeys
from aileron.values import visible
from aileron.web._parts import PageParts, Visit, template
from aileron.web._texts import moment


class PasskeysPage(Element):
    """Those that count, the rule, and a form to add one."""

    loader = template("passkeys.xml")

    def __init__(self, passkeys: IPasskeys) -> None:
        super().__init__()
        self._keys, self._rule = passkeys.passkeys(), passkeys.passkey_rule()

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """How many there are, to be said aloud."""
        return tag(**{"data-title": "Passkeys – Aileron", "data-said": f"Passkeys: {len(self._keys) or 'none'}"})

    @renderer
    def rule(self, request: IRequest | None, tag: Tag) -> str:
        """What needs one."""
        if self._rule.everything:
            return "Every approval needs one."
        if not self._rule.actions:
            return "No approval needs one."
        return f"Approvals of these actions need one: {visible(', '.join(self._rule.actions))}."

    @renderer
    def none(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A sentence where there is none."""
        return "" if self._keys else tag

    @renderer
    def items(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Each that counts."""
        for key in self._keys:
            yield tag.clone().fillSlots(name=visible(key.name), made_at=moment(key.made_at))


async def draw_passkeys(parts: PageParts, visit: Visit) -> PasskeysPage:
    """The passkeys as they are now."""
    return PasskeysPage(parts.passkeys)
