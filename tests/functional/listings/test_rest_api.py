"""C{doc/rest-api.md}, played: a tracker is set up by curl and by hand, an issue opened, and an agent started."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any, cast

from twisted.internet.interfaces import IProtocolFactory
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from tests.extent import seldom
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.listings.reading import find_approval, find_listings
from tests.functional.loopback import headers_of, json_of
from tests.functional.test_first_run import answers_of_new_vault

KEY = "tracker-canary-41e7"


class _Tracker(Resource):
    """Opens issues."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.opened: list[tuple[str, Mapping[str, Any] | None]] = []

    def render_POST(self, request: Request) -> bytes:
        """Open one."""
        self.opened.append((headers_of(request)["authorization"], json_of(request)))
        request.setResponseCode(201)
        return json.dumps({"number": len(self.opened)}).encode()


class RestApiTests(PageTestCase):
    """A user with a tracker of one's own."""

    page = "rest-api.md"

    @seldom
    async def test_played(self) -> None:
        """The issue is opened once it is approved, with the key, which nobody is shown; the agent is started."""
        tracker = _Tracker()
        service = cast(IProtocolFactory, Site(tracker))
        self.behind = (await Internet.open(self, ["tracker.example"], {HTTPS: service})).prefix
        (text,) = find_listings(self.page_text(), "toml")
        (self.home.project / "tracker.toml").write_text(text)
        self.secrets.append(KEY)
        self.put_program("editor", "#!/bin/sh\nsed -i 's/^# .*/# Open an issue by hand/' \"$1\"\n")
        started = self.put_recorder("claude")
        trusting, vault = [LOG_IN, YES], list(answers_of_new_vault().items())
        await self.play(
            Play(
                "aileron setup curl -X POST https://tracker.example/api/issues -H 'Authorization: Bearer $KEY' "
                """-d '{"title": "Broken", "body": "It does not start."}'""",
                answers=[(r"Short name of the service .+: ", ""), *vault, YES, (r"Key for .+ \(not shown\): ", KEY)],
                shows=["Trusted: local://me/tracker, tracker-post-api-issues"],
            ),
            Play("aileron action edit tracker-post-api-issues", answers=trusting, environment={"EDITOR": "editor"}),
        )
        await self.command("daemon", "stop")
        shutil.rmtree(self.state.root)
        asked = await self.play(
            Play("aileron connector check tracker.toml", shows=["tracker.toml: OK"]),
            Play("aileron connector add tracker.toml", answers=[*vault, YES]),
            Play(
                "aileron credential setup local://me/tracker", answers=[LOG_IN, (r"Secret for .+ \(not shown\): ", KEY)]
            ),
            Play(
                "aileron action new open-issue --connector local://me/tracker --op create_issue --gated --edit",
                answers=trusting,
                environment={"EDITOR": "editor"},
                shows=["Trusted: open-issue"],
            ),
            Play('aileron action run open-issue --arg title="Try" --arg body="Opened by hand."', code=75),
        )
        self.assertEqual(tracker.opened, [])
        await self.play(
            Play(
                "aileron approve ID",
                replace={"ID": find_approval(asked)},
                answers=trusting,
                shows=["https://tracker.example/api/issues", "Approved and completed"],
            ),
            Play("aileron launch claude"),
        )
        self.assertEqual(tracker.opened, [(f"Bearer {KEY}", {"title": "Try", "body": "Opened by hand."})])
        self.assertEqual(len(started()), 1)
