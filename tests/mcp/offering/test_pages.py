"""Lists in pages."""

from __future__ import annotations

import mcp.types as t
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp.offering.catalog import page


def after(cursor: str | None) -> t.PaginatedRequestParams:
    """The parameters of a request for what comes after a cursor."""
    return t.PaginatedRequestParams(cursor=cursor)


def pages(names: list[str], size: int) -> list[list[str]]:
    """All of them, one after the other."""
    found: list[list[str]] = []
    cursor: str | None = None
    while not found or cursor is not None:
        shown, cursor = page(names, str, after(cursor), size)
        found.append(list(shown))
    return found


class PageTests(SynchronousTestCase):
    """What a client gets by following the cursors."""

    @settings(deadline=None, max_examples=60)
    @given(st.sets(st.text(st.characters(exclude_categories=["Cs"]))), st.integers(1, 5))
    def test_whole(self, names: set[str], size: int) -> None:
        """Everything comes, once, in order, and no page but the last is short."""
        found = pages(sorted(names), size)
        self.assertEqual([name for each in found for name in each], sorted(names))
        self.assertTrue(all(len(each) == size for each in found[:-1]))

    def test_change_meanwhile(self) -> None:
        """What comes or goes before the cursor moves nothing behind it."""
        _, cursor = page(["a", "c", "e"], str, None, 2)
        self.assertEqual(page(["b", "e", "f"], str, after(cursor), 2), (["e", "f"], None))

    def test_foreign(self) -> None:
        """A cursor that none of our lists gave is refused."""
        for cursor in ("", "x", "1", "=", "AWE=", "YQ", "_w", "é", "AWE\n", "AWH"):
            self.assertRaises(MCPError, page, ["a", "b"], str, after(cursor), 1)
        self.assertEqual(page(["a", "b"], str, after("AWE"), 1), (["b"], None))
