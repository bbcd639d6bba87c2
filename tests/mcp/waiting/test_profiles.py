"""What is known of the programs that call."""

from __future__ import annotations

import re
from itertools import accumulate, islice
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp.waiting.clients import usual_beats
from aileron.mcp.waiting.profiles import MARGIN_SECONDS, PROFILES, UNKNOWN, USUAL_SECONDS, Profile, find_profile

DOC = Path(__file__).parents[3] / "doc" / "agents.md"


class ProfileTests(SynchronousTestCase):
    """Which profile, and how patient it is."""

    def test_introduced(self) -> None:
        """A client that is known by its own name is that, whatever was launched."""
        for introduced, name in [
            ("claude-code", "claude"),
            ("codex-mcp-client", "codex"),
            ("opencode", "opencode"),
            ("goose-cli", "goose"),
            ("pi", "pi"),
        ]:
            self.assertEqual(find_profile(introduced, "opencode").name, name)

    def test_launched(self) -> None:
        """One that calls itself otherwise is what was launched; and where nothing was, it is unknown."""
        self.assertEqual(find_profile("?", "goose").name, "goose")
        for launched in ("", "demo agent"):
            self.assertIs(find_profile("claude-ai", launched), UNKNOWN)

    def test_inside_the_limit(self) -> None:
        """Where nobody said how long, every client has its answer well before it gives the call up."""
        for profile in (*PROFILES.values(), UNKNOWN):
            patience = profile.patience(None, hears_progress=False)
            self.assertTrue(0 < patience <= USUAL_SECONDS)
            if profile.limit_seconds is not None:
                self.assertLessEqual(patience, profile.limit_seconds - MARGIN_SECONDS)

    def test_progress(self) -> None:
        """Progress makes a call last longer only for a client that it extends, and that asked to hear of it."""
        extended, not_extended = Profile("a", 60, progress_extends=True), Profile("b", 60)
        self.assertEqual(extended.patience(None, hears_progress=True), 300)
        for profile, hears in [(extended, False), (not_extended, True), (UNKNOWN, True)]:
            self.assertEqual(profile.patience(None, hears_progress=hears), 45)

    def test_said(self) -> None:
        """Who started the agent knows which limit was set: what was said counts."""
        for seconds in (0, 7, 3600):
            self.assertEqual(UNKNOWN.patience(seconds, hears_progress=False), seconds)

    def test_beats(self) -> None:
        """Somebody who watches hears of a call soon, and then often enough for a client that waits for six seconds."""
        self.assertEqual([*islice(accumulate(usual_beats()), 7)], [1, 2, 4, 9, 14, 19, 24])

    def test_unknown_is_asked_nothing(self) -> None:
        """Of an unknown client only what it says is expected, and goose is never asked, for it may end of it."""
        self.assertFalse(UNKNOWN.opens_urls or UNKNOWN.progress_extends or UNKNOWN.structured_wins)
        self.assertFalse(PROFILES["goose"].opens_urls or PROFILES["goose"].shows_forms)

    def test_documented(self) -> None:
        """The table of the page is this one."""
        rows = re.findall(
            r"^\| `?([a-z ]+)`? \| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \| (.+) \|$",
            DOC.read_text("utf-8"),
            re.MULTILINE,
        )
        told = {row[0].strip(): tuple(row[1:]) for row in rows}
        for profile in (*PROFILES.values(), UNKNOWN):
            self.assertEqual(told[profile.name], _row(profile))


def _row(profile: Profile) -> tuple[str, ...]:
    limit = "none" if profile.limit_seconds is None else f"{profile.limit_seconds:g} s"
    extends, opens = ("yes" if yes else "no" for yes in (profile.progress_extends, profile.opens_urls))
    reads = "structured" if profile.structured_wins else "text"
    shows = "no" if not profile.shows_forms else "if it says so" if profile is UNKNOWN else "yes"
    return limit, extends, opens, shows, reads, profile.learns.value
