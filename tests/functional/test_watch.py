"""The live view on a real terminal, with the installed command, a real daemon and a real service."""

from tests.functional.operated import GATED, PASSPHRASE, SHIP, AgentSession, OperatedTestCase
from tests.functional.process import Running
from tests.functional.reactor import Patience

TAKEN, GIVEN_BACK = r"\x1b\[\?1049h", r"\x1b\[\?7h\x1b\[\?1049l.*\x1b\[\?25h"


class WatchTests(OperatedTestCase):
    """A person who watches what agents ask for, and decides."""

    async def watching(self, term: str, *more: str) -> Running:
        """The view, after the passphrase."""
        running = self.on_terminal("approval", "watch", *more, TERM=term)
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        return running

    async def asked(self, session: AgentSession, summary: str) -> None:
        """An agent asks."""
        reply = await self.run_action(session, GATED, {**SHIP, "summary": summary})
        self.assertEqual(reply.status, 202)

    async def test_decide(self) -> None:
        """One is read and approved, the next comes by itself, is seen with its ruse, and is denied with its session."""
        await self.furnish()
        session = await self.session()
        await self.asked(session, "The parser is out.")
        running = await self.watching("xterm", "--bell")
        await running.expect(TAKEN)
        await running.expect("Post to #engineering: The parser is out.")
        await self.read(running, "The parser is out.")
        running.press("y")
        await running.expect(r"Approve exactly this\? \[y/N\]")
        running.press("y")
        await running.expect("Approved and completed")
        self.assertEqual([each.text for each in self.workspace.messages], ["The parser is out."])
        await self.asked(session, "turned \u202e round")
        await running.expect("\a")
        await self.read(running, "turned .u202e round")
        running.press("x")
        await running.expect(r"and end it\? \[y/N\]")
        running.press("y")
        await running.expect(f"Session {session.id} ended")
        running.press("q")
        await running.expect(GIVEN_BACK)
        self.assertEqual((await running.finish(30)).exit_code, 0)
        self.assertEqual((await self.run_action(session, GATED)).status, 401)
        self.assertEqual(len(self.workspace.messages), 1)

    async def read(self, running: Running, expected: str) -> None:
        """Open the first, and read it to its end."""
        before = len(running.output)
        running.press("\r")
        await running.expect("Space for more|read to the end")
        patience = Patience(self.reactor, 30)
        while "read to the end" not in running.output[before:]:
            self.assertFalse(patience.is_over, running)
            running.press(" ")
            await self.pause(0.1)
        self.assertRegex(running.output[before:], expected)

    async def test_interrupted(self) -> None:
        """Ctrl-C gives the terminal back, and ends the login."""
        await self.furnish()
        running = await self.watching("xterm")
        await running.expect("No pending approvals.")
        before = await self.told("operator", "list")
        finished = await running.interrupt()
        self.assertRegex(finished.stdout, GIVEN_BACK)
        self.assertEqual(finished.exit_code, 130)
        after = await self.told("operator", "list")
        self.assertEqual(len(after["items"]), len(before["items"]) - 1)
