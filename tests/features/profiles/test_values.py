"""Which actions selectors match, and to which sessions a profile applies."""

from __future__ import annotations

import fnmatch

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.patterns import matches_glob
from aileron.features.profiles.values import ActionProfile, ProfileSettings, matches, selects
from aileron.model.actions import ConnectorPin, Offer
from aileron.model.sessions import ActionSelection
from aileron.testing import scripted_offer

_TEXTS = st.text("ab/", max_size=12)


def offer(name: str = "ship-update", *, read_only: bool = False) -> Offer:
    """An action with two tags and a connector."""
    given_ = scripted_offer(name)
    pins = (ConnectorPin("local://me/slack", "1.0.0", ()),)
    return evolve(given_, read_only=read_only, action=evolve(given_.action, tags=("release", "chat"), connectors=pins))


class SelectorTests(SynchronousTestCase):
    """L{matches} and L{selects}."""

    def test_selectors(self) -> None:
        """Each kind of selector."""
        for selector, found in (
            ("ship-update", True),
            ("ship-*", True),
            ("*", True),
            ("ship", False),
            ("tag:release", True),
            ("tag:rel*", True),
            ("tag:other", False),
            ("release", False),
            ("connector:local://me/slack", True),
            ("connector:local://me/*", True),
            ("connector:local://you/*", False),
            ("effect:write", True),
            ("effect:read", False),
        ):
            self.assertEqual(matches(selector, offer()), found, selector)
        self.assertTrue(matches("effect:read", offer(read_only=True)))
        self.assertFalse(matches("effect:write", offer(read_only=True)))

    def test_selection(self) -> None:
        """Without allow all are allowed; deny wins."""
        for allow, deny, found in (
            ((), (), True),
            (("ship-*",), (), True),
            (("other",), (), False),
            (("other", "tag:chat"), (), True),
            (("*",), ("effect:write",), False),
            ((), ("tag:none",), True),
        ):
            self.assertEqual(selects(ActionSelection(allow, deny), offer()), found, (allow, deny))

    @given(st.text("ab*", max_size=8), _TEXTS)
    def test_glob(self, pattern: str, text: str) -> None:
        """C{*} stands for any characters, as in shells."""
        self.assertEqual(matches_glob(pattern, text), fnmatch.fnmatchcase(text, pattern))


class DefaultTests(SynchronousTestCase):
    """L{ProfileSettings.find_default}."""

    def test_default(self) -> None:
        """The first profile whose agents and projects fit applies; one that names neither applies to nobody."""
        all_ = ActionSelection()
        settings = ProfileSettings(
            {
                "named": ActionProfile("named", all_),
                "shop": ActionProfile("shop", all_, agents=("claude*",), projects=("/home/me/shop",)),
                "codex": ActionProfile("codex", all_, agents=("codex",)),
                "work": ActionProfile("work", all_, projects=("/work",)),
            }
        )
        for agent, directory, name in (
            ("claude", "/home/me/shop", "shop"),
            ("claude-code", "/home/me/shop/src", "shop"),
            ("claude", "/home/me/shop2", None),
            ("claude", "/home/me/shop/../other", None),
            ("claude", "", None),
            ("codex", "/home/me/shop", "codex"),
            ("goose", "/work/a", "work"),
        ):
            found = settings.find_default(agent, directory)
            self.assertEqual(None if found is None else found.name, name, (agent, directory))
