"""C{doc/audit.md}, played: the log of a day's work is verified in three forms, and exported."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta

from tests.extent import seldom
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.operated import GATED

ANCHORED = "audit:\n  anchor:\n    file: {}\n"
NOTED = "ed25519:0123456789abcdef0123456789abcdef"
SOUND = "The audit log is consistent, from record 1 to "


class AuditTests(PageTestCase):
    """A user whose checkpoints are also written elsewhere."""

    page = "audit.md"

    @seldom
    async def test_played(self) -> None:
        """The home, a copy of its database and an export hold, also against the key that was noted and the anchor."""
        project = self.home.project
        await self.furnish()
        await self.set_config(ANCHORED.format(project / "aileron-anchor.ndjson"))
        asked = await self.run_action(await self.session(), GATED)
        await self.approve(str(asked.body["run_id"]), "--wait", "20")
        key = str((await self.status())["record"]["key"])
        await self.play(Play("aileron audit verify", shows=[SOUND, "The running daemon confirms it"]))
        await self.command("daemon", "stop")
        shutil.copy(self.state.database, project / "copy-of-aileron.db")
        (project / "record.ndjson").write_text((await self.command("audit", "export")).stdout)
        shown = await self.play(
            Play(
                "aileron audit verify copy-of-aileron.db --public-key ed25519:0123456789abcdef0123456789abcdef",
                replace={NOTED: key},
                shows=[SOUND],
            ),
            Play("aileron audit verify record.ndjson --anchor aileron-anchor.ndjson --json"),
        )
        found = json.loads(shown)
        self.assertEqual((found["sound"], found["anchored"] > 0), (True, True), shown)
        (project / "record.ndjson").unlink()
        now = datetime.now(UTC)
        since, until = (f"{now + timedelta(days=days):%Y-%m-%d}" for days in (-1, 1))
        await self.play(
            Play("aileron audit export > record.ndjson"),
            Play(
                "aileron audit export --since 2026-01-01T00:00:00Z --until 2026-02-01T00:00:00Z > january.ndjson",
                replace={"2026-01-01": since, "2026-02-01": until},
            ),
        )
        whole, part = (
            [json.loads(line) for line in (project / name).read_text().splitlines()]
            for name in ("record.ndjson", "january.ndjson")
        )
        self.assertEqual((whole[0]["kind"], whole[-1]["kind"]), ("header", "end"))
        self.assertEqual(part[1:], whole[1:])
