"""goose through all scenarios, on a terminal, in tmux, and behind walls."""

from twisted.trial.unittest import SkipTest

from tests.agents import case, scenarios, surroundings, tmux
from tests.agents.kinds.goose import Goose
from tests.functional.operated import GATED, SHIP
from tests.functional.script import Say


class GooseTests(surroundings.ConversationTestCase, scenarios.ScenariosTestCase):
    """Headless, but where it takes its user's next turn."""

    kind = Goose()

    async def test_07_action_added(self) -> None:
        """An action that is added while goose runs can be called by the model in its user's next turn."""
        late = self.kind.never_offers_late
        more = [] if late else [self.call(scenarios.ADDED, scenarios.LUNCH)]
        launched = await self.converse([self.call(GATED, SHIP), Say("It is told."), *more])
        await launched.running.expect(self.kind.ready, case.SECONDS)
        await self.type(launched, case.PROMPT)
        approval = await self.asked(launched)
        await self.add(self.action_file(scenarios.ADDED, gated=False))
        await self.pause(5)
        await self.approve(approval["id"])
        await launched.running.expect("told", case.SECONDS)
        await self.type(launched, "and of lunch")
        await launched.running.expect(case.BYE.split()[-1], case.SECONDS)
        await self.left(launched)
        offered = launched.llm.script.of(self.kind.model)[-1].tools
        self.assertEqual(any(name.endswith(self.kind.tool(scenarios.ADDED)) for name in offered), not late, offered)
        if late:
            raise SkipTest(late)
        self.assert_posted(SHIP, scenarios.LUNCH)


class TerminalTests(surroundings.TerminalTestCase):
    """It prints lines, so that a line of ours may stand among them."""

    kind = Goose()
    tells = "aileron: a call waits for your approval"


class TmuxTests(tmux.TmuxTestCase):
    """Where a person has a shell."""

    kind = Goose()


class SandboxTests(surroundings.SandboxTestCase):
    """Its sessions are its own."""

    kind = Goose()
    kept = ".local/share/goose/sessions/*.db"
