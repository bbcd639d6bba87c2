"""C{doc/prompts.md}, played: questions of an agent are listed, allowed and denied, and a rule is tried on them."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.web import Reply


class PromptsTests(PageTestCase):
    """A user whose agent's hook asks."""

    page = "prompts.md"

    async def ask(self, command: str) -> tuple[str, Deferred[Reply]]:
        """The agent's hook asks for a command: the prompt's ID, and the reply, which comes later."""
        found = self.home.discovery()
        body = {"tool": "Bash", "input": {"command": command}, "cwd": str(self.home.project)}
        reply = Deferred.fromCoroutine(
            self.web.ask("POST", f"{found['url']}/v1/prompts/plugin", self.agent.token, body)
        )
        ids: list[str] = []

        async def look() -> None:
            listed = await self.web.ask("GET", f"{found['operator_url']}/v1/asks", found["local_key"])
            ids[:] = [each["id"] for each in listed.body["items"] if each["text"] == command]

        for _ in range(50):
            await look()
            if ids:
                break
            await self.pause(0.1)
        return ids[0], reply

    async def test_played(self) -> None:
        """Each answer is what the agent hears, and each rule shows what it would have answered."""
        await self.operator("vault", "init")
        self.agent = await self.session("claude")
        (one, first), (two, second), (three, third) = [
            await self.ask(each) for each in ("npm test", "npm test -- x", "rm x")
        ]
        await self.play(
            Play("aileron ask list", shows=["npm test", "rm x"], environment={"COLUMNS": "200"}),
            Play("aileron ask show ID", replace={"ID": one}, shows=["plugin asks to use Bash"]),
            Play("aileron ask allow ID", replace={"ID": one}, answers=[LOG_IN]),
            Play("aileron ask allow ID --session 'Bash(npm test *)'", replace={"ID": two}, answers=[LOG_IN]),
            Play('aileron ask deny ID --reason "Use git rm."', replace={"ID": three}, answers=[LOG_IN]),
        )
        for reply, said in (
            (first, {"decision": "allow"}),
            (second, {"decision": "allow"}),
            (third, {"decision": "deny", "reason": "Use git rm."}),
        ):
            self.assertEqual((await reply).body, said)
        await self.play(
            Play("aileron ask try-rule 'Bash(npm test *)'", shows=["would have answered 2 of the last 3"]),
            Play("aileron ask try-rule 'Bash(rm *)' --deny", shows=["would have answered 1 of the last 3", "rm x"]),
        )
